"""CRC-32C (Castagnoli), the checksum of record batches, over any contiguous buffer.

Importing the `crc32c` package reads its version with importlib.metadata, which takes about 25 ms of a start-up of
300 ms. So only its extension module is loaded; if that is not found, the package is imported as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec, PathFinder
from types import ModuleType


def _extension() -> ModuleType | None:
    package = PathFinder.find_spec("crc32c")
    for directory in (package.submodule_search_locations or ()) if package else ():
        spec = PathFinder.find_spec("_crc32c", [directory])
        if spec is None or spec.origin is None or not spec.origin.endswith(tuple(EXTENSION_SUFFIXES)):
            continue
        loader = ExtensionFileLoader("_crc32c", spec.origin)
        module = loader.create_module(ModuleSpec("_crc32c", loader, origin=spec.origin))
        loader.exec_module(module)
        return module
    return None


def _load() -> Callable[..., int]:
    try:
        extension = _extension()
    except ImportError:
        extension = None
    if extension is None:
        import crc32c as package

        return package.crc32c
    function: Callable[..., int] = extension.crc32c
    return function


crc32c: Callable[..., int] = _load()
"""crc32c(data) -> unsigned 32-bit checksum; releases the GIL for large buffers."""
