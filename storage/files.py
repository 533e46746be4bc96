"""The only module that touches the operating system's files; every other storage module goes through `Files`.

The seam exists so that tests can put another disk underneath: one that fails, tears writes, or remembers what was
synced. Rules that hold here and nowhere else: a write is whole or it raises; a `File` closes its descriptor when the
last reference to it goes, so a `FileSlice` on its way to a socket survives the deletion of its segment.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from functools import cache
from typing import cast

Buffer = bytes | bytearray | memoryview

_OPEN_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


class File:
    """An open file; the descriptor lives exactly as long as the object, or until `close`."""

    __slots__ = ("fd", "path")

    def __init__(self, fd: int, path: str) -> None:
        self.fd = fd
        self.path = path

    def read(self, length: int, position: int) -> bytes:
        """Up to `length` bytes from `position`; fewer only at the end of the file."""
        return _pread_all(self.fd, length, position)

    def close(self) -> None:
        """Close the descriptor now; closing twice is harmless."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


class FileSlice:
    """`length` bytes of `file` from `offset`: what a fetch answers, sent by sendfile or read into the response."""

    __slots__ = ("file", "length", "offset")

    def __init__(self, file: File, offset: int, length: int) -> None:
        self.file = file
        self.offset = offset
        self.length = length

    def __len__(self) -> int:
        return self.length

    def read(self) -> bytes:
        """The bytes, copied into memory. OSError when the disk fails or the file has become shorter."""
        data = self.file.read(self.length, self.offset)
        if len(data) != self.length:
            raise OSError(errno.EIO, "the file ended before what it must hold", self.file.path)
        return data


class Files:
    """The operations of a disk that storage needs. Every method raises OSError as the system does."""

    __slots__ = ()

    def open(self, path: str) -> File:
        """Open for reading and writing at explicit positions; created when missing."""
        return File(os.open(path, _OPEN_FLAGS, 0o644), path)

    def open_read(self, path: str) -> File:
        """Open an existing file for reading."""
        return File(os.open(path, os.O_RDONLY | os.O_CLOEXEC), path)

    def write_at(self, file: File, data: Buffer, position: int) -> None:
        """Write all of `data` at `position`; a short write is carried on until done or until the disk says why not."""
        written = os.pwrite(file.fd, data, position)
        if written != len(data):
            self._write_rest(file, memoryview(data)[written:], position + written)

    def _write_rest(self, file: File, rest: memoryview, position: int) -> None:
        while rest:
            written = os.pwrite(file.fd, rest, position)
            if written == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.path)
            rest = rest[written:]
            position += written

    def read_at(self, file: File, length: int, position: int) -> bytes:
        """Up to `length` bytes from `position`; fewer only at the end of the file."""
        return _pread_all(file.fd, length, position)

    def read_file(self, path: str) -> bytes:
        """The whole content of a small file."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _pread_all(fd, os.fstat(fd).st_size, 0)
        finally:
            os.close(fd)

    def truncate(self, file: File, size: int) -> None:
        """Cut (or extend with zeros) to `size` bytes."""
        os.ftruncate(file.fd, size)

    def sync(self, file: File) -> None:
        """Make the file's data durable. After an error the file's state on disk is unknown: never try again."""
        os.fdatasync(file.fd)

    def sync_file_system(self, file: File) -> bool:
        """Make all data of the file's file system durable; False where the system cannot, or cannot tell of errors.

        The file must have been open before any of the data was written: errors that happen while a descriptor is open
        are told to it. What `sync` says of errors holds here too.
        """
        syncfs = _syncfs()
        if syncfs is None:
            return False
        if syncfs(file.fd):
            import ctypes

            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), file.path)
        return True

    def sync_dir(self, path: str) -> None:
        """Make creations, renames and removals in a directory durable."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, old: str, new: str) -> None:
        """Atomically put `old` in the place of `new`."""
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        """Remove a file; a missing one is fine."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass

    def mkdirs(self, path: str) -> None:
        """Make a directory (only its owner may enter it) and its parents; existing ones are fine."""
        os.makedirs(path, 0o700, exist_ok=True)

    def remove_tree(self, path: str) -> None:
        """Remove a directory with all in it; a missing one is fine."""
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            pass

    def list_files(self, path: str) -> Iterable[tuple[str, int]]:
        """(name, size in bytes) of the regular files in a directory."""
        with os.scandir(path) as entries:
            return [(entry.name, entry.stat().st_size) for entry in entries if entry.is_file()]

    def list_dirs(self, path: str) -> Iterable[str]:
        """Names of the directories in a directory, sorted."""
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())

    def exists(self, path: str) -> bool:
        """Whether a file or directory has this name."""
        return os.path.exists(path)

    def size(self, file: File) -> int:
        """The size of an open file in bytes."""
        return os.fstat(file.fd).st_size

    def is_named(self, file: File) -> bool:
        """Whether an open file is still what its path names: not when it was removed or something is mounted above."""
        try:
            named = os.stat(file.path)
        except FileNotFoundError:
            return False
        return os.path.samestat(named, os.fstat(file.fd))

    def volume(self, path: str) -> tuple[int, int]:
        """(size, free) in bytes of the volume that holds a directory."""
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def modified_ms(self, path: str) -> int:
        """When a file was last written, in milliseconds of the wall clock."""
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, now_ms: int) -> None:
        """Make a file look as if it had last been written at this time."""
        os.utime(path, ns=(now_ms * 1_000_000, now_ms * 1_000_000))

    def lock(self, path: str) -> File | None:
        """Take the exclusive lock of a file (created when missing); None when somebody else holds it.

        The lock goes when the returned file is closed, and with the process however it ends. Two kinds are taken:
        one that works inside a process too, and the POSIX one that a JVM takes, so that Kafka itself is kept out.
        """
        file = self.open(path)
        try:
            fcntl.flock(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            file.close()
            return None
        return file


def _pread_all(fd: int, length: int, position: int) -> bytes:
    data = os.pread(fd, length, position)
    if len(data) == length or not data:
        return data
    parts = [data]  # one pread yields at most 2 GiB, and less when a signal comes in between
    got = len(data)
    while got < length:
        data = os.pread(fd, length - got, position + got)
        if not data:
            break
        parts.append(data)
        got += len(data)
    return b"".join(parts)


@cache
def _syncfs() -> Callable[[int], int] | None:
    """The C library's syncfs, where it reports failed writes (Linux 5.8); Python has none of its own."""
    if sys.platform != "linux" or tuple(int(part) for part in os.uname().release.split(".")[:2]) < (5, 8):
        return None
    import ctypes

    function = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    return cast("Callable[[int], int] | None", function)


class ReadOnlyFiles(Files):
    """A disk that is only looked at: opening makes nothing, and everything that would change something raises."""

    __slots__ = ()

    def open(self, path: str) -> File:
        """Open an existing file for reading."""
        return self.open_read(path)

    def write_at(self, file: File, data: Buffer, position: int) -> None:  # noqa: ARG002
        """Refused."""
        raise self._refusal(file.path)

    def truncate(self, file: File, size: int) -> None:  # noqa: ARG002
        """Refused."""
        raise self._refusal(file.path)

    def rename(self, old: str, new: str) -> None:  # noqa: ARG002
        """Refused."""
        raise self._refusal(old)

    def unlink(self, path: str) -> None:
        """Refused."""
        raise self._refusal(path)

    def mkdirs(self, path: str) -> None:
        """Refused."""
        raise self._refusal(path)

    def remove_tree(self, path: str) -> None:
        """Refused."""
        raise self._refusal(path)

    @staticmethod
    def _refusal(path: str) -> OSError:
        return OSError(errno.EROFS, os.strerror(errno.EROFS), path)


class UnsyncedFiles(Files):
    """A disk for data that need not outlive the machine: nothing is ever synced, all else is the same."""

    __slots__ = ()

    def sync(self, file: File) -> None:
        """Nothing: the page cache is enough."""

    def sync_file_system(self, file: File) -> bool:  # noqa: ARG002
        """Nothing: the page cache is enough."""
        return True

    def sync_dir(self, path: str) -> None:
        """Nothing: the page cache is enough."""
