"""Random metadata logs: every record type in every version, most of them valid, some slightly odd.

A batch is one delta for Kafka. Batches that a Kafka delta does not apply as the sequence of their records are left out
(`deliberate_differences` has those cases, each with its reason), so each stream here has one result.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.coord.cluster.metadata_log.metadata_batches import control_batch, leader_change_batch
from barnabas.coord.cluster.metadata_log.metadata_serde import encode_record_at, record_version
from barnabas.coord.cluster.quorum import Quorum
from barnabas.wire.batches.records import BatchBuilder
from barnabas.wire.messages.records import metadata_records as m
from barnabas.wire.messages.records import raft_records as raft
from barnabas.wire.schema import Message
from compat.kafka import random_records as new

ODD: Final = 0.25
"""The share of streams that have odd records."""
NAMES: Final = ("a", "b.c", "b_c", "__consumer_offsets", "ü", "with-a-long-name" * 5)


@dataclass
class Model:
    """The state of the stream so far, as far as valid records depend on it."""

    metadata_version: int = 0
    topics: dict[str, bytes] = field(default_factory=dict)
    partitions: dict[bytes, dict[int, list[int]]] = field(default_factory=dict)
    brokers: dict[int, int] = field(default_factory=dict)
    controllers: set[int] = field(default_factory=set)
    acls: list[bytes] = field(default_factory=list)
    configured: set[str] = field(default_factory=set)
    """The topics that had configs when the present delta began."""


class Stream:
    """The batches of one random log."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.is_odd = self.random.random() < ODD
        self.model = Model()
        self.batches: list[bytes] = []
        self._offset = 0
        self._before: Model | None = None
        """The model before the open metadata transaction."""
        self._begin_delta()
        self._begin()
        for _ in range(self.random.randint(1, 12)):
            self._add_batch()

    def _begin_delta(self) -> None:
        self._configured_here: set[str] = set()
        self._scram_kinds: dict[int, bool] = {}
        """Whether users were removed, by mechanism."""

    def _begin(self) -> None:
        if self.random.random() < 0.7:
            quorum = self._quorum() if self.random.random() < 0.5 else None
            self.batches.append(leader_change_batch(leader_id=1, epoch=1, now_ms=5, quorum=quorum))
            self._offset += 1 + (0 if quorum is None else len(list(quorum.records())))
        if self.is_odd and self.random.random() < 0.2:
            return
        level = 33 if self.random.random() < 0.5 else self.random.randint(7, 33)
        self.model.metadata_version = level
        records: list[Message] = [m.FeatureLevelRecord(name="metadata.version", feature_level=level)]
        if level >= 23 and self.random.random() < 0.7:
            records.append(m.FeatureLevelRecord(name=new.ELR, feature_level=1))
        self._write(records)

    def _quorum(self) -> Quorum:
        voters = [
            raft.VotersRecordVoter(
                voter_id=voter,
                voter_directory_id=self.random.randbytes(16),
                endpoints=[raft.VotersRecordEndpoint(name="CONTROLLER", host="localhost", port=9090 + voter)],
                k_raft_version_feature=raft.VotersRecordKRaftVersionFeature(
                    min_supported_version=0, max_supported_version=1
                ),
            )
            for voter in range(1, self.random.randint(2, 4))
        ]
        return Quorum(1, raft.VotersRecord(voters=voters))

    def _write(self, records: Iterable[Message]) -> None:
        builder = BatchBuilder(self._offset, partition_leader_epoch=1)
        for record in records:
            builder.append(5, None, encode_record_at(record, self._version_of(record)))
            self._offset += 1
        if builder.count:
            self.batches.append(builder.build())

    def _version_of(self, record: Message) -> int:
        may_be_any = self.is_odd or not isinstance(record, (m.PartitionRecord, m.PartitionChangeRecord))
        if may_be_any and self.random.random() < 0.05 and record.max_version:
            return self.random.randint(0, record.max_version)
        return record_version(type(record), self.model.metadata_version or 33)

    def _add_batch(self) -> None:
        if self.random.random() < 0.05:
            change = raft.LeaderChangeMessage(leader_id=1)
            self.batches.append(control_batch([(2, change)], self._offset, 1, 5))
            self._offset += 1
        if self._before is None:
            self._begin_delta()
            self.model.configured |= self._configured_here
        records: list[Message] = []
        may_begin = self._before is None and self.model.metadata_version >= 13 and not self.is_odd
        if may_begin and self.random.random() < 0.15:
            records.append(m.BeginTransactionRecord(name=self.random.choice([None, "t"])))
            self._before = deepcopy(self.model)
        for _ in range(self.random.randint(1, 8)):
            records += self._some()
            if self._before is not None and self.random.random() < 0.1:
                records.append(m.EndTransactionRecord())
                self._before = None
        if self._before is not None and self.random.random() < 0.3:
            records.append(m.AbortTransactionRecord(reason=None))
            self.model, self._before = self._before, None
        self._write(records)

    def _some(self) -> list[Message]:
        if self.is_odd and self.random.random() < 0.06:
            return [self.random.choice(new.ODD_RECORDS)(self.random)]
        if self.is_odd and self.random.random() < 0.02:
            return [self._odd_broker()]
        return self.random.choice(_KINDS)(self)

    def _odd_broker(self) -> Message:
        broker, epoch = self.random.randint(1, 5), self.random.randint(0, 9)
        return self.random.choice(
            [
                m.FenceBrokerRecord(id=broker, epoch=epoch),
                m.UnfenceBrokerRecord(id=broker, epoch=epoch),
                m.UnregisterBrokerRecord(broker_id=broker, broker_epoch=epoch),
                m.BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=epoch, fenced=2),
                m.BrokerRegistrationChangeRecord(
                    broker_id=broker, broker_epoch=self.model.brokers.get(broker, 0), fenced=2
                ),
                m.BrokerRegistrationChangeRecord(
                    broker_id=broker, broker_epoch=self.model.brokers.get(broker, 0), in_controlled_shutdown=-1
                ),
            ]
        )

    # Topics

    def _topic(self) -> list[Message]:
        free = [name for name in NAMES if name not in self.model.topics]
        if not free:
            return []
        name, topic_id = self.random.choice(free), self.random.randbytes(16)
        self.model.topics[name] = topic_id
        self.model.partitions[topic_id] = {}
        records: list[Message] = [m.TopicRecord(name=name, topic_id=topic_id)]
        for _ in range(self.random.randint(0, 4)):
            records += self._partition_of(topic_id)
        return records

    def _partition(self) -> list[Message]:
        return self._partition_of(self.random.choice(list(self.model.partitions))) if self.model.partitions else []

    def _partition_of(self, topic_id: bytes) -> list[Message]:
        known = self.model.partitions[topic_id]
        index = self.random.choice([*known, len(known), len(known)])
        record = new.partition(self.random, topic_id, index)
        known[index] = record.replicas
        return [record]

    def _change(self) -> list[Message]:
        chosen = [(topic_id, index) for topic_id, known in self.model.partitions.items() for index in known]
        if not chosen:
            return []
        topic_id, index = self.random.choice(chosen)
        replicas = self.model.partitions[topic_id][index]
        record = new.partition_change(self.random, topic_id, index, replicas, is_odd=self.is_odd)
        if record.replicas is not None:
            self.model.partitions[topic_id][index] = record.replicas
        return [record]

    def _clear_elr(self) -> list[Message]:
        return [m.ClearElrRecord(topic_name=self.random.choice(["", *self.model.topics]))]

    def _remove_topic(self) -> list[Message]:
        fit = [name for name in self.model.topics if name not in self._configured_here]
        if not fit:
            return []
        topic_id = self.model.topics.pop(self.random.choice(fit))
        del self.model.partitions[topic_id]
        return [m.RemoveTopicRecord(topic_id=topic_id)]

    def _config(self) -> list[Message]:
        record = new.config(self.random, list(self.model.topics) or ["a"])
        if record.resource_type == new.TOPIC:
            self._configured_here.add(record.resource_name)
        return [record]

    # Nodes

    def _register(self) -> list[Message]:
        record = new.registration(self.random, self.random.randint(1, 5), self._offset, self.model.metadata_version)
        self.model.brokers[record.broker_id] = record.broker_epoch
        return [record]

    def _broker_change(self) -> list[Message]:
        if not self.model.brokers:
            return []
        broker = self.random.choice(list(self.model.brokers))
        return [new.registration_change(self.random, broker, self.model.brokers[broker])]

    def _unregister(self) -> list[Message]:
        if not self.model.brokers:
            return []
        broker = self.random.choice(list(self.model.brokers))
        return [m.UnregisterBrokerRecord(broker_id=broker, broker_epoch=self.model.brokers.pop(broker))]

    def _controller(self) -> list[Message]:
        if self.model.metadata_version and self.model.metadata_version < 15:
            return []
        if self.random.random() < 0.3:
            return [m.UnregisterControllerRecord(controller_id=self.random.randint(1, 3))]
        return [new.controller(self.random, self.random.randint(1, 3))]

    # The rest

    def _feature(self) -> list[Message]:
        level = self.model.metadata_version
        if 0 < level < 33 and self.random.random() < 0.2:
            self.model.metadata_version = self.random.randint(level, 33)
            return [m.FeatureLevelRecord(name="metadata.version", feature_level=self.model.metadata_version)]
        return [new.feature(self.random, level)]

    def _acl(self) -> list[Message]:
        known = self.model.acls
        if known and self.random.random() < 0.4:
            return [m.RemoveAccessControlEntryRecord(id=known.pop(self.random.randrange(len(known))))]
        record = new.acl(self.random, self.random.choice([*known[:2], self.random.randbytes(16)]))
        if record.id not in known:
            known.append(record.id)
        return [record]

    def _scram(self) -> list[Message]:
        if 0 < self.model.metadata_version < 11:
            return []
        record = new.scram(self.random)
        is_removal = isinstance(record, m.RemoveUserScramCredentialRecord)
        if self._scram_kinds.setdefault(record.mechanism, is_removal) != is_removal:
            return []
        return [record]

    def _token(self) -> list[Message]:
        return [] if 0 < self.model.metadata_version < 14 else [new.token(self.random)]

    def _other(self) -> list[Message]:
        return [new.other(self.random)]


_KINDS: Final[list[Callable[[Stream], list[Any]]]] = [
    *[Stream._topic] * 3,
    *[Stream._partition] * 2,
    *[Stream._change] * 6,
    Stream._clear_elr,
    Stream._remove_topic,
    *[Stream._config] * 2,
    *[Stream._register] * 2,
    *[Stream._broker_change] * 3,
    Stream._unregister,
    Stream._controller,
    Stream._feature,
    *[Stream._acl] * 2,
    Stream._scram,
    Stream._token,
    *[Stream._other] * 2,
]
