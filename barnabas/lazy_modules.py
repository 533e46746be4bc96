"""Modules of other packages that are loaded when an attribute of them is used first, not when they are imported.

trio and construct import these at their heads, and a broker without TLS and SASL never uses them: OpenSSL alone
takes 5 MB and 10 ms. `importlib.util.LazyLoader` cannot be used: in Python 3.11 a second `import` of such a module
loads it.

trio itself imports all it has (DTLS, subprocesses, channels; 15 ms). `PLACES` says in which of its modules the names
are that a broker uses: only these modules are imported. Any other name has the whole package loaded.
While it is imported it asks for a library, for which Python starts `ldconfig` (5 ms and a process): `find_library`
answers that.

Invariants: a module is loaded once, by one thread; another one that asks for a name it lacks waits for it.
An error of loading is raised where the attribute is used, and the next use tries again.
"""

from __future__ import annotations

import ctypes
import os
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.machinery import ModuleSpec

OF_SERVE: Final = (
    *("ctypes.util", "hashlib", "hmac", "idna", "pdb", "pickle", "platform", "shutil", "ssl", "tempfile"),
    *("trio", "trio.lowlevel"),
)
"""hmac, ssl, idna, tempfile (which imports shutil) by trio, platform by attrs, construct: hashlib, pdb, pickle."""
PLACES: Final = {
    "trio": {
        **dict.fromkeys(("abc", "from_thread", "lowlevel", "socket", "to_thread"), ""),
        **dict.fromkeys(
            (
                *("BrokenResourceError", "BusyResourceError", "Cancelled", "CancelScope", "ClosedResourceError"),
                *("EndOfChannel", "Nursery", "RunFinishedError", "TASK_STATUS_IGNORED", "TaskStatus"),
                *("TrioInternalError", "WouldBlock", "current_effective_deadline", "current_time", "open_nursery"),
                "run",
            ),
            "_core",
        ),
        **dict.fromkeys(("CapacityLimiter", "Event", "Lock", "Semaphore"), "_sync"),
        **dict.fromkeys(("move_on_after", "move_on_at", "sleep", "sleep_forever", "sleep_until"), "_timeouts"),
        "open_signal_receiver": "_signals",
        **dict.fromkeys(("SocketListener", "SocketStream"), "_highlevel_socket"),
    },
    "trio.lowlevel": {
        **dict.fromkeys(
            (
                *("Abort", "ParkingLot", "RunVar", "Task", "TrioToken", "cancel_shielded_checkpoint", "checkpoint"),
                *("checkpoint_if_cancelled", "current_clock", "current_root_task", "current_task"),
                *("current_trio_token", "disable_ki_protection", "enable_ki_protection", "notify_closing"),
                *("reschedule", "spawn_system_task", "start_thread_soon", "wait_readable", "wait_task_rescheduled"),
                "wait_writable",
            ),
            "_core",
        ),
        "FdStream": "_unix_pipes",
    },
}
"""By module, the public names that need not load it, and the module of trio that each is in; "": it is a module."""
_LOADING: Final = RLock()


def find_library(name: str) -> str | None:
    """As `ctypes.util.find_library`; glibc's threads are known: trio names threads by them."""
    if name == "pthread" and sys.platform == "linux":
        try:
            ctypes.CDLL("libpthread.so.0")
        except OSError:
            pass  # another C library
        else:
            return "libpthread.so.0"
    from ctypes import util

    getattr(util, "__all__", None)  # loads it
    return util.find_library(name)


def python_implementation() -> str:
    """As `platform.python_implementation`: that module compiles a dozen regular expressions first (1.5 ms)."""
    return {"cpython": "CPython", "pypy": "PyPy"}.get(sys.implementation.name, sys.implementation.name)


def system() -> str:
    """As `platform.system`."""
    return os.uname().sysname


KNOWN: Final[dict[str, dict[str, Any]]] = {
    "ctypes.util": {"find_library": find_library},
    "platform": {"python_implementation": python_implementation, "system": system},
}
"""What some modules have before they are loaded."""


class _LazyModule(ModuleType):
    """A module whose code has not run. Python calls `__getattr__` only for what it does not have."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__all__", "__version__"):
            raise AttributeError(name)  # asked by those who look at all modules, as `inspect` and `warnings` do
        with _LOADING:
            state = object.__getattribute__(self, "__dict__")
            if type(self) is not ModuleType and not state.get("_is_loading"):
                self._load(state)
        return ModuleType.__getattribute__(self, name)

    def _load(self, state: dict[str, Any]) -> None:
        state["_is_loading"] = True  # its own code may ask for a name that it has not defined yet
        try:
            spec = state["__spec__"]
            spec.loader.exec_module(self)
            object.__setattr__(self, "__class__", ModuleType)
        finally:
            del state["_is_loading"]


class _LazyPackage(_LazyModule):
    """A module of `PLACES`: the names that are listed there do not load it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name not in ("__all__", "__version__"):
            raise AttributeError(name)  # `from .. import _core`: Python imports it then
        state = object.__getattribute__(self, "__dict__")
        place = PLACES[state["__name__"]].get(name)
        if place is None:
            return super().__getattr__(name)
        state[name] = value = getattr(import_module(f"trio.{place}"), name) if place else import_module(f"trio.{name}")
        return value


def import_lazily(names: Iterable[str]) -> None:
    """Have the modules loaded at their first use. Modules that are imported already, or do not exist, stay as they are.

    It has to be called before they are imported. A package among them is loaded with its first attribute too; its
    submodules are imported as usual.
    """
    for name in names:
        spec = _spec(name) if name not in sys.modules else None
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            module.__dict__.update(KNOWN.get(name, {}))
            module.__class__ = _LazyPackage if name in PLACES else _LazyModule
            sys.modules[name] = module
            package, _, attribute = name.rpartition(".")
            if package in sys.modules:
                setattr(sys.modules[package], attribute, module)


def _spec(name: str) -> ModuleSpec | None:
    """Where a module is; the package of a submodule is not imported for that."""
    package = name.rpartition(".")[0]
    if not package:
        return find_spec(name)
    above = _spec(package)
    return PathFinder.find_spec(name, above.submodule_search_locations) if above is not None else None
