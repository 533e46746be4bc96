"""Offsets committed in transactions, pending until the transaction's marker (rules T5 and T11; KIP-98, KIP-447).

A commit marker applies the pending offsets of its producer, an abort marker drops them. A pending offset is dropped too
if the partition has got a newer one in the meantime.

Source: Kafka 4.4 `OffsetMetadataManager.replayEndTransactionMarker`.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain

from barnabas.coord.groups.records import offset_key_prefix, read_key, read_offset
from barnabas.coord.machine import CoordinatorRecord
from barnabas.wire.messages.coordinator_records import OffsetCommitKey
from barnabas.wire.types import ZERO_UUID, Uuid


class PendingOffsets:
    """The offsets of open transactions by producer id."""

    def __init__(self) -> None:
        self._pending: dict[int, list[tuple[int, CoordinatorRecord]]] = {}
        self._newest: dict[bytes, int] = {}
        """By key: the log offset of the record that was applied last; kept only while there are pending records."""
        self._keys: Counter[bytes] = Counter()
        """How many records of each key are pending."""

    def __len__(self) -> int:
        return sum(len(records) for records in self._pending.values())

    def hold(self, producer_id: int, offset: int, record: CoordinatorRecord) -> None:
        """A transactional record is in the log, at this offset."""
        self._pending.setdefault(producer_id, []).append((offset, record))
        self._keys[record.key] += 1

    def has(self, key: bytes) -> bool:
        """Whether an open transaction has an offset of this key, which may replace the present one (KIP-447)."""
        return key in self._keys

    def of_group(self, group_id: str) -> list[bytes]:
        """The keys of a group's pending offsets."""
        prefix = offset_key_prefix(group_id)
        return [key for key in self._keys if key.startswith(prefix)]

    def of_topic(self, topic: str, topic_id: Uuid) -> list[bytes]:
        """The keys of a topic's pending offsets, but not those of another topic of that name."""
        found: dict[bytes, None] = {}
        for _, (key, value) in chain.from_iterable(self._pending.values()):
            about = read_key(key)
            if isinstance(about, OffsetCommitKey) and about.topic == topic and value is not None:
                committed_to = read_offset(value).topic_id
                if ZERO_UUID in (topic_id, committed_to) or committed_to == topic_id:
                    found[key] = None
        return list(found)

    def replayed(self, offset: int, record: CoordinatorRecord) -> None:
        """A record outside of transactions is in the log, at this offset.

        A tombstone drops the pending offsets of its key too, so that a marker does not restore them.
        """
        if not self._pending:
            return
        if record.value is None:
            self._newest.pop(record.key, None)
            if record.key in self._keys:
                self._drop(record.key)
        else:
            self._newest[record.key] = offset

    def _drop(self, key: bytes) -> None:
        del self._keys[key]
        for producer_id, held in self._pending.items():
            self._pending[producer_id] = [(offset, record) for offset, record in held if record.key != key]

    def end(self, producer_id: int, *, commit: bool) -> list[CoordinatorRecord]:
        """The producer's transaction has ended; the records to apply, in the order of the log."""
        held = self._pending.pop(producer_id, [])
        self._keys.subtract(record.key for _, record in held)
        self._keys = +self._keys
        applied = []
        if commit:
            for offset, record in held:
                if offset > self._newest.get(record.key, -1):
                    self._newest[record.key] = offset
                    applied.append(record)
        if not self._pending:
            self._newest.clear()
        return applied
