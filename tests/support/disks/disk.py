"""A disk in memory that records every operation, so that crashes can be simulated from its history.

It behaves like the page cache of a running system: written data is visible immediately. `survivors.py` computes from
`operations` what a power failure may leave. Files and directories are numbered, since names change. Misuse raises
immediately: a read of a closed file, a rename between directories, removal of a directory that is not empty.
"""

from __future__ import annotations

import errno
import os
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from barnabas.storage.files import Buffer, File, Files

Image = dict[str, "bytes | Image"]
"""The content of a directory: name -> bytes of a file, or a directory."""


@dataclass(slots=True)
class Write:
    """Bytes were written into a file."""

    file: int
    position: int
    data: bytes


@dataclass(slots=True)
class Truncate:
    """A file was cut or extended with zeros."""

    file: int
    size: int


@dataclass(slots=True)
class Sync:
    """A file's data and size were made durable."""

    file: int


@dataclass(slots=True)
class Link:
    """A file or directory was created with a name."""

    directory: int
    name: str
    number: int
    is_directory: bool


@dataclass(slots=True)
class Rename:
    """A name was changed, replacing the node that had the new name."""

    directory: int
    old: str
    new: str
    number: int


@dataclass(slots=True)
class Unlink:
    """A name was removed."""

    directory: int
    name: str
    number: int


@dataclass(slots=True)
class SyncDirectory:
    """The names in a directory were made durable."""

    directory: int


@dataclass(slots=True)
class Note:
    """Not a disk operation: a promise to clients, or a change that they may see, from here on."""

    what: Any


Operation = Write | Truncate | Sync | Link | Rename | Unlink | SyncDirectory | Note


class Inode:
    """A file's content; shared with the image it came from until it is changed."""

    __slots__ = ("data", "number")

    def __init__(self, number: int, data: bytes) -> None:
        self.number = number
        self.data: bytes | bytearray = data

    def changeable(self) -> bytearray:
        """The content as a bytearray."""
        data = self.data
        if isinstance(data, bytes):
            data = self.data = bytearray(data)
        return data


class Directory:
    """The names in a directory."""

    __slots__ = ("names", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.names: dict[str, Inode | Directory] = {}


class MemoryFile(File):
    """An open file of a `RecordingDisk`; it has no descriptor."""

    __slots__ = ("__weakref__", "_node")

    def __init__(self, node: Inode, path: str) -> None:
        super().__init__(-1, path)
        self._node: Inode | None = node

    @property
    def node(self) -> Inode:
        """The file, if it is open."""
        if self._node is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.path)
        return self._node

    def read(self, length: int, position: int) -> bytes:
        return bytes(self.node.data[position : position + length])

    def close(self) -> None:
        """Close the file: every later use raises."""
        self._node = None


class RecordingDisk(Files):
    """Files in memory below `/`, and the operations since the disk was as in `initial`."""

    __slots__ = ("_count", "_locks", "_tops", "during_sync", "initial_directories", "initial_files", "operations")

    def __init__(self, initial: Image | None = None) -> None:
        super().__init__()
        self._count = 0
        self._locks: dict[str, weakref.ref[MemoryFile]] = {}
        self.operations: list[Operation] = []
        self.initial_files: dict[int, bytes] = {}
        self.initial_directories: dict[int, dict[str, int]] = {}
        self.during_sync: Callable[[], None] | None = None  # called during every sync: the work of other threads
        self._tops: dict[str, Directory] = {"": self._restore(initial or {})}

    def _restore(self, image: Image) -> Directory:
        directory = Directory(self._new_number())
        names = self.initial_directories[directory.number] = {}
        for name, content in image.items():
            node = self._restore(content) if isinstance(content, dict) else Inode(self._new_number(), content)
            if isinstance(node, Inode):
                self.initial_files[node.number] = bytes(node.data)
            directory.names[name] = node
            names[name] = node.number
        return directory

    def _new_number(self) -> int:
        self._count += 1
        return self._count

    def note(self, what: Any) -> Note:
        """Add a note to the history; its content may be set later."""
        note = Note(what)
        self.operations.append(note)
        return note

    # --- names

    def _directory(self, path: str) -> Directory:
        at = self._tops[""]
        for name in path.split("/"):
            if name:
                entry = at.names.get(name)
                if not isinstance(entry, Directory):
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
                at = entry
        return at

    def _file(self, path: str) -> Inode | None:
        parent, _, name = path.rpartition("/")
        entry = self._directory(parent).names.get(name)
        if isinstance(entry, Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return entry

    def _existing(self, path: str) -> Inode:
        node = self._file(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return node

    def open(self, path: str) -> File:
        node = self._file(path)
        if node is None:
            parent, _, name = path.rpartition("/")
            directory = self._directory(parent)
            node = directory.names[name] = Inode(self._new_number(), b"")
            self.operations.append(Link(directory.number, name, node.number, is_directory=False))
        return MemoryFile(node, path)

    def open_read(self, path: str) -> File:
        return MemoryFile(self._existing(path), path)

    def rename(self, old: str, new: str) -> None:
        parent, _, old_name = old.rpartition("/")
        new_parent, _, new_name = new.rpartition("/")
        assert parent == new_parent, "storage renames inside a directory only"
        directory = self._directory(parent)
        if old_name not in directory.names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), old)
        node = directory.names[old_name]
        replaced = directory.names.get(new_name)
        if isinstance(replaced, Directory) and replaced.names:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), new)
        del directory.names[old_name]
        directory.names[new_name] = node
        self.operations.append(Rename(directory.number, old_name, new_name, node.number))

    def unlink(self, path: str) -> None:
        parent, _, name = path.rpartition("/")
        if self._has(path):
            node = self._existing(path)
            directory = self._directory(parent)
            del directory.names[name]
            self.operations.append(Unlink(directory.number, name, node.number))

    def mkdirs(self, path: str) -> None:
        at = self._tops[""]
        for name in path.split("/"):
            if not name:
                continue
            entry = at.names.get(name)
            if entry is None:
                entry = at.names[name] = Directory(self._new_number())
                self.operations.append(Link(at.number, name, entry.number, is_directory=True))
            if not isinstance(entry, Directory):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            at = entry

    def remove_tree(self, path: str) -> None:
        if not self._has(path):
            return
        directory = self._directory(path)
        for name, node in list(directory.names.items()):
            if isinstance(node, Directory):
                self.remove_tree(f"{path}/{name}")
            else:
                self.unlink(f"{path}/{name}")
        parent, _, name = path.rpartition("/")
        above = self._directory(parent)
        del above.names[name]
        self.operations.append(Unlink(above.number, name, directory.number))

    def list_files(self, path: str) -> list[tuple[str, int]]:
        names = self._directory(path).names
        return [(name, len(node.data)) for name, node in names.items() if isinstance(node, Inode)]

    def list_dirs(self, path: str) -> list[str]:
        names = self._directory(path).names
        return sorted(name for name, node in names.items() if isinstance(node, Directory))

    def is_on_same_file_system(self, path: str, other: str) -> bool:
        return True

    def exists(self, path: str) -> bool:
        return self._has(path)

    def _has(self, path: str) -> bool:
        parent, _, name = path.rpartition("/")
        try:
            return not name or name in self._directory(parent).names
        except FileNotFoundError:
            return False

    # --- data

    def write_at(self, file: File, data: Buffer, position: int) -> None:
        node = _node(file)
        if not len(data):
            return
        content = node.changeable()
        if position > len(content):
            content.extend(bytes(position - len(content)))
        content[position : position + len(data)] = data
        self.operations.append(Write(node.number, position, bytes(data)))

    def read_at(self, file: File, length: int, position: int) -> bytes:
        return file.read(length, position)

    def read_file(self, path: str) -> bytes:
        return bytes(self._existing(path).data)

    def truncate(self, file: File, size: int) -> None:
        node = _node(file)
        if len(node.data) == size:
            return
        content = node.changeable()
        del content[size:]
        content.extend(bytes(size - len(content)))
        self.operations.append(Truncate(node.number, size))

    def size(self, file: File) -> int:
        return len(_node(file).data)

    def read_cached(self, file: File, length: int, position: int) -> bytes:
        return self.read_at(file, length, position)

    def is_named(self, file: File) -> bool:
        assert isinstance(file, MemoryFile)
        return self._has(file.path) and self._file(file.path) is file.node

    def modified_ms(self, path: str) -> int:
        return 0 if self._existing(path) else -1

    def set_modified_ms(self, path: str, now_ms: int) -> None:
        self._existing(path)  # times are not recorded

    def volume(self, path: str) -> tuple[int, int]:
        return 1 << 30, 1 << 29

    def sync(self, file: File) -> None:
        if self.during_sync is not None:
            self.during_sync()
        self.operations.append(Sync(_node(file).number))

    def has_descriptors(self, count: int) -> bool:
        return True

    def publish(self) -> None:
        """All files are where others find them."""

    def can_sync_file_system(self) -> bool:
        return True

    def device(self, file: File) -> int:
        return 1

    def sync_file_system(self, file: File) -> bool:
        for node in self._all(self._tops[""]):
            self.operations.append(Sync(node.number) if isinstance(node, Inode) else SyncDirectory(node.number))
        return True

    def _all(self, directory: Directory) -> Iterator[Inode | Directory]:
        yield directory
        for node in directory.names.values():
            if isinstance(node, Directory):
                yield from self._all(node)
            else:
                yield node

    def sync_dir(self, path: str) -> None:
        if self.during_sync is not None:
            self.during_sync()
        self.operations.append(SyncDirectory(self._directory(path).number))

    def lock(self, path: str) -> File | None:
        """Held while the returned file is open; a kill releases it with the file."""
        held = self._locks.get(path)
        holder = held() if held is not None else None
        if holder is not None and holder._node is not None:
            return None
        file = self.open(path)
        assert isinstance(file, MemoryFile)
        self._locks[path] = weakref.ref(file)
        return file


def _node(file: File) -> Inode:
    assert isinstance(file, MemoryFile)
    return file.node
