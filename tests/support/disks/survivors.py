"""What a power failure may leave of a disk: the states allowed by POSIX and the semantics of fsync, and no others.

Between two syncs of a file each of its 512-byte sectors may be as it was after any of the writes, independently of the
others, and so may its size; the last sector being written may hold garbage in the bytes that the write changes. Syncing
a file's data does not make its name durable. Between two syncs of a directory any of the changes to its names may be
lost, independently for each file and directory; changes to one file's name are applied in order, and a rename is
atomic. An `ORDERED` state is one of a file system with a journal, as ext4: changes of names are in order, and every
sync includes all changes before it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from random import Random

from tests.support.disks.disk import (
    Image,
    Link,
    Note,
    Operation,
    RecordingDisk,
    Rename,
    Sync,
    SyncDirectory,
    Truncate,
    Unlink,
    Write,
)

SECTOR = 512

Versions = list[tuple[int, bytes]]


class Kind(IntEnum):
    """How the state after a crash is chosen."""

    KEPT = 0  # a kill -9: the page cache survives
    LOST = 1  # only what was synced
    ORDERED = 2  # as after the replay of a journal
    ONE_LOST = 3
    ONE_KEPT = 4
    MIXED = 5
    GARBLED = 6  # MIXED, and garbage in the last sector of each file that was being written


class FileHistory:
    """A file's durable content, and the versions of its sectors and size since."""

    __slots__ = ("_data", "_durable", "_sectors", "_sizes")

    def __init__(self, durable: bytes) -> None:
        self._durable = durable
        self._data = bytearray(durable)
        self._sizes: list[tuple[int, int]] = []
        self._sectors: dict[int, Versions] = {}

    @property
    def is_pending(self) -> bool:
        """Whether a power failure could change the file."""
        return bool(self._sizes or self._sectors)

    def write(self, at: int, position: int, data: bytes) -> None:
        """Operation number `at` has written to the file."""
        end = position + len(data)
        first = min(position, len(self._data))
        if end > len(self._data):
            self._data.extend(bytes(end - len(self._data)))
            self._sizes.append((at, end))
        self._data[position:end] = data
        self._touch(at, first, end)

    def truncate(self, at: int, size: int) -> None:
        """Operation number `at` has truncated or extended the file."""
        before = len(self._data)
        del self._data[size:]
        self._data.extend(bytes(size - len(self._data)))
        self._sizes.append((at, size))
        self._touch(at, min(before, size), max(before, size))

    def _touch(self, at: int, start: int, end: int) -> None:
        for sector in range(start // SECTOR, (end + SECTOR - 1) // SECTOR):
            content = bytes(self._data[sector * SECTOR : (sector + 1) * SECTOR]).ljust(SECTOR, b"\0")
            versions = self._sectors.get(sector)
            if versions is None:
                before = self._durable[sector * SECTOR : (sector + 1) * SECTOR].ljust(SECTOR, b"\0")
                versions = self._sectors[sector] = [(-1, before)]
            versions.append((at, content))

    def sync(self) -> None:
        """Everything is durable."""
        if self.is_pending:
            self._durable = bytes(self._data)
            self._sizes.clear()
            self._sectors.clear()

    def durable(self) -> bytes:
        """The durable content."""
        return self._durable

    def latest(self) -> bytes:
        """The content in a running system."""
        return bytes(self._data) if self.is_pending else self._durable

    def as_of(self, operation: int) -> bytes:
        """The content after an operation."""
        return self._compose(lambda versions: max(n for n, (at, _) in enumerate(versions) if at <= operation))

    def mixed(self, random: Random, kept: float, *, garbled: bool) -> bytes:
        """Each sector and the size on its own: the latest version with the chance `kept`, else any version."""

        def choose(versions: list[tuple[int, bytes]] | list[tuple[int, int]]) -> int:
            return len(versions) - 1 if random.random() < kept else random.randrange(len(versions))

        content = self._compose(choose)
        return self._garble(content, random) if garbled and self._sectors else content

    def _compose(self, choose: Callable[[list[tuple[int, int]] | Versions], int]) -> bytes:
        sizes = [(-1, len(self._durable)), *self._sizes]
        size = sizes[choose(sizes)][1]
        content = bytearray(self._durable[:size].ljust(size, b"\0"))
        for sector, versions in self._sectors.items():
            start = sector * SECTOR
            if start < size:
                chosen = versions[choose(versions)][1]
                content[start : start + SECTOR] = chosen[: size - start]
        return bytes(content)

    def _garble(self, content: bytes, random: Random) -> bytes:
        sector = max(self._sectors)
        before, after = self._sectors[sector][0][1], self._sectors[sector][-1][1]
        start = sector * SECTOR
        changed = [start + n for n in range(SECTOR) if before[n] != after[n] and start + n < len(content)]
        if not changed:
            return content
        garbage = bytearray(content)
        end = changed[-1] + 1
        garbage[changed[0] : end] = random.randbytes(end - changed[0])
        return bytes(garbage)


NameChange = Link | Rename | Unlink


class Survivors:
    """The possible states of a disk after a crash, at the current point of its history."""

    def __init__(self, disk: RecordingDisk) -> None:
        self._files = {number: FileHistory(data) for number, data in disk.initial_files.items()}
        self._names = {number: dict(names) for number, names in disk.initial_directories.items()}
        self._pending: list[tuple[int, NameChange]] = []
        self._last_sync = -1
        self._at = -1

    def take(self, operation: Operation) -> None:
        """Apply the next operation of the history."""
        self._at += 1
        match operation:
            case Write():
                self._files[operation.file].write(self._at, operation.position, operation.data)
            case Truncate():
                self._files[operation.file].truncate(self._at, operation.size)
            case Sync():
                self._files[operation.file].sync()
                self._last_sync = self._at
            case SyncDirectory():
                self._sync_names(operation.directory)
                self._last_sync = self._at
            case Note():
                pass
            case _:
                self._change_name(operation)

    def _change_name(self, change: NameChange) -> None:
        if isinstance(change, Link):
            if change.is_directory:
                self._names[change.number] = {}
            else:
                self._files[change.number] = FileHistory(b"")
        self._pending.append((self._at, change))

    def _sync_names(self, directory: int) -> None:
        remaining = []
        for at, change in self._pending:
            if change.directory == directory:
                _apply(change, self._names[directory])
            else:
                remaining.append((at, change))
        self._pending = remaining

    # --- choosing a state after the crash

    def image(self, kind: Kind, random: Random) -> Image:
        """One possible state after a crash at this point."""
        if kind is Kind.KEPT:
            return self._image(lambda _at, _change: True, FileHistory.latest)
        if kind is Kind.LOST:
            return self._image(lambda _at, _change: False, FileHistory.durable)
        if kind is Kind.ORDERED:
            return self._ordered(random)
        if kind in (Kind.ONE_LOST, Kind.ONE_KEPT):
            return self._all_but_one(random, kept=kind is Kind.ONE_LOST)
        return self._mixed(random, garbled=kind is Kind.GARBLED)

    def _ordered(self, random: Random) -> Image:
        last = random.randint(self._last_sync, self._at)

        def content(file: FileHistory) -> bytes:
            return file.as_of(random.randint(-1, self._at)) if file.is_pending else file.durable()

        return self._image(lambda at, _change: at <= last, content)

    def _all_but_one(self, random: Random, *, kept: bool) -> Image:
        """Keep every change except the changes of one file's data or of one name; or only these."""
        names = sorted({change.number for _, change in self._pending})
        files = [number for number, file in self._files.items() if file.is_pending]
        if not names and not files:
            return self._image(lambda _at, _change: kept, FileHistory.latest)
        chosen = random.randrange(len(names) + len(files))
        name = names[chosen] if chosen < len(names) else -1
        other = self._files[files[chosen - len(names)]] if chosen >= len(names) else None

        def content(file: FileHistory) -> bytes:
            return file.latest() if (file is not other) is kept else file.durable()

        return self._image(lambda _at, change: (change.number != name) is kept, content)

    def _mixed(self, random: Random, *, garbled: bool) -> Image:
        share = random.choice((0.1, 0.5, 0.9))
        changes: dict[int, list[int]] = {}
        for at, change in self._pending:
            changes.setdefault(change.number, []).append(at)
        last = {
            number: ats[-1] if random.random() < share else random.choice([-1, *ats]) for number, ats in changes.items()
        }

        def content(file: FileHistory) -> bytes:
            if not file.is_pending or random.random() < share / 2:
                return file.latest()
            return file.mixed(random, share, garbled=garbled)

        return self._image(lambda at, change: at <= last[change.number], content)

    def _image(self, is_kept: Callable[[int, NameChange], bool], content: Callable[[FileHistory], bytes]) -> Image:
        changed: dict[int, dict[str, int]] = {}
        for at, change in self._pending:
            if is_kept(at, change):
                names = changed.get(change.directory)
                if names is None:
                    names = changed[change.directory] = dict(self._names[change.directory])
                _apply(change, names)

        def directory(number: int) -> Image:
            names = changed[number] if number in changed else self._names[number]
            return {
                name: content(self._files[below]) if below in self._files else directory(below)
                for name, below in names.items()
            }

        return directory(1)


def _apply(change: NameChange, names: dict[str, int]) -> None:
    match change:
        case Link():
            names[change.name] = change.number
        case Rename():
            if names.get(change.old) == change.number:
                del names[change.old]
            names[change.new] = change.number
        case Unlink():
            if names.get(change.name) == change.number:
                del names[change.name]
