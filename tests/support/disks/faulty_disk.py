"""A disk in memory of which one operation fails, or all from one on: with an error, or after a part of a write.

Only operations that can fail with the fault's error are counted, from `arm` on. So a fault's number is between 1 and
the number in `counts` after a run without a fault.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from barnabas.storage.files import Buffer, File
from tests.support.disks.disk import Directory, Image, Inode, MemoryFile, RecordingDisk

_OPENS = frozenset({"open", "create", "open_read", "read_file", "sync_dir", "list_files", "list_dirs", "lock"})
_GROWS = frozenset({"create", "write_at", "truncate", "sync", "sync_dir", "sync_file_system", "rename", "mkdirs"})
_OTHERS = frozenset({"read", "unlink", "remove_tree", "size", "exists", "is_named", "modified_ms", "set_modified_ms"})

OPERATIONS = {
    "EIO": _OPENS | _GROWS | _OTHERS,
    "ENOSPC": _GROWS,
    "EMFILE": _OPENS,
    "short": frozenset({"write_at"}),
}
"""By kind of fault, the operations that can fail with it. `short`: half of a write is done, then it fails (ENOSPC)."""

_CODES = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "EMFILE": errno.EMFILE, "short": errno.ENOSPC}


class Fault(NamedTuple):
    """Of the operations that can fail with `error`, number `number` fails; if `is_sticky`, all after it too."""

    number: int
    error: str
    is_sticky: bool = False


class FaultyFile(MemoryFile):
    """A file whose reads can fail."""

    __slots__ = ("disk",)

    disk: FaultyDisk

    def read(self, length: int, position: int) -> bytes:
        self.disk.may_fail("read", self.path)
        return super().read(length, position)


class FaultyDisk(RecordingDisk):
    """A disk with at most one fault."""

    __slots__ = ("_fault", "_is_armed", "counts", "failed", "seen")

    def __init__(self, initial: Image | None = None) -> None:
        super().__init__(initial)
        self._is_armed = False
        self._fault: Fault | None = None
        self.counts: Counter[str] = Counter()
        """By kind of fault, how many operations could have failed with it since `arm`."""
        self.failed: list[str] = []
        """The operations that have failed."""
        self.seen: dict[str, list[str]] = {}
        """By kind of fault, the operations that `counts` has counted, when there is no fault."""

    def arm(self, fault: Fault | None = None) -> None:
        """Count operations from here on, and let `fault` happen."""
        self._is_armed, self._fault = True, fault
        self.counts.clear()
        self.seen = {error: [] for error in OPERATIONS}

    def heal(self) -> None:
        """No operation fails any more."""
        self._is_armed, self._fault = False, None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing fails and nothing is counted meanwhile: a test looks at the broker."""
        was_armed, self._is_armed = self._is_armed, False
        try:
            yield
        finally:
            self._is_armed = was_armed

    def unlock(self) -> None:
        """The process has ended that has locked files."""
        self._locks.clear()

    def content(self) -> Image:
        """The content of the disk, as a process that starts now finds it."""
        return _image(self._tops[""])

    def may_fail(self, operation: str, path: str) -> None:
        """Count an operation, and raise the error of the fault if it is due."""
        if not self._is_armed:
            return
        counts, fault = self.counts, self._fault
        for error, operations in OPERATIONS.items():
            if operation in operations:
                counts[error] += 1
                if fault is None:
                    self.seen[error].append(f"{operation} {path}")
        if fault is None or operation not in OPERATIONS.get(fault.error, ()):
            return
        at = counts[fault.error]
        if at == fault.number or (fault.is_sticky and at > fault.number):
            self.failed.append(f"{operation} {path}")
            code = _CODES[fault.error]
            raise OSError(code, os.strerror(code), path)

    # --- operations

    def open(self, path: str) -> File:
        self.may_fail("open" if self._has(path) else "create", path)
        return self._faulty(super().open(path))

    def open_read(self, path: str) -> File:
        self.may_fail("open_read", path)
        return self._faulty(super().open_read(path))

    def _faulty(self, file: File) -> FaultyFile:
        assert isinstance(file, MemoryFile)
        faulty = FaultyFile(file.node, file.path)
        faulty.disk = self
        return faulty

    def write_at(self, file: File, data: Buffer, position: int) -> None:
        try:
            self.may_fail("write_at", file.path)
        except OSError:
            assert self._fault is not None
            if self._fault.error == "short":
                super().write_at(file, memoryview(data)[: len(data) // 2], position)
            raise
        super().write_at(file, data, position)

    def read_file(self, path: str) -> bytes:
        self.may_fail("read_file", path)
        return super().read_file(path)

    def truncate(self, file: File, size: int) -> None:
        self.may_fail("truncate", file.path)
        super().truncate(file, size)

    def sync(self, file: File) -> None:
        self.may_fail("sync", file.path)
        super().sync(file)

    def sync_file_system(self, file: File) -> bool:
        self.may_fail("sync_file_system", file.path)
        return super().sync_file_system(file)

    def sync_dir(self, path: str) -> None:
        self.may_fail("sync_dir", path)
        super().sync_dir(path)

    def rename(self, old: str, new: str) -> None:
        self.may_fail("rename", old)
        super().rename(old, new)

    def unlink(self, path: str) -> None:
        self.may_fail("unlink", path)
        super().unlink(path)

    def mkdirs(self, path: str) -> None:
        self.may_fail("mkdirs", path)
        super().mkdirs(path)

    def remove_tree(self, path: str) -> None:
        self.may_fail("remove_tree", path)
        super().remove_tree(path)

    def list_files(self, path: str) -> list[tuple[str, int]]:
        self.may_fail("list_files", path)
        return super().list_files(path)

    def list_dirs(self, path: str) -> list[str]:
        self.may_fail("list_dirs", path)
        return super().list_dirs(path)

    def exists(self, path: str) -> bool:
        self.may_fail("exists", path)
        return super().exists(path)

    def size(self, file: File) -> int:
        self.may_fail("size", file.path)
        return super().size(file)

    def is_named(self, file: File) -> bool:
        self.may_fail("is_named", file.path)
        return super().is_named(file)

    def modified_ms(self, path: str) -> int:
        self.may_fail("modified_ms", path)
        return super().modified_ms(path)

    def set_modified_ms(self, path: str, now_ms: int) -> None:
        self.may_fail("set_modified_ms", path)
        super().set_modified_ms(path, now_ms)

    def lock(self, path: str) -> File | None:
        self.may_fail("lock", path)
        return super().lock(path)  # opens the file


def _image(directory: Directory) -> Image:
    return {
        name: bytes(node.data) if isinstance(node, Inode) else _image(node) for name, node in directory.names.items()
    }
