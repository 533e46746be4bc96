"""The partitions this broker holds, which follow the metadata.

`Partitions.apply` follows the image: it makes logs for the partitions that are new, and takes away those of deleted
topics.

A partition whose log is damaged, or whose disk has failed, goes offline: its requests are answered with
KAFKA_STORAGE_ERROR, metadata shows it without a leader, its files are left as they are, and the others serve on (L2).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from barnabas.broker.config.keys.general import PRODUCER_ID_EXPIRATION_MS
from barnabas.broker.config.keys.own import LOG_SYNC
from barnabas.broker.replicas.committer import MANY_FILES, set_limit
from barnabas.broker.replicas.log_dir_failure import NO_DESCRIPTORS, is_passing
from barnabas.broker.replicas.partition import Partition
from barnabas.coord.cluster.topic_names import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas.storage.checkpoints import CorruptCheckpoint
from barnabas.storage.damage import DamagedLog
from barnabas.storage.log_config import LogConfig
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.coord.cluster.image import ClusterDelta, ClusterImage
    from barnabas.coord.cluster.partition_image import TopicImage
    from barnabas.storage.log_dir import LogDir
    from barnabas.storage.log_state import TornTail

logger = logging.getLogger("kafka.server.ReplicaManager")

TOPIC = 2
"""Kafka's resource type of topics."""


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
        self._waiting: dict[tuple[bytes, int], None] = {}  # partitions to be opened when there is room
        self._is_loading = True
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
        self._sync_loaded()
        self._is_loading = False
        broker = self._broker
        for name, index in broker.log_dirs.found():
            broker.log_dirs.set_aside(name, index)
        self._tell_of_strays()
        broker.log_dirs.forget_missing()

    def _sync_loaded(self) -> None:
        """Before anybody reads: put on the disk what a crash has left to the page cache, where the policy asks."""
        broker = self._broker
        for log_dir in broker.log_dirs.dirs:
            logs = [
                one.log
                for one in self
                if one.sync_limit is not None and broker.log_dirs.dir_of(one.topic, one.index) is log_dir
            ]
            jobs = [(log, job) for log in logs if log.unflushed and (job := log.start_flush(data_only=True))]
            if jobs:
                try:
                    log_dir.sync([job for _, job in jobs], is_whole=len(jobs) >= MANY_FILES)
                except OSError as error:
                    broker.log_dir_failed(log_dir, "sync", error)
                    continue
                for log, job in jobs:
                    log.finish_flush(job)

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
                topic.name,
                index,
                config,
                topic_id=topic.topic_id,
                now_ms=broker.now_ms(),
                now=broker.now(),
                producer_expiration_ms=broker.config[PRODUCER_ID_EXPIRATION_MS],
            )
        except (DamagedLog, CorruptCheckpoint, OSError) as error:
            if isinstance(error, OSError) and is_passing(error):
                self._wait_for_room(topic, index, error)
            else:
                self._note_offline(topic.name, index, str(error))
            return None
        if not self._is_loading:
            self._tell_of_strays()
        if log.torn is not None:
            _tell_of_torn_tail(topic.name, index, log.torn)
        partition = Partition(broker, topic.name, index, topic.topic_id, log)
        self._limit(partition)
        return partition

    def _tell_of_strays(self) -> None:
        strays = self._broker.log_dirs.strays
        while strays:
            logger.warning(
                "A directory belongs to no partition of the metadata, by its name or by the topic id in it. It was set "
                "aside as %s; remove it when nobody needs it",
                strays.pop(),
            )

    def _limit(self, partition: Partition) -> None:
        """Put in force how far acknowledgements of this partition may run ahead of the disk."""
        broker = self._broker
        log_dir = broker.log_dirs.dir_of(partition.topic, partition.index)
        if log_dir is not None:
            set_limit(partition, broker.config[LOG_SYNC], broker.committers[log_dir])

    def forget_expired_producers(self) -> None:
        """Forget what is known of idempotent producers that have been silent for `producer.id.expiration.ms` (I6)."""
        broker = self._broker
        now_ms, expiration_ms = broker.now_ms(), broker.config[PRODUCER_ID_EXPIRATION_MS]
        for partition in self:
            partition.log.producers.remove_expired(now_ms, expiration_ms)

    # -- offline

    def take_offline(self, partition: Partition, reason: str) -> None:
        """Serve a partition no longer; whoever waits for it is told."""
        self._stop_serving(partition)
        self._note_offline(partition.topic, partition.index, reason)

    def _wait_for_room(self, topic: TopicImage, index: int, error: OSError) -> None:
        """A partition cannot be opened or made since something has run out: it is offline until there is some."""
        if self._is_loading and error.errno in NO_DESCRIPTORS:
            raise error  # it will not pass before the start is over
        self.offline[topic.name, index] = str(error)
        self._broker.log_dirs.take_offline(topic.name, index)
        if (topic.topic_id, index) not in self._waiting:
            logger.error("Partition %s-%d is offline until it can be opened: %s", topic.name, index, error)
        self._waiting[topic.topic_id, index] = None

    def reopen(self) -> None:
        """Try the partitions again that wait for room."""
        for topic_id, index in list(self._waiting):
            topic = self._broker.image.topics_by_id.get(topic_id)
            if topic is None:
                del self._waiting[topic_id, index]
                continue
            self.offline.pop((topic.name, index), None)
            self._broker.log_dirs.bring_back(topic.name, index)
            self._open_topic(self._broker.image, topic, [index])
            if (topic.name, index) not in self.offline:
                del self._waiting[topic_id, index]
                logger.info("Partition %s-%d is served", topic.name, index)

    def take_dir_offline(self, log_dir: LogDir, reason: str) -> None:
        """Serve nothing of a log directory any longer."""
        dir_of = self._broker.log_dirs.dir_of
        lost = [partition for partition in self if dir_of(partition.topic, partition.index) is log_dir]
        for partition in lost:
            self._stop_serving(partition)
            self.offline[partition.topic, partition.index] = reason
            self._broker.log_dirs.take_offline(partition.topic, partition.index)
        if lost:
            logger.error(
                "%d partitions are offline with the log directory %s: %s",
                *(len(lost), log_dir.path, ", ".join(f"{one.topic}-{one.index}" for one in lost)),
            )

    def _stop_serving(self, partition: Partition) -> None:
        self._by_id[partition.topic_id].partitions.pop(partition.index, None)
        broker = self._broker
        if partition.topic == GROUP_METADATA_TOPIC:
            broker.call_after_turn(lambda: broker.coordinators.partition_failed(partition.index))
        elif partition.topic == TRANSACTION_STATE_TOPIC:
            broker.call_after_turn(lambda: broker.transactions.partition_failed(partition.index))
        elif partition.topic == SHARE_GROUP_STATE_TOPIC:
            broker.call_after_turn(lambda: broker.shares.partition_failed(partition.index))
        partition.leave(ErrorCode.KAFKA_STORAGE_ERROR)

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
            self._broker.log_dirs.delete_log(topic.name, partition.index, now=self._broker.now())
            partition.leave(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._broker.log_dirs.write_recovery_points()

    def _remove_offline(self, topic: str, index: int) -> None:
        log_dirs = self._broker.log_dirs
        log_dir = log_dirs.dir_of(topic, index)
        if log_dir is not None and log_dir.failure is not None:
            return  # the next start sets it aside
        try:
            log_dirs.delete_offline(topic, index, now=self._broker.now())
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
                self._limit(partition)

    # -- what is deleted

    def persist_log_starts(self) -> bool:
        """Log starts have moved: write them down, then let go of the segments below them (L5).

        False when a disk had no room for it. Whole segments go nevertheless, oldest first, since that makes room:
        were the new start lost, the log would begin with the first segment that is left.
        """
        broker = self._broker
        is_written = broker.log_dirs.write_log_starts()
        for partition in list(self):
            log = partition.log
            try:
                doomed = log.delete_segments_below(log.log_start_offset)
            except OSError as error:
                partition.note_failure("deletion of segments", error)
                continue
            if doomed:
                broker.log_dirs.delete_later(doomed, broker.now() + log.config.file_delete_delay_ms / 1000)
        return is_written


def _tell_of_torn_tail(topic: str, index: int, torn: TornTail) -> None:
    kept = ""
    if torn.kept_in:
        kept = f"; there were whole record batches among them, so they are kept in {', '.join(torn.kept_in)}"
    logger.warning(
        "Recovery of %s-%d has cut %d bytes that were not synced, from offset %d on%s",
        *(topic, index, torn.size, torn.offset, kept),
    )
