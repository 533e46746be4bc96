"""The index of the aborted transactions that end in a segment: `.txnindex` (KIP-98).

Format (Kafka's `AbortedTxn`): entries of 34 bytes, big endian: version (int16, 0), producer id, first offset, last
offset, last stable offset (int64 each), in order of last offset. The file exists only if it has entries.

New entries are written as in the other indexes: at a roll, a flush of the indexes and a close. So the append of
a marker cannot fail after the marker is in the log, and an entry of a marker that is not in the log does not exist. A
crash loses no entry, since recovery rebuilds the indexes of everything that was not flushed with its indexes.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from barnabas.storage.damage import DamagedLog
from barnabas.storage.files import Files

ENTRY_SIZE = 34
_ENTRY = Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    """One aborted transaction: its producer, its offsets, and the last stable offset after its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndex:
    """One segment's index of aborted transactions; kept in memory, since it is nearly always empty."""

    __slots__ = ("_files", "_saved", "entries", "path")

    def __init__(self, files: Files, path: str, entries: list[AbortedTransaction] | None = None) -> None:
        self._files = files
        self._saved = 0
        self.path = path
        self.entries: list[AbortedTransaction] = entries if entries is not None else []

    @classmethod
    def load(cls, files: Files, path: str) -> TxnIndex:
        """Read the file. DamagedLog for an invalid entry: a reader would treat aborted records as committed."""
        data = files.read_file(path)
        entries: list[AbortedTransaction] = []
        for version, *fields in _ENTRY.iter_unpack(data[: len(data) // ENTRY_SIZE * ENTRY_SIZE]):
            if version != 0 or (entries and entries[-1].last_offset >= fields[2]):
                raise DamagedLog(f"{path} is damaged in entry {len(entries)}")
            entries.append(AbortedTransaction(*fields))
        index = cls(files, path, entries)
        index._saved = len(entries)
        return index

    @property
    def unsaved(self) -> int:
        """The number of entries that are not in the file yet."""
        return len(self.entries) - self._saved

    def append(self, entry: AbortedTransaction) -> None:
        """Add an aborted transaction after all others; `save` writes it to the file."""
        self.entries.append(entry)

    def collect(self, start_offset: int, end_offset: int, aborted: list[AbortedTransaction]) -> bool:
        """Add the entries that overlap [start, end) to `aborted`; True when no later segment can hold more of them."""
        for entry in self.entries:
            if entry.last_offset >= start_offset and entry.first_offset < end_offset:
                aborted.append(entry)
            if entry.last_stable_offset >= end_offset:
                return True
        return False

    def truncate_to(self, offset: int) -> None:
        """Remove the transactions that end at or above `offset`."""
        remaining = [entry for entry in self.entries if entry.last_offset < offset]
        self.entries = remaining
        if self._saved > len(remaining):
            self._files.truncate(self._files.open(self.path), len(remaining) * ENTRY_SIZE)
            self._saved = len(remaining)

    def save(self) -> None:
        """Write the entries that are not in the file yet; without entries remove the file."""
        if not self.entries:
            self._files.unlink(self.path)
            return
        start = self._saved
        file = self._files.open(self.path)
        tail = b"".join(_ENTRY.pack(0, *entry) for entry in self.entries[start:])
        self._files.write_at(file, tail, start * ENTRY_SIZE)
        self._files.truncate(file, len(self.entries) * ENTRY_SIZE)
        self._saved = len(self.entries)
