"""Modules of other packages that are loaded when an attribute of them is used first, not when they are imported.

trio and construct import these at their heads, and a broker without TLS and SASL never uses them: OpenSSL alone takes
5 MB and 10 ms. `importlib.util.LazyLoader` cannot be used: in Python 3.11 a second `import` of such a module loads it.

Invariants: a module is loaded once, by one thread; another one that asks for a name it lacks waits for it.
An error of loading is raised where the attribute is used, and the next use tries again.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

OF_SERVE: Final = ("hashlib", "hmac", "idna", "pdb", "pickle", "shutil", "ssl", "tempfile")
"""hmac, ssl, idna, tempfile (which imports shutil) by trio, hashlib, pdb and pickle by construct."""
_LOADING: Final = RLock()


class _LazyModule(ModuleType):
    """A module whose code has not run. Python calls `__getattr__` only for what it does not have."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)  # asked by those who look at all modules, as `inspect` and `warnings` do
        with _LOADING:
            state = object.__getattribute__(self, "__dict__")
            if type(self) is _LazyModule and not state.get("_is_loading"):
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


def import_lazily(names: Iterable[str]) -> None:
    """Have the modules loaded at their first use. Modules that are imported already, or do not exist, stay as they are.

    It has to be called before they are imported. A package among them is loaded with its first attribute too; its
    submodules are imported as usual.
    """
    for name in names:
        spec = find_spec(name) if name not in sys.modules else None
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            module.__class__ = _LazyModule
            sys.modules[name] = module
