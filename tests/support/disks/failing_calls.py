"""Lets the n-th operation on files fail: what Python's `open`, `pathlib` and `os` ask of the system.

Only operations on paths below a folder count, on descriptors that were opened there, on files in memory, and copies in
the kernel. `counted` names them, so that a run without a fault shows how many there are.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

_BY_PATH = (
    "open",
    "mkdir",
    "chmod",
    "stat",
    "lstat",
    "unlink",
    "remove",
    "rename",
    "replace",
    "scandir",
    "listdir",
    "link",
)
_BY_DESCRIPTOR = ("write", "fsync")
_ALWAYS = ("memfd_create", "copy_file_range")


class FailingCalls:
    """A context in which the operation `number` (from 1) below `folder` fails with `code`; 0: none does.

    Operations named in `but`, such as `stat .lock`, do not count: other processes do them at any time.
    """

    def __init__(self, folder: Path, number: int = 0, code: int = errno.EIO, but: tuple[str, ...] = ()) -> None:
        self._folder = str(folder)
        self._but = but
        self._number, self._code = number, code
        self._descriptors: set[int] = set()
        self._real: dict[str, Callable[..., Any]] = {}
        self.counted: list[str] = []

    @property
    def has_failed(self) -> bool:
        """Whether there were so many operations."""
        return 0 < self._number <= len(self.counted)

    def __enter__(self) -> FailingCalls:
        for name in (*_BY_PATH, *_BY_DESCRIPTOR, *_ALWAYS, "close"):
            if hasattr(os, name):
                self._real[name] = getattr(os, name)
                setattr(os, name, self._instead(name))
        self._real["builtin"] = builtins.open
        builtins.open = io.open = self._open_file
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        builtins.open = io.open = self._real.pop("builtin")  # type: ignore[assignment]
        for name, real in self._real.items():
            setattr(os, name, real)

    def _instead(self, name: str) -> Callable[..., Any]:
        real = self._real[name]

        def operation(*arguments: Any, **options: Any) -> Any:
            target = arguments[0] if arguments else None
            if name == "close":
                self._descriptors.discard(target)
            elif name in _ALWAYS:
                self._count(name, None)
            elif isinstance(target, int):
                if target in self._descriptors:
                    self._count(name, None)
            elif self._is_below(target):
                self._count(name, target)
            result = real(*arguments, **options)
            if name == "memfd_create" or (name == "open" and self._is_below(target)):
                self._descriptors.add(result)
            return result

        return operation

    def _open_file(self, file: Any, *arguments: Any, **options: Any) -> Any:
        if not self._is_below(file):
            return self._real["builtin"](file, *arguments, **options)
        self._count("open", file)
        opened = self._real["builtin"](file, *arguments, **options)
        try:
            self._count("read", file)
        except OSError:
            opened.close()
            raise
        return opened

    def _is_below(self, path: Any) -> bool:
        return isinstance(path, str | os.PathLike) and os.fspath(path).startswith(self._folder)

    def _count(self, name: str, path: Any) -> None:
        description = f"{name} {Path(path).name}" if path else name
        if description in self._but:
            return
        self.counted.append(description)
        if len(self.counted) == self._number:
            if path is None:
                raise OSError(self._code, os.strerror(self._code))
            raise OSError(self._code, os.strerror(self._code), os.fspath(path))
