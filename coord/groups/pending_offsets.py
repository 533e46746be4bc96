"""Offsets committed inside transactions, held back until the transaction's marker (rules T5 and T11; KIP-98, KIP-447).

A commit marker gives the offsets of its producer out, an abort marker drops them; one that is older than what its
partition has got meanwhile stays out. Source: Kafka 4.4 `OffsetMetadataManager.replayEndTransactionMarker`.
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

    def of_group(self, group_id: str) -> list[bytes]:
        """The keys of a group's offsets that open transactions hold."""
        prefix = offset_key_prefix(group_id)
        return [key for key in self._keys if key.startswith(prefix)]

    def of_topic(self, topic: str, topic_id: Uuid) -> list[bytes]:
        """The keys of a topic's offsets that open transactions hold; not those of another topic of that name."""
        found: dict[bytes, None] = {}
        for _, (key, value) in chain.from_iterable(self._held.values()):
            about = read_key(key)
            if isinstance(about, OffsetCommitKey) and about.topic == topic and value is not None:
                committed_to = read_offset(value).topic_id
                if ZERO_UUID in (topic_id, committed_to) or committed_to == topic_id:
                    found[key] = None
        return list(found)

    def saw(self, offset: int, record: CoordinatorRecord) -> None:
        """A record outside any transaction stands at this offset, and is in force.

        One that removes an offset removes what is held back of it too: it must not come back with a marker.
        """
        if not self._held:
            return
        if record.value is None:
            self._newest.pop(record.key, None)
            if record.key in self._keys:
                self._drop(record.key)
        else:
            self._newest[record.key] = offset

    def _drop(self, key: bytes) -> None:
        del self._keys[key]
        for producer_id, held in self._held.items():
            self._held[producer_id] = [(offset, record) for offset, record in held if record.key != key]

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
