"""Reads from the page cache: what was written a moment ago is in it, on every file system and however full memory is.

The broker asks with RWF_NOWAIT whether it has to wait for a disk. Some file systems (tmpfs) do not know the flag, and a
machine without free memory drops pages: the broker would do other work then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

_preadv = os.preadv


def replace_preadv(system_call: Callable[[str], None]) -> None:
    """Have `os.preadv` read without the flag; `system_call` is called for it."""

    def preadv(fd: int, buffers: Sequence[Any], offset: int, flags: int = 0) -> int:
        system_call("preadv2")
        return _preadv(fd, buffers, offset, flags & ~getattr(os, "RWF_NOWAIT", 0))

    os.preadv = preadv  # type: ignore[assignment]
