"""The partitions this broker holds: each a log, its leader epoch and the readers that wait for it.

On one node this broker leads everything and the ISR is itself, so the high watermark is the log's end. Appends wake
the waiting readers once, at the end of the loop's turn, so that a burst of produce requests costs a reader one
answer.

`Partitions.apply` follows the image: it makes logs for the partitions that are new, and takes away those of deleted
topics.

A partition whose log is damaged, or whose disk has failed, goes offline: its requests are answered with
KAFKA_STORAGE_ERROR, metadata shows it without a leader, its files are left as they are, and the others serve on (L2).
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from coord.cluster.topic_names import GROUP_METADATA_TOPIC
from storage.checkpoints import CorruptCheckpoint
from storage.damage import DamagedLog
from storage.log_config import LogConfig
from wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.context import Broker
    from coord.cluster.image import ClusterDelta, ClusterImage
    from coord.cluster.partition_image import TopicImage
    from storage.append import AppendInfo
    from storage.batch_check import Origin
    from storage.log import Log

logger = logging.getLogger("kafka.server.ReplicaManager")

_OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE})
"""What is the matter with the process or the machine, not with one partition."""

TOPIC = 2
"""Kafka's resource type of topics."""
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics of the coordinators: clients read them, and may not write to them."""


class Partition:
    """One partition led by this broker."""

    __slots__ = (
        "_broker",
        "_is_waking",
        "bytes_appended",
        "index",
        "is_deleted",
        "is_internal",
        "is_offline",
        "isr",
        "leader_epoch",
        "log",
        "replicas",
        "topic",
        "topic_id",
        "waiters",
    )

    def __init__(self, broker: Broker, topic: str, index: int, topic_id: bytes, log: Log) -> None:
        self._broker = broker
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.is_internal = topic in INTERNAL_TOPICS
        self.log = log
        self.leader_epoch = 0
        self.replicas: Sequence[int] = ()
        self.isr: Sequence[int] = ()
        self.bytes_appended = 0  # since this process began; tells a waiting reader how much has come
        self.waiters: dict[object, Callable[[Partition], None]] = {}  # the key is the waiter itself
        self.is_deleted = False
        self.is_offline = False
        self._is_waking = False
        log.high_watermark = log.log_end_offset

    def append(self, records: memoryview, now: float, *, origin: Origin = "client") -> AppendInfo:
        """Append a client's or a coordinator's batches; KafkaError says what is wrong with them.

        `records` is patched in place (base offset, leader epoch); it is not kept.
        """
        if self.is_offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Partition {self.topic}-{self.index} is offline")
        log = self.log
        info = log.append_as_leader(
            records, leader_epoch=self.leader_epoch, now_ms=self._broker.now_ms(), now=now, origin=origin
        )
        log.high_watermark = log.log_end_offset
        self.bytes_appended += len(records)
        if self.waiters and not self._is_waking:
            self._is_waking = True
            self._broker.call_after_turn(self.wake)
        return info

    @property
    def is_gone(self) -> bool:
        """Whether it is not served any more: deleted, or offline."""
        return self.is_deleted or self.is_offline

    def fail(self, reason: str) -> None:
        """Take the partition offline; `reason` says in a sentence what happened to its log."""
        if not self.is_gone:
            self._broker.partitions.take_offline(self, reason)

    def wake(self) -> None:
        """Tell everyone who waits for this partition that it has changed."""
        self._is_waking = False
        for woken in list(self.waiters.values()):
            woken(self)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Refuse a client whose idea of the leader is older or newer than ours (R3); -1 asks for no check."""
        if current_leader_epoch in (-1, self.leader_epoch):
            return
        if current_leader_epoch < self.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def check_in_sync_replicas(self) -> None:
        """Refuse acks=all while too few replicas are in sync (R12).

        min.insync.replicas never asks for more replicas than the partition has (Kafka's `effectiveMinIsr`).
        """
        wanted = min(self.log.config.min_insync_replicas, len(self.replicas))
        if len(self.isr) < wanted:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR {list(self.isr)} is insufficient to satisfy the min.isr requirement "
                f"of {wanted} for partition {self.topic}-{self.index}",
            )

    def __repr__(self) -> str:
        return f"<Partition {self.topic}-{self.index}>"


class _Topic:
    """The partitions of one topic."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: dict[int, Partition] = {}


class Partitions:
    """Every partition of this broker, by topic name and by topic id."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._by_name: dict[str, _Topic] = {}
        self._by_id: dict[bytes, _Topic] = {}
        self.offline: dict[tuple[str, int], str] = {}
        """Topic and index of the partitions that cannot be served, and why; they are in no list of partitions."""

    def __iter__(self) -> Iterator[Partition]:
        for topic in self._by_name.values():
            yield from topic.partitions.values()

    def get(self, topic: str, index: int) -> Partition:
        """A partition by name; KafkaError(UNKNOWN_TOPIC_OR_PARTITION), KAFKA_STORAGE_ERROR when it is offline."""
        try:
            return self._by_name[topic].partitions[index]
        except KeyError:
            raise self._missing(topic, index) from None

    def _missing(self, topic: str, index: int) -> KafkaError:
        reason = self.offline.get((topic, index))
        if reason is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Partition {topic}-{index} is offline: {reason}")

    def get_by_id(self, topic_id: bytes, index: int) -> Partition:
        """A partition by topic id; KafkaError(UNKNOWN_TOPIC_ID), else as `get`."""
        topic = self._by_id.get(topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        try:
            return topic.partitions[index]
        except KeyError:
            raise self._missing(topic.name, index) from None

    def of_topic(self, name: str) -> list[Partition]:
        """The partitions of a topic; none if there is no such topic."""
        topic = self._by_name.get(name)
        return [] if topic is None else list(topic.partitions.values())

    # -- following the image

    def load(self, image: ClusterImage) -> None:
        """Open the logs of the partitions that `image` gives this broker; set aside all other directories (R22)."""
        for topic in image.topics.values():
            self._open_topic(image, topic, topic.partitions)
        broker = self._broker
        for name, index in broker.log_dirs.found():
            logger.warning("Setting %s-%d aside: the metadata knows no such partition", name, index)
            broker.log_dirs.delete_stray(name, index, now=broker.now())

    def apply(self, image: ClusterImage, delta: ClusterDelta) -> None:
        """Follow a change of the image: called before anyone is answered about it."""
        for deleted in delta.deleted_topics.values():
            self._remove(deleted)
        opened: dict[bytes, tuple[TopicImage, list[int]]] = {}
        for (topic_id, index), topic in [*delta.new_partitions.items(), *delta.changed_partitions.items()]:
            opened.setdefault(topic_id, (topic, []))[1].append(index)
        for topic, indexes in opened.values():
            self._open_topic(image, topic, indexes)
        for resource_type, name in delta.changed_configs:
            if resource_type == TOPIC:
                self.update_configs(image, name)

    def _open_topic(self, image: ClusterImage, wanted: TopicImage, indexes: Iterable[int]) -> None:
        """Hold these partitions as the image states them."""
        topic = self._by_id.get(wanted.topic_id)
        if topic is None:
            topic = self._by_name[wanted.name] = self._by_id[wanted.topic_id] = _Topic(wanted.name, wanted.topic_id)
        config: LogConfig | None = None
        for index in indexes:
            assigned = wanted.partitions[index]
            if self._broker.node_id not in assigned.replicas:
                continue
            partition = topic.partitions.get(index)
            if partition is None:
                config = config or self.config_of(image, wanted.name)
                partition = self._open(wanted, index, config)
                if partition is None:
                    continue
                topic.partitions[index] = partition
            partition.leader_epoch = assigned.leader_epoch
            partition.replicas = assigned.replicas
            partition.isr = assigned.isr

    def _open(self, topic: TopicImage, index: int, config: LogConfig) -> Partition | None:
        """A partition with its log; None when it has to stay offline."""
        broker = self._broker
        if (topic.name, index) in self.offline:
            return None
        try:
            log = broker.log_dirs.open_log(
                topic.name, index, config, topic_id=topic.topic_id, now_ms=broker.now_ms(), now=broker.now()
            )
        except (DamagedLog, CorruptCheckpoint, OSError) as error:
            if isinstance(error, OSError) and error.errno in _OUT_OF_FILES:
                raise
            self._note_offline(topic.name, index, str(error))
            return None
        return Partition(broker, topic.name, index, topic.topic_id, log)

    # -- offline

    def take_offline(self, partition: Partition, reason: str) -> None:
        """Serve a partition no longer; whoever waits for it is told."""
        partition.is_offline = True
        self._by_id[partition.topic_id].partitions.pop(partition.index, None)
        self._note_offline(partition.topic, partition.index, reason)
        if partition.topic == GROUP_METADATA_TOPIC:
            coordinators = self._broker.coordinators
            self._broker.call_after_turn(lambda: coordinators.partition_failed(partition.index))
        self._broker.call_after_turn(partition.wake)

    def _note_offline(self, topic: str, index: int, reason: str) -> None:
        self.offline[topic, index] = reason
        self._broker.log_dirs.take_offline(topic, index)
        logger.error(
            "Partition %s-%d is offline, the others serve on: %s. Stop the broker and look at it with "
            "'barnabas storage check'; 'barnabas storage recover' repairs what can be repaired",
            *(topic, index, reason.rstrip(".")),
        )

    def _remove(self, deleted: TopicImage) -> None:
        topic = self._by_id.pop(deleted.topic_id, None)
        if topic is None:
            return
        if self._by_name.get(topic.name) is topic:
            del self._by_name[topic.name]
        for index in deleted.partitions:
            if self.offline.pop((topic.name, index), None) is not None:
                self._remove_offline(topic.name, index)
        for partition in topic.partitions.values():
            partition.is_deleted = True
            self._broker.log_dirs.delete_log(topic.name, partition.index, now=self._broker.now())
            self._broker.call_after_turn(partition.wake)

    def _remove_offline(self, topic: str, index: int) -> None:
        try:
            self._broker.log_dirs.delete_stray(topic, index, now=self._broker.now())
        except OSError as error:
            logger.error("Cannot remove the files of the offline partition %s-%d: %s", topic, index, error)

    def config_of(self, image: ClusterImage, topic: str) -> LogConfig:
        """A topic's configuration: its own overrides over this broker's defaults."""
        return LogConfig.from_map(image.config(TOPIC, topic), self._broker.config.topic_defaults())

    def update_configs(self, image: ClusterImage, topic: str | None = None) -> None:
        """A topic's configuration has changed, or with None the broker's defaults, which every topic stands on."""
        for name in [topic] if topic is not None else list(self._by_name):
            config = self.config_of(image, name)
            for partition in self.of_topic(name):
                partition.log.update_config(config)

    # -- what is deleted

    def persist_log_starts(self) -> None:
        """Log starts have moved: write them down, then let go of the segments below them (L5)."""
        broker = self._broker
        broker.log_dirs.write_log_starts()
        for partition in self:
            log = partition.log
            doomed = log.delete_segments_below(log.log_start_offset)
            if doomed:
                broker.log_dirs.delete_later(doomed, broker.now() + log.config.file_delete_delay_ms / 1000)
