"""Offsets committed in transactions, pending until the transaction's marker (rules T5 and T11; KIP-98, KIP-447).

A commit marker applies the pending offsets of its producer, an abort marker drops them. A pending offset is dropped too
if the partition has got a newer one in the meantime.

Source: Kafka 4.4 `OffsetMetadataManager.replayEndTransactionMarker`.
"""

from __future__ import annotations

from itertools import chain

from barnabas.coord.groups.records import offset_key_prefix, read_offset
from barnabas.coord.machine import CoordinatorRecord
from barnabas.wire.types import ZERO_UUID, Uuid


class PendingOffsets:
    """The offsets of open transactions by producer id."""

    def __init__(self) -> None:
        self.by_producer: dict[int, dict[bytes, list[tuple[int, CoordinatorRecord]]]] = {}
        """By producer id and key: the records with their log offsets."""
        self._newest: dict[bytes, int] = {}
        """By key: the log offset of the record that was applied last; kept only while there are pending records."""
        self._producers: dict[bytes, set[int]] = {}
        """By key: the producers that have pending records of it."""
        self._of_group: dict[bytes, dict[bytes, None]] = {}
        """By the start of the key, which names the group: the keys."""
        self._of_topic: dict[bytes, dict[bytes, None]] = {}
        """By the topic's name: the keys."""

    def __len__(self) -> int:
        return sum(len(records) for keys in self.by_producer.values() for records in keys.values())

    def __bool__(self) -> bool:
        return bool(self.by_producer)

    def hold(self, producer_id: int, offset: int, record: CoordinatorRecord) -> None:
        """A transactional record is in the log, at this offset."""
        key = record.key
        self.by_producer.setdefault(producer_id, {}).setdefault(key, []).append((offset, record))
        producers = self._producers.get(key)
        if producers is None:
            producers = self._producers[key] = set()
            group, topic = _group_and_topic(key)
            self._of_group.setdefault(group, {})[key] = None
            self._of_topic.setdefault(topic, {})[key] = None
        producers.add(producer_id)

    def has(self, key: bytes) -> bool:
        """Whether an open transaction has an offset of this key, which may replace the present one (KIP-447)."""
        return key in self._producers

    def of_group(self, group_id: str) -> list[bytes]:
        """The keys of a group's pending offsets."""
        return list(self._of_group.get(offset_key_prefix(group_id), ()))

    def of_topic(self, topic: str, topic_id: Uuid) -> list[bytes]:
        """The keys of a topic's pending offsets, but not of another topic of that name."""
        return [key for key in self._of_topic.get(topic.encode(), ()) if self._is_about(key, topic_id)]

    def _is_about(self, key: bytes, topic_id: Uuid) -> bool:
        """Whether a pending record of the key belongs to the topic with this id, or one of both has none."""
        for producer_id in self._producers[key]:
            for _, (_, value) in self.by_producer[producer_id][key]:
                if value is not None:
                    committed_to = read_offset(value).topic_id
                    if ZERO_UUID in (topic_id, committed_to) or committed_to == topic_id:
                        return True
        return False

    def replayed(self, offset: int, record: CoordinatorRecord) -> None:
        """A record outside of transactions is in the log, at this offset.

        A tombstone drops the pending offsets of its key too, so that a marker does not restore them.
        """
        if not self.by_producer:
            return
        if record.value is None:
            self._newest.pop(record.key, None)
            if record.key in self._producers:
                self._drop(record.key)
        else:
            self._newest[record.key] = offset

    def _drop(self, key: bytes) -> None:
        for producer_id in self._producers[key]:
            del self.by_producer[producer_id][key]
        self._forget(key)

    def _forget(self, key: bytes) -> None:
        """No pending record has this key any more."""
        del self._producers[key]
        for index, name in zip((self._of_group, self._of_topic), _group_and_topic(key), strict=True):
            del index[name][key]
            if not index[name]:
                del index[name]

    def end(self, producer_id: int, *, commit: bool) -> list[CoordinatorRecord]:
        """The producer's transaction has ended; the records to apply, in the order of the log."""
        held = self.by_producer.pop(producer_id, {})
        for key in held:
            producers = self._producers[key]
            producers.discard(producer_id)
            if not producers:
                self._forget(key)
        applied = []
        if commit:
            for offset, record in sorted(chain.from_iterable(held.values()), key=lambda entry: entry[0]):
                if offset > self._newest.get(record.key, -1):
                    self._newest[record.key] = offset
                    applied.append(record)
        if not self.by_producer:
            self._newest.clear()
        return applied


def _group_and_topic(key: bytes) -> tuple[bytes, bytes]:
    """The start of an offset's key up to its group, as `offset_key_prefix`, and the name of its topic."""
    group_end = 4 + int.from_bytes(key[2:4], "big")
    topic_end = group_end + 2 + int.from_bytes(key[group_end : group_end + 2], "big")
    return key[:group_end], key[group_end + 2 : topic_end]
