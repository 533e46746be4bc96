"""The files of a virtual cluster: in memory, until they are many, or large, or others have to read them.

Most tests write some records, and making a file costs a file system 0.2 ms. So nothing is made on disk before
`publish`: then all of it is there, each file that is open goes on with a descriptor, and the system's files are used
from there on. That happens once: before the directory is copied or another process uses it, or when `MOST_BYTES` or
`MOST_NAMES` is exceeded.

Invariants: a path has the same meaning before and after. Threads may use all of it. A `publish` that fails leaves
everything in memory, and nothing on disk. Paths that are not below `root` are the system's. Nothing is synced.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from weakref import WeakSet

from barnabas.broker.world import wall_clock_ms
from barnabas.kit.clusters.directories import remove
from barnabas.storage.files import Buffer, File, UnsyncedFiles

MOST_BYTES: Final = 1024 * 1024
"""Bytes that a cluster keeps in memory at most."""
MOST_NAMES: Final = 1000
"""Files and directories that a cluster has in memory at most; the partitions of the internal topics are 200."""


class Content:
    """The content of a file, shared by all its open files."""

    __slots__ = ("data", "modified_ms", "path")

    def __init__(self, path: str) -> None:
        self.data = bytearray()
        self.modified_ms = wall_clock_ms()
        self.path = path
        """Its name now, "" if it has none any more."""


class MemoryFile(File):
    """An open file; without a descriptor until its content is on disk."""

    __slots__ = ("__weakref__", "content")

    def __init__(self, content: Content, path: str) -> None:
        super().__init__(-1, path)
        self.content: Content | None = content

    def read(self, length: int, position: int) -> bytes:
        """Up to `length` bytes from `position`; fewer only at the end of the file."""
        if (content := self.content) is None:
            return super().read(length, position)
        return bytes(content.data[position : position + length])

    def close(self) -> None:
        """Close it: it cannot be read any more."""
        self.content = None
        super().close()


class MemoryFiles(UnsyncedFiles):
    """The files below one directory, which does not exist on disk before `publish`."""

    __slots__ = ("_directories", "_is_published", "_lock", "_names", "_opened", "_size", "root")

    def __init__(self, root: str) -> None:
        super().__init__()
        self.root = root
        self._lock = threading.RLock()
        self._directories: dict[str, dict[str, Content | None]] = {}
        """The content by path, None for a directory."""
        self._opened: WeakSet[MemoryFile] = WeakSet()
        self._size = 0
        self._names = 0
        self._is_published = False

    @property
    def is_published(self) -> bool:
        """Whether the directory is on disk."""
        return self._is_published

    def publish(self) -> None:
        """Write all to the disk, and use it from now on. OSError: then all is as before."""
        with self._lock:
            if self._is_published or not self._directories:
                return
            opened: list[tuple[MemoryFile, int]] = []
            try:
                self._write_all()
                for file, path in self._open_now():
                    opened.append((file, self._open(path, os.O_RDWR | os.O_CLOEXEC)))
            except BaseException:
                for _, descriptor in opened:
                    os.close(descriptor)
                remove(Path(self.root))
                raise
            self._is_published = True
            for file, descriptor in opened:
                file.fd = descriptor
                file.content = None
            self._directories.clear()

    def _open_now(self) -> list[tuple[MemoryFile, str]]:
        """The files that are open, with the names that they have now; one without a name stays in memory."""
        files = ((file, file.content) for file in self._opened)
        return [(file, content.path) for file, content in files if content is not None and content.path]

    def discard(self) -> None:
        """Drop all content in memory, at the end, without writing it."""
        with self._lock:
            self._directories.clear()

    def _write_all(self) -> None:
        for path in sorted(self._directories):  # parents first
            super().mkdirs(path)
            for content in self._directories[path].values():
                if content is not None:
                    file = super().open(content.path)
                    super().write_at(file, content.data, 0)
                    file.close()
                    super().set_modified_ms(content.path, content.modified_ms)

    def _is_held(self, path: str) -> bool:
        """Whether a path is in memory."""
        return not self._is_published and path.startswith(self.root) and path[len(self.root) :][:1] in {"", "/"}

    def _entry(self, path: str) -> Content | None:
        """The content at a path, None for a directory. FileNotFoundError."""
        if path in self._directories:
            return None
        folder, _, name = path.rpartition("/")
        entries = self._directories.get(folder, {})
        if name not in entries:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return entries[name]

    def _file(self, path: str) -> Content:
        content = self._entry(path)
        if content is None:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return content

    def _opened_file(self, content: Content, path: str) -> MemoryFile:
        file = MemoryFile(content, path)
        self._opened.add(file)
        return file

    def _grown(self, size: int, names: int) -> None:
        """Count added bytes and names, and publish all when they exceed a limit."""
        self._size += size
        self._names += names
        if self._size > MOST_BYTES or self._names > MOST_NAMES:
            self.publish()

    def _resized(self, content: Content, before: int) -> None:
        if content.path:
            self._grown(len(content.data) - before, 0)

    # -- opening

    def open(self, path: str) -> File:
        """Open for reading and writing at explicit positions; created when missing."""
        with self._lock:
            if not self._is_held(path):
                return super().open(path)
            try:
                return self._opened_file(self._file(path), path)
            except FileNotFoundError:
                folder, _, name = path.rpartition("/")
                if folder not in self._directories:
                    raise
            self._grown(0, 1)
            if self._is_published:
                return super().open(path)
            content = self._directories[folder][name] = Content(path)
            return self._opened_file(content, path)

    def open_read(self, path: str) -> File:
        """Open an existing file for reading."""
        with self._lock:
            if not self._is_held(path):
                return super().open_read(path)
            return self._opened_file(self._file(path), path)

    def lock(self, path: str) -> File | None:
        """Take the exclusive lock of a file; in memory it is free, since the directory's name is new."""
        with self._lock:
            return self.open(path) if self._is_held(path) else super().lock(path)

    # -- open files

    def write_at(self, file: File, data: Buffer, position: int) -> None:
        """Write all of `data` at `position`."""
        with self._lock:
            content = file.content if isinstance(file, MemoryFile) else None
            if content is None:
                super().write_at(file, data, position)
                return
            before = len(content.data)
            if not len(data):
                return  # as with the system, this does not extend the file
            if position > before:
                content.data.extend(bytes(position - before))
            content.data[position : position + len(data)] = data
            content.modified_ms = wall_clock_ms()
            self._resized(content, before)

    def read_at(self, file: File, length: int, position: int) -> bytes:
        """Up to `length` bytes from `position`; fewer only at the end of the file."""
        return file.read(length, position)

    def read_cached(self, file: File, length: int, position: int) -> bytes:
        """As `read_at`: all of it is in memory."""
        return self.read_at(file, length, position)

    def truncate(self, file: File, size: int) -> None:
        """Truncate the file, or extend it with zeros, to `size` bytes."""
        with self._lock:
            content = file.content if isinstance(file, MemoryFile) else None
            if content is None:
                super().truncate(file, size)
                return
            before = len(content.data)
            del content.data[size:]
            content.data.extend(bytes(max(0, size - before)))
            content.modified_ms = wall_clock_ms()
            self._resized(content, before)

    def size(self, file: File) -> int:
        """The size of an open file in bytes."""
        with self._lock:
            content = file.content if isinstance(file, MemoryFile) else None
            return super().size(file) if content is None else len(content.data)

    def device(self, file: File) -> int:
        """The number of the file system of an open file."""
        with self._lock:
            return Path(_parent(self.root)).stat().st_dev if file.fd < 0 else super().device(file)

    def is_named(self, file: File) -> bool:
        """Whether the path of an open file still refers to it."""
        with self._lock:
            content = file.content if isinstance(file, MemoryFile) else None
            return super().is_named(file) if content is None else content.path == file.path

    # -- names

    def read_file(self, path: str) -> bytes:
        """The whole content of a small file."""
        with self._lock:
            return bytes(self._file(path).data) if self._is_held(path) else super().read_file(path)

    def rename(self, old: str, new: str) -> None:
        """Atomically rename `old` to `new`, replacing an existing file."""
        with self._lock:
            if not self._is_held(old):
                super().rename(old, new)
                return
            if old == new:
                self._entry(old)
                return
            content = self._entry(old)
            folder, _, name = new.rpartition("/")
            if folder not in self._directories:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), new)
            if content is None:
                self._rename_directory(old, new)
                return
            self._forget(new)
            self._take_name(old)
            self._directories[folder][name] = content
            content.path = new

    def _rename_directory(self, old: str, new: str) -> None:
        if self._directories.get(new):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), new)
        for path in list(self._below(old)):
            entries = self._directories.pop(path)
            moved = new + path[len(old) :]
            self._directories[moved] = entries
            for name, content in entries.items():
                if content is not None:
                    content.path = f"{moved}/{name}"
        self._take_name(old)
        folder, _, name = new.rpartition("/")
        self._directories[folder][name] = None

    def _below(self, path: str) -> Iterator[str]:
        """A directory, and the paths in it."""
        return (directory for directory in self._directories if directory == path or directory.startswith(f"{path}/"))

    def _take_name(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        self._directories.get(folder, {}).pop(name, None)

    def _forget(self, path: str) -> None:
        """Remove the name of a file, if it exists; open files of it stay usable."""
        try:
            content = self._file(path)
        except FileNotFoundError:
            return
        self._take_name(path)
        content.path = ""
        self._size -= len(content.data)
        self._names -= 1

    def unlink(self, path: str) -> None:
        """Remove a file if it exists."""
        with self._lock:
            if self._is_held(path):
                self._forget(path)
            else:
                super().unlink(path)

    def mkdirs(self, path: str) -> None:
        """Make a directory and its parents, where they are missing."""
        with self._lock:
            if not self._is_held(path):
                super().mkdirs(path)
            elif path not in self._directories:
                self._grown(0, 1)
                if self._is_published:
                    super().mkdirs(path)
                    return
                if path != self.root:
                    folder, _, name = path.rpartition("/")
                    self.mkdirs(folder)
                    if name in self._directories[folder]:
                        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
                    self._directories[folder][name] = None
                self._directories[path] = {}

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything in it, if it exists."""
        with self._lock:
            if not self._is_held(path):
                super().remove_tree(path)
                return
            for directory in list(self._below(path)):
                for name, content in list(self._directories[directory].items()):
                    if content is not None:
                        self._forget(f"{directory}/{name}")
                del self._directories[directory]
                self._names -= 1
            self._take_name(path)

    def list_files(self, path: str) -> Iterable[tuple[str, int]]:
        """(name, size in bytes) of the files in a directory."""
        with self._lock:
            if not self._is_held(path):
                return super().list_files(path)
            return [(name, len(content.data)) for name, content in self._listed(path).items() if content is not None]

    def list_dirs(self, path: str) -> Iterable[str]:
        """Names of the directories in a directory, sorted."""
        with self._lock:
            if not self._is_held(path):
                return super().list_dirs(path)
            return sorted(name for name, content in self._listed(path).items() if content is None)

    def _listed(self, path: str) -> dict[str, Content | None]:
        try:
            return self._directories[path]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None

    def is_on_same_file_system(self, path: str, other: str) -> bool:
        """Whether two existing paths are on the same file system."""
        with self._lock:
            paths = [_parent(self.root) if self._is_held(name) else name for name in (path, other)]
            return super().is_on_same_file_system(*paths)

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory with this path."""
        with self._lock:
            if not self._is_held(path):
                return super().exists(path)
            try:
                self._entry(path)
            except FileNotFoundError:
                return False
            return True

    def volume(self, path: str) -> tuple[int, int]:
        """(size, free) in bytes of the volume that holds a directory."""
        with self._lock:
            return super().volume(_parent(self.root) if self._is_held(path) else path)

    def modified_ms(self, path: str) -> int:
        """When a file was last written, in milliseconds of the wall clock."""
        with self._lock:
            return self._file(path).modified_ms if self._is_held(path) else super().modified_ms(path)

    def set_modified_ms(self, path: str, now_ms: int) -> None:
        """Set the modification time of a file, in milliseconds."""
        with self._lock:
            if self._is_held(path):
                self._file(path).modified_ms = now_ms
            else:
                super().set_modified_ms(path, now_ms)


def _parent(path: str) -> str:
    """Where a directory is, or will be."""
    return path.rpartition("/")[0] or "/"
