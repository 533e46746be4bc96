"""Which functions in C are system calls, and the names of these calls.

Every function of the modules below counts, unless it is known to make no system call: a function that is new
in the broker is counted under its own name rather than not at all.
"""

from __future__ import annotations

import _socket
import io
import mmap
import select
from types import BuiltinMethodType, ModuleType

_NAMES = {
    "accept": "accept4", "listdir": "getdents64", "open": "openat", "open_code": "openat", "pread": "pread64",
    "preadv": "preadv2", "pwrite": "pwrite64", "pwritev": "pwritev2", "recv": "recvfrom", "recv_into": "recvfrom",
    "recvfrom_into": "recvfrom", "scandir": "getdents64", "send": "sendto", "sendall": "sendto",
    "set_blocking": "ioctl", "setblocking": "ioctl", "sleep": "clock_nanosleep", "start_new_thread": "clone",
    "urandom": "getrandom",
}  # fmt: skip
"""What Linux calls the system calls that CPython's functions make; others have the name of the function."""
_WITH_CALLS = {"_thread": frozenset({"start_new_thread"}), "time": frozenset({"sleep"})}
"""Modules of which only these functions are system calls."""
_WITHOUT_CALLS = {
    "io": frozenset({"text_encoding"}),
    "_posixsubprocess": frozenset(),
    "_socket": frozenset(
        {"htonl", "htons", "inet_aton", "inet_ntoa", "inet_ntop", "inet_pton", "ntohl", "ntohs", "getdefaulttimeout"}
    ),
    "fcntl": frozenset(),
    "posix": frozenset({"_path_normpath", "fspath", "strerror", "WEXITSTATUS", "WIFEXITED", "WIFSIGNALED", "WTERMSIG"}),
    "select": frozenset({"epoll", "poll"}),
}  # fmt: skip
"""Modules of which all other functions are system calls."""
_METHODS: tuple[tuple[type, str, frozenset[str]], ...] = (
    (_socket.socket, "", frozenset({"detach", "fileno", "gettimeout", "getblocking", "settimeout"})),
    (select.epoll, "epoll_", frozenset({"fileno", "fromfd"})),
    (io.FileIO, "", frozenset({"fileno", "isatty", "readable", "seekable", "writable", "_dealloc_warn"})),
    (mmap.mmap, "mmap_", frozenset({"find", "move", "read", "read_byte", "rfind", "seek", "tell", "write"})),
)


def system_call_of(function: BuiltinMethodType) -> str | None:
    """The name of the system call that a function in C makes, None if it makes none."""
    name, owner = function.__name__, function.__self__
    if isinstance(owner, ModuleType):
        return _NAMES.get(name, name) if _is_call(owner.__name__, name) else None
    for kind, prefix, without in _METHODS:
        if isinstance(owner, kind):
            name = name.removeprefix("_")
            return None if name in without else prefix + _NAMES.get(name, name)
    return None


def _is_call(module: str, name: str) -> bool:
    if module in _WITH_CALLS:
        return name in _WITH_CALLS[module]
    return module in _WITHOUT_CALLS and name not in _WITHOUT_CALLS[module]
