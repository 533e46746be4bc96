"""Offsets committed inside transactions, held back until the transaction's marker (rules T5 and T11; KIP-98, KIP-447).

A commit marker gives the offsets of its producer out, an abort marker drops them; one that is older than what its
partition has got meanwhile stays out. Source: Kafka 4.4 `OffsetMetadataManager.replayEndTransactionMarker`.
"""

from __future__ import annotations

from collections import Counter

from coord.machine import CoordinatorRecord


class PendingOffsets:
    """The offsets of open transactions by producer id."""

    def __init__(self) -> None:
        self._held: dict[int, list[tuple[int, CoordinatorRecord]]] = {}
        self._newest: dict[bytes, int] = {}
        """The log offset of what a key has now; kept only while something is held back."""
        self._keys: Counter[bytes] = Counter()
        """How many records of each key are held back."""

    def __len__(self) -> int:
        return sum(len(records) for records in self._held.values())

    def hold(self, producer_id: int, offset: int, record: CoordinatorRecord) -> None:
        """A transactional record stands at this offset of the log."""
        self._held.setdefault(producer_id, []).append((offset, record))
        self._keys[record.key] += 1

    def has(self, key: bytes) -> bool:
        """Whether an open transaction holds an offset of this key: it may change any moment (KIP-447)."""
        return key in self._keys

    def saw(self, offset: int, record: CoordinatorRecord) -> None:
        """A record outside any transaction stands at this offset, and is in force."""
        if not self._held:
            return
        if record.value is None:
            self._newest.pop(record.key, None)
        else:
            self._newest[record.key] = offset

    def end(self, producer_id: int, *, commit: bool) -> list[CoordinatorRecord]:
        """The producer's transaction ends: the records that come into force, in the order of the log."""
        held = self._held.pop(producer_id, [])
        self._keys.subtract(record.key for _, record in held)
        self._keys = +self._keys
        in_force = []
        if commit:
            for offset, record in held:
                if offset > self._newest.get(record.key, -1):
                    self._newest[record.key] = offset
                    in_force.append(record)
        if not self._held:
            self._newest.clear()
        return in_force
