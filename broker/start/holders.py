"""Finds the process that occupies a port or a lock, for error messages, as far as Linux shows it to this user.

Source: proc(5), /proc/net/tcp and /proc/locks. Elsewhere, and about processes of other users, nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_LISTENING = "0A"
_PROC = Path("/proc")
SHOWN = 60
"""Characters of a command line."""


def holder_of_port(port: int) -> str:
    """` (process 7: COMMAND)` for the process that listens on a TCP port, or nothing."""
    sockets = {f"socket:[{inode}]" for inode in _listening_sockets(port)}
    return next((_name(pid) for pid in _pids() if sockets & _open_files(pid)), "") if sockets else ""


def holder_of_lock(path: str) -> str:
    """` (process 7: COMMAND)` for the process that has locked a file, or nothing."""
    try:
        inode = str(Path(path).stat().st_ino)
        lines = (_PROC / "locks").read_text().splitlines()
    except OSError:
        return ""
    for line in lines:
        fields = line.split()  # 1: FLOCK ADVISORY WRITE 7 fe:00:123 0 EOF
        if len(fields) > 5 and fields[5].rpartition(":")[2] == inode and fields[4].isdigit():
            return _name(int(fields[4]))
    return ""


def _listening_sockets(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        try:
            lines = (_PROC / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())


def _open_files(pid: int) -> set[str]:
    paths = set()
    try:
        for descriptor in (_PROC / str(pid) / "fd").iterdir():
            paths.add(str(descriptor.readlink()))
    except OSError:  # of another user, or it has ended
        pass
    return paths


def _name(pid: int) -> str:
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        words = []
    shown = " ".join(Path(word).name if "/" in word else word for word in words if word)
    if len(shown) > SHOWN:
        shown = shown[: SHOWN - 1] + "…"
    return f" (process {pid}: {shown})" if shown and shown.isprintable() else f" (process {pid})"
