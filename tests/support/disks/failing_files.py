"""`Files` on a real disk whose operations fail as a test says, and which note what changed the disk.

Of a disk in memory, whose states after a crash are known as well, `faulty_disk.py` lets operations fail; what modules
do without `Files` fails by `failing_calls.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from barnabas.storage.files import Buffer, File, Files


class FailingFiles(Files):
    """Raises `errors[operation]`, an errno, for each path that contains `errors_in`, until `errors` is cleared.

    The first `skip` of these operations succeed, and after `times` failures all do. Of a write that fails, `part` is
    on the disk. Without `is_synced` a sync does nothing.
    """

    def __init__(self, *, is_synced: bool = True, errors: dict[str, int] | None = None, errors_in: str = "") -> None:
        super().__init__()
        self.errors = errors or {}
        self.errors_in = errors_in
        self.skip = 0
        self.times: int | None = None
        self.part = 0.5
        self.done: list[tuple[str, str]] = []
        """(operation, path) of each sync, and of each rename with its new path, in their order; failed ones too."""
        self._is_synced = is_synced

    def paths(self, *operations: str) -> list[str]:
        """The paths of these operations, in their order."""
        return [path for operation, path in self.done if operation in operations]

    def before(self, operation: str, path: str) -> None:
        """Called before each operation that can fail. OSError if it fails."""
        code = self.errors.get(operation)
        if code is None or self.errors_in not in path or self.times == 0:
            return
        if self.skip > 0:
            self.skip -= 1
            return
        if self.times is not None:
            self.times -= 1
        raise OSError(code, os.strerror(code), path)

    def open(self, path: str) -> File:
        self.before("open", path)
        return super().open(path)

    def list_files(self, path: str) -> Iterable[tuple[str, int]]:
        self.before("list_files", path)
        return super().list_files(path)

    def read_at(self, file: File, length: int, position: int) -> bytes:
        self.before("read", file.path)
        return super().read_at(file, length, position)

    def read_cached(self, file: File, length: int, position: int) -> bytes | bytearray | None:
        self.before("read", file.path)
        return super().read_cached(file, length, position)

    def write_at(self, file: File, data: Buffer, position: int) -> None:
        try:
            self.before("write", file.path)
        except OSError:
            os.pwrite(file.fd, memoryview(data)[: int(len(data) * self.part)], position)
            raise
        super().write_at(file, data, position)

    def truncate(self, file: File, size: int) -> None:
        self.before("truncate", file.path)
        super().truncate(file, size)

    def sync(self, file: File) -> None:
        self.done.append(("sync", file.path))
        self.before("sync", file.path)
        if self._is_synced:
            super().sync(file)

    def sync_file_system(self, file: File) -> bool:
        self.done.append(("sync_file_system", file.path))
        self.before("sync_file_system", file.path)
        return super().sync_file_system(file) if self._is_synced else True

    def sync_dir(self, path: str) -> None:
        self.done.append(("sync_dir", path))
        self.before("sync_dir", path)
        if self._is_synced:
            super().sync_dir(path)

    def mkdirs(self, path: str) -> None:
        self.before("mkdirs", path)
        super().mkdirs(path)

    def rename(self, old: str, new: str) -> None:
        self.done.append(("rename", new))
        self.before("rename", old)
        super().rename(old, new)

    def unlink(self, path: str) -> None:
        self.before("unlink", path)
        super().unlink(path)

    def remove_tree(self, path: str) -> None:
        self.before("remove_tree", path)
        super().remove_tree(path)
