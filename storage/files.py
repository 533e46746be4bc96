"""The only module that calls the operating system for files; every other storage module uses `Files`.

So tests can replace the disk by a disk that fails, tears writes, or records what was synced. A write is complete or it
raises. A `File` closes its descriptor when the last reference to it is released, so a `FileSlice` that is being sent
survives the deletion of its segment.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from functools import cache
from typing import cast

from barnabas.storage import system_calls
from barnabas.storage.open_files import OpenFiles
from barnabas.storage.system_calls import sync_data

Buffer = bytes | bytearray | memoryview

_NOWAIT = getattr(os, "RWF_NOWAIT", None)  # Linux 4.14
_OPEN_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


class File:
    """An open file; the descriptor is open as long as the object exists, or until `close`."""

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


class BytesFile(File):
    """A part of a file that has been read already; it has no descriptor."""

    __slots__ = ("_data", "_start")

    def __init__(self, path: str, data: bytes, start: int) -> None:
        """`start` is the position of `data` in the file."""
        self.fd = -1
        self.path = path
        self._data = data
        self._start = start

    def read(self, length: int, position: int) -> bytes:
        """Up to `length` bytes from `position`."""
        at = position - self._start
        return self._data[at : at + length]

    def __del__(self) -> None:
        """There is nothing to close."""


class FileSlice:
    """`length` bytes of `file` from `offset`: the records of a fetch response, sent with sendfile or copied into it."""

    __slots__ = ("file", "length", "offset")

    def __init__(self, file: File, offset: int, length: int) -> None:
        self.file = file
        self.offset = offset
        self.length = length

    def __len__(self) -> int:
        return self.length

    @property
    def is_in_memory(self) -> bool:
        """Whether the bytes have been read already, so that there is no descriptor to send them from."""
        return self.file.fd < 0

    def read_from_cache(self) -> memoryview | None:
        """The bytes, copied into memory without waiting for the disk; None if they are not in the page cache.

        Where the system or the file system does not support it, they are read. OSError as `read`.
        """
        fd = self.file.fd
        if fd < 0 or _NOWAIT is None:
            return memoryview(self.read())
        data = bytearray(self.length)
        try:
            if os.preadv(fd, [data], self.offset, _NOWAIT) == self.length:
                return memoryview(data)
        except BlockingIOError:
            return None
        except OSError:
            return memoryview(self.read())
        return None

    def read(self) -> bytes:
        """The bytes, copied into memory. OSError when the disk fails or the file is shorter."""
        data = self.file.read(self.length, self.offset)
        if len(data) != self.length:
            raise OSError(errno.EIO, "the file ended early", self.file.path)
        return data


class Files:
    """The file operations that storage needs. Every method raises OSError as the system does."""

    __slots__ = ("open_files",)

    def __init__(self) -> None:
        self.open_files = OpenFiles()
        """The log files that are kept open."""

    def open(self, path: str) -> File:
        """Open for reading and writing at explicit positions; created when missing."""
        return File(self._open(path, _OPEN_FLAGS), path)

    def open_read(self, path: str) -> File:
        """Open an existing file for reading."""
        return File(self._open(path, os.O_RDONLY | os.O_CLOEXEC), path)

    def _open(self, path: str, flags: int) -> int:
        """A new descriptor; while there is none left, log files are closed, one after the other."""
        while True:
            try:
                return os.open(path, flags, 0o600)  # records may be secret
            except OSError as error:
                if error.errno != errno.EMFILE or not self.open_files.make_room():
                    raise

    def write_at(self, file: File, data: Buffer, position: int) -> None:
        """Write all of `data` at `position`; a short write is continued until it is complete or fails."""
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

    def read_cached(self, file: File, length: int, position: int) -> bytes | bytearray | None:
        """These bytes if all are in the page cache, else None; where the system cannot say, they are read."""
        if _NOWAIT is None or file.fd < 0:
            return self.read_at(file, length, position)
        data = bytearray(length)
        try:
            return data if os.preadv(file.fd, [data], position, _NOWAIT) == length else None
        except BlockingIOError:
            return None
        except OSError:
            return self.read_at(file, length, position)

    def read_file(self, path: str) -> bytes:
        """The whole content of a small file."""
        fd = self._open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _pread_all(fd, os.fstat(fd).st_size, 0)
        except OSError as error:
            error.filename = path
            raise
        finally:
            os.close(fd)

    def truncate(self, file: File, size: int) -> None:
        """Truncate the file, or extend it with zeros, to `size` bytes."""
        os.ftruncate(file.fd, size)

    @property
    def is_published(self) -> bool:
        """Whether other processes find the files."""
        return True

    def publish(self) -> None:
        """Make all files visible to other processes, as files of the system are. OSError if that fails."""

    def sync(self, file: File) -> None:
        """Make the file's data durable. After an error the file's state on disk is unknown: never retry."""
        sync_data(file.fd)

    def sync_file_system(self, file: File) -> bool:
        """Make all data of the file's file system durable; False where the system cannot, or does not report errors.

        The file must have been open before any of the data was written: the system reports errors to descriptors that
        were open when they happened. After an error never retry, as with `sync`.
        """
        syncfs = _syncfs()
        if syncfs is None:
            return False
        if syncfs(file.fd):
            import ctypes

            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), file.path)
        return True

    def can_sync_file_system(self) -> bool:
        """Whether `sync_file_system` works here."""
        return _syncfs() is not None

    def device(self, file: File) -> int:
        """The number of the file system of an open file."""
        return os.fstat(file.fd).st_dev

    def sync_dir(self, path: str) -> None:
        """Make creations, renames and removals in a directory durable."""
        fd = self._open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            system_calls.sync(fd)
        finally:
            os.close(fd)

    def rename(self, old: str, new: str) -> None:
        """Atomically rename `old` to `new`, replacing an existing file."""
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        """Remove a file if it exists."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass

    def mkdirs(self, path: str) -> None:
        """Make a directory, accessible only for its owner, and its parents, where they are missing."""
        os.makedirs(path, 0o700, exist_ok=True)

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything in it, if it exists."""
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

    def is_on_same_file_system(self, path: str, other: str) -> bool:
        """Whether two existing paths are on the same file system."""
        return os.stat(path).st_dev == os.stat(other).st_dev

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory with this path. OSError when the disk fails."""
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def size(self, file: File) -> int:
        """The size of an open file in bytes."""
        return os.fstat(file.fd).st_size

    def is_named(self, file: File) -> bool:
        """Whether the path of an open file still refers to it: not if it was removed, renamed or mounted over."""
        try:
            named = os.stat(file.path)
        except FileNotFoundError:
            return False
        return os.path.samestat(named, os.fstat(file.fd))

    def volume(self, path: str) -> tuple[int, int]:
        """(size, free) in bytes of the volume that holds a directory."""
        status = os.statvfs(path)
        return status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize

    def modified_ms(self, path: str) -> int:
        """When a file was last written, in milliseconds of the wall clock."""
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, now_ms: int) -> None:
        """Set the modification time of a file, in milliseconds."""
        os.utime(path, ns=(now_ms * 1_000_000, now_ms * 1_000_000))

    def has_descriptors(self, count: int) -> bool:
        """Whether this process can open `count` more descriptors now; log files are closed for that."""
        taken: list[int] = []
        try:
            while len(taken) < count:
                taken.append(self._open("/", os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            return False
        finally:
            for descriptor in taken:
                os.close(descriptor)
        return True

    def lock(self, path: str) -> File | None:
        """Take the exclusive lock of a file (created when missing); None when it is held by another.

        The lock is released when the returned file is closed or the process ends. Kafka itself is locked out, too.
        """
        file = self.open(path)
        if not system_calls.lock(file.fd):
            file.close()
            return None
        return file


def _pread_all(fd: int, length: int, position: int) -> bytes:
    data = os.pread(fd, length, position)
    if len(data) == length or not data:
        return data
    parts = [data]  # one pread returns at most 2 GiB, and less when a signal interrupts it
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
    """The C library's syncfs, where it reports failed writes (from Linux 5.8); Python has no binding for it."""
    if sys.platform == "linux" and tuple(int(part) for part in os.uname().release.split(".")[:2]) >= (5, 8):
        import ctypes

        function = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        return cast("Callable[[int], int] | None", function)
    return None


class ReadOnlyFiles(Files):
    """Read-only access: opening creates no file, and every operation that would change something raises EROFS."""

    __slots__ = ()

    def open(self, path: str) -> File:
        """Open an existing file for reading."""
        return self.open_read(path)

    def write_at(self, file: File, data: Buffer, position: int) -> None:  # noqa: ARG002
        """Raises EROFS."""
        raise self._read_only_error(file.path)

    def truncate(self, file: File, size: int) -> None:  # noqa: ARG002
        """Raises EROFS."""
        raise self._read_only_error(file.path)

    def rename(self, old: str, new: str) -> None:  # noqa: ARG002
        """Raises EROFS."""
        raise self._read_only_error(old)

    def unlink(self, path: str) -> None:
        """Raises EROFS."""
        raise self._read_only_error(path)

    def mkdirs(self, path: str) -> None:
        """Raises EROFS."""
        raise self._read_only_error(path)

    def remove_tree(self, path: str) -> None:
        """Raises EROFS."""
        raise self._read_only_error(path)

    @staticmethod
    def _read_only_error(path: str) -> OSError:
        return OSError(errno.EROFS, os.strerror(errno.EROFS), path)


class UnsyncedFiles(Files):
    """Files without syncs, for data that need not survive a power failure."""

    __slots__ = ()

    def sync(self, file: File) -> None:
        """Do nothing: the page cache is enough."""

    def sync_file_system(self, file: File) -> bool:  # noqa: ARG002
        """Do nothing: the page cache is enough."""
        return True

    def sync_dir(self, path: str) -> None:
        """Do nothing: the page cache is enough."""
