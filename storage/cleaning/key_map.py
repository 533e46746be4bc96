"""The keys of a log's dirty part as 128-bit hashes, in bounded memory, with a mark for each dirty record.

Every dirty record has an ordinal and a mark: LIVE, DEAD (a later record has the same key, or it has no key), or
TOMBSTONE (live, with a null value). Marks are set while the keys are read, so that a dirty batch is cleaned by its
marks and its records are not read again. Batches are processed in loops of the interpreter (`map`, `zip`,
`dict.update`), since most of the time of compaction is spent here. Two keys with the same 128-bit hash (MurmurHash3,
x64) are treated as one: a memory error is more likely, and Kafka's cleaner does the same.
"""

from __future__ import annotations

from mmh3 import mmh3_x64_128_digest as digest

from barnabas.wire.batches.record_scan import ScannedKeys

LIVE = 0
DEAD = 1
TOMBSTONE = 2

_TOGETHER = 256
KEY_BYTES = 160
"""Measured memory of one key: its hash, its ordinal, and its share of a dict that grows by doubling."""


class KeyMap:
    """Maps a key's hash to the ordinal of the last record with that key."""

    __slots__ = ("_last", "_memory", "_new_keys", "_new_nulls", "marks")

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._last: dict[bytes, int] = {}
        self.marks = bytearray()
        """The mark of each record, by ordinal; complete after `finish`."""
        self._new_keys: list[bytes | None] = []
        self._new_nulls: list[int] = []

    def __len__(self) -> int:
        return len(self._last)

    def has_room(self, count: int) -> bool:
        """Whether the keys of `count` more records fit; the first batch always does, so that every pass progresses."""
        new = len(self._new_keys) + count
        records = len(self.marks) + new
        return records == count or (len(self._last) + new) * KEY_BYTES + records <= self._memory

    def add(self, scanned: ScannedKeys) -> None:
        """Add the records of the next dirty batch; they supersede all before."""
        keys, null_values = scanned
        new_keys = self._new_keys
        if null_values:
            first = len(new_keys)
            self._new_nulls += [first + at for at in null_values]
        new_keys += keys
        if len(new_keys) >= _TOGETHER:
            self.finish()

    def finish(self) -> None:
        """Set the marks of the records added since the last call.

        Small batches are processed together, which costs less per record.
        """
        keys, null_values = self._new_keys, self._new_nulls
        self._new_keys, self._new_nulls = [], []
        marks, last = self.marks, self._last
        first, count = len(marks), len(keys)
        try:
            latest = dict(zip(map(digest, keys), range(first, first + count), strict=True))  # type: ignore[arg-type]
        except TypeError:  # a record without a key
            latest = {digest(key): first + at for at, key in enumerate(keys) if key is not None}
        if len(latest) == count:
            marks += bytes(count)
        else:  # a key occurs twice, or a record has none
            marks += bytes([DEAD]) * count
            for ordinal in latest.values():
                marks[ordinal] = LIVE
        superseded = list(map(last.get, latest))
        if superseded.count(None) != len(superseded):
            for earlier in superseded:
                if earlier is not None:
                    marks[earlier] = DEAD
        last.update(latest)
        _mark_tombstones(marks, first, null_values)

    def marks_of_clean(self, scanned: ScannedKeys) -> bytearray:
        """The marks of a batch that an earlier pass has cleaned: a record is DEAD if the dirty part has its key."""
        keys, null_values = scanned
        has = self._last.__contains__
        try:
            marks = bytearray(map(has, map(digest, keys)))  # type: ignore[arg-type]
        except TypeError:
            marks = bytearray(DEAD if key is None or has(digest(key)) else LIVE for key in keys)
        _mark_tombstones(marks, 0, null_values)
        return marks


def _mark_tombstones(marks: bytearray, first: int, null_values: list[int]) -> None:
    for at in null_values:
        if marks[first + at] == LIVE:
            marks[first + at] = TOMBSTONE
