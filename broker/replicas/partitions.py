"""The partitions this broker holds: opened, configured and removed as the metadata image says.

A partition whose log is damaged, or whose disk has failed, goes offline: its requests are answered with
KAFKA_STORAGE_ERROR, metadata shows it without a leader, its files stay unchanged, and the other partitions are served
(L2).
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from barnabas.broker.config.keys.general import PRODUCER_ID_EXPIRATION_MS
from barnabas.broker.config.keys.own import LOG_READ_CHECK_CRCS, LOG_SYNC, PARTITION_PRODUCERS_MAX, PRODUCE_VALIDATION
from barnabas.broker.event_loop.guarded import call_guarded
from barnabas.broker.exhausted_dirs import NO_DESCRIPTORS
from barnabas.broker.log_dir_failures import is_transient
from barnabas.broker.replicas.flush.syncfs_choice import MANY_FILES
from barnabas.broker.replicas.log_dirs.local_failures import LocalFailures
from barnabas.broker.replicas.log_dirs.offline_partitions import OfflinePartitions
from barnabas.broker.replicas.log_starts import LogStarts
from barnabas.broker.replicas.partition import Partition
from barnabas.coord.cluster.resources import TOPIC
from barnabas.storage.damage import DamagedLog
from barnabas.storage.directories.checkpoint_files import CHECKPOINT_NAMES
from barnabas.storage.directories.checkpoints import CorruptCheckpoint
from barnabas.storage.log_config import LogConfig
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.steps import StepRunner, Steps
    from barnabas.broker.log_dir_failures import LogDirFailures
    from barnabas.broker.replicas.flush.flusher import Flusher
    from barnabas.broker.replicas.leader.isr_changes import Send
    from barnabas.broker.replicas.leader.leading import Leading
    from barnabas.broker.replicas.replication import Replication
    from barnabas.coord.cluster.delta import ClusterDelta
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.coord.cluster.topic_image import TopicImage
    from barnabas.storage.directories.log_dir import LogDir
    from barnabas.storage.directories.log_dirs import LogDirs
    from barnabas.storage.directories.new_directories import NewDirectories
    from barnabas.storage.log import Log
    from barnabas.wire.messages.replication import AlterPartitionRequest

logger = logging.getLogger("kafka.server.ReplicaManager")

NOBODY = -2
"""No broker has this id, and it is not the leader id of a partition without a leader."""

DELETED = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

NEW_PER_STEP = 100
"""The number of new partitions whose directories are made together in a thread."""


@dataclass(slots=True, eq=False, repr=False)
class _Topic:
    """The partitions of one topic."""

    name: str
    topic_id: bytes
    partitions: dict[int, Partition] = field(default_factory=dict)


class Partitions:
    """Every partition of this broker, by topic name and by topic id."""

    def __init__(
        self,
        loop: Loop,
        config: ServerConfig,
        log_dirs: LogDirs,
        failures: LogDirFailures,
        flushers: Mapping[LogDir, Flusher],
        runner: StepRunner,
    ) -> None:
        self._loop = loop
        self._config = config
        self._log_dirs = log_dirs
        self._failures = failures
        self._flushers = flushers
        self._runner = runner
        self._log_starts = LogStarts(loop, log_dirs, failures, runner, lambda: self)
        self._by_name: dict[str, _Topic] = {}
        self._topics: dict[str | bytes, _Topic] = {}
        """By name and by id."""
        self._is_loading = True
        self._offline = OfflinePartitions(loop, log_dirs)
        self.offline: Mapping[tuple[str, int], str] = self._offline.reasons
        """(topic, index) of the partitions that cannot be served -> reason; iteration and `get` leave them out."""
        self.local_failures = LocalFailures(config.node_id, log_dirs, failures.exhausted, self.offline)
        failures.exhausted.on_change.append(self._exhaustion_changed)
        self.on_failure: dict[str, Callable[[int], None]] = {}
        """By topic: called at the end of the turn with the index of a partition that is not served any more."""
        self.on_role_change: list[Callable[[Partition], None]] = []
        """Called with each partition whose leader or leader epoch has changed, after its state is set: it leads,
        follows or has no leader. A partition that was just opened counts as changed."""
        self.on_removed: list[Callable[[Partition], None]] = []
        """Called with each partition that this broker holds no longer: deleted, moved to other brokers, or offline."""
        self._image: ClusterImage | None = None
        self.incarnation_id: bytes | None = None
        """Of a broker in a cluster: it leads nothing before the metadata has the registration of this incarnation.

        The leader epochs before that belong to its predecessor, whose records a crash may have taken."""
        self.send_to_controller: Send = _no_controller
        """Sends a request to the active controller: `ControllerChannel.send`."""

    @cached_property
    def replication(self) -> Replication:
        """The shared part of partitions with followers; made when this broker leads the first one."""
        from barnabas.broker.replicas.replication import Replication

        return Replication(
            self._loop,
            self._config,
            self._runner,
            image=self._current_image,
            partitions=lambda: self,
            send=self._send,
        )

    def _lead(self, partition: Partition) -> Leading:
        return self.replication.lead(partition)

    def _send(self, request: AlterPartitionRequest, then: Callable[[Any], None]) -> None:
        self.send_to_controller(request, then)

    def _current_image(self) -> ClusterImage:
        assert self._image is not None
        return self._image

    def __iter__(self) -> Iterator[Partition]:
        for topic in self._by_name.values():
            yield from topic.partitions.values()

    def get(self, topic: str | bytes, index: int) -> Partition:
        """A partition by topic name or id.

        KafkaError(UNKNOWN_TOPIC_OR_PARTITION), UNKNOWN_TOPIC_ID, KAFKA_STORAGE_ERROR when it is offline.
        """
        try:
            return self._topics[topic].partitions[index]
        except KeyError:
            raise self._error(topic, index) from None

    def find(self, topic: str, index: int) -> Partition | None:
        """A partition by name; None if it is not served here."""
        served = self._by_name.get(topic)
        return None if served is None else served.partitions.get(index)

    def get_leader(self, topic: str | bytes, index: int) -> Partition:
        """A partition that this broker leads; KafkaError(NOT_LEADER_OR_FOLLOWER), else as `get`."""
        try:
            partition = self._topics[topic].partitions[index]
        except KeyError:
            raise self._error(topic, index) from None
        if not partition.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

    def _error(self, topic: str | bytes, index: int) -> KafkaError:
        """The error for a partition that this broker does not have (Kafka's `getPartitionOrError`)."""
        if isinstance(topic, bytes):
            known = self._topics.get(topic)
            if known is None:
                return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
            topic = known.name
        error = self._offline.error(topic, index)
        if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._image is not None:
            partition = self._image.partition(topic, index)
            if partition is not None and self._config.node_id not in partition.replicas:
                return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return error

    def of_topic(self, name: str) -> list[Partition]:
        """The partitions of a topic; none if there is no such topic."""
        return list(self._by_name[name].partitions.values()) if name in self._by_name else []

    # -- applying the image

    def load(self, image: ClusterImage) -> None:
        """Open the logs of the partitions that `image` assigns to this broker; set aside other directories (R22)."""
        self._image = image
        for topic in image.topics.values():
            self._open_topic(image, topic, topic.partitions)
        self._flush_loaded()
        self._is_loading = False
        for path in self._log_dirs.leave_foreign():
            logger.warning("%s has a partition's name, but no file of one that can be read: it is left as it is", path)
        for name, index in self._log_dirs.not_opened():
            self._log_dirs.rename_stray(name, index)
        self._warn_of_strays()
        self._log_dirs.forget_missing()

    def _flush_loaded(self) -> None:
        """Flush records that a crash has left in the page cache before they can be read, if there is a flush policy."""
        dir_of = self._log_dirs.dir_of
        for log_dir in self._log_dirs.dirs:
            in_dir = (replica for replica in self if dir_of(replica.topic, replica.index) is log_dir)
            logs = [replica.log for replica in in_dir if replica.flush_policy is not None]
            jobs = [(log, job) for log in logs if log.unflushed and (job := log.start_flush(data_only=True))]
            if jobs:
                try:
                    log_dir.sync([job for _, job in jobs], whole_file_system=len(jobs) >= MANY_FILES)
                except OSError as error:
                    self._failures.take_offline(log_dir, "sync", error)
                    continue
                for log, job in jobs:
                    log.finish_flush(job)

    def apply(self, image: ClusterImage, delta: ClusterDelta) -> Steps[None]:
        """Apply a change of the image, in steps; done before the request that caused it is answered."""
        self._image = image
        yield from self._remove(list(delta.deleted_topics.values()))
        yield from self._remove_replicas(delta)
        changed = [*delta.new_partitions.items(), *delta.changed_partitions.items()]
        configs: dict[bytes, LogConfig] = {}
        for at in range(0, len(changed), NEW_PER_STEP):
            batch = [(topic, index) for (_, index), topic in changed[at : at + NEW_PER_STEP]]
            directories = yield from self._make_directories(batch)
            for topic, index in batch:
                config = configs.get(topic.topic_id)
                if config is None:
                    config = configs[topic.topic_id] = self.config_of(image, topic.name)
                self._open_or_update(topic, index, config, directories)
                yield None
        for resource_type, name in delta.changed_configs:
            if resource_type == TOPIC and name in image.topics:  # else it was deleted with its configs
                yield from self.update_configs(image, name)
        if delta.changed_brokers and "replication" in self.__dict__:
            yield from self.replication.brokers_changed()

    def _make_directories(self, batch: Sequence[tuple[TopicImage, int]]) -> Steps[NewDirectories]:
        """Make the directories of the new ones among these partitions, in a thread."""
        log_dirs = self._log_dirs
        directories = log_dirs.new_directories()
        stale: dict[tuple[LogDir, str], None] = {}
        for topic, index in batch:
            if self._is_assigned(topic, index) and (topic.name, index) not in self.offline:
                stale.update(dict.fromkeys(log_dirs.place(topic.name, index, topic.topic_id, directories)))
        for log_dir, name in stale:
            for _, write in (yield from log_dirs.plan_checkpoint_in_steps(name, log_dir)):
                try:
                    yield write
                except OSError as error:  # a start would use the offsets in the file for the new logs
                    self._failures.report(log_dir, f"checkpoint {name}", error)
                    directories.failures.update({(topic.name, index): error for topic, index in batch})
        if directories and not directories.failures:
            yield directories.make
        for topic_name, index in directories.failures:
            log_dirs.unplace(topic_name, index)
        return directories

    def _is_assigned(self, topic: TopicImage, index: int) -> bool:
        return self._config.node_id in topic.partitions[index].replicas

    def _open_topic(self, image: ClusterImage, target: TopicImage, indexes: Iterable[int]) -> None:
        """Open these partitions, or update those that are open, as the image says."""
        config = self.config_of(image, target.name)
        for index in indexes:
            self._open_or_update(target, index, config)

    def _open_or_update(
        self, target: TopicImage, index: int, config: LogConfig, directories: NewDirectories | None = None
    ) -> None:
        """Open a partition, or update it if it is open, as the image says."""
        topic = self._topics.get(target.topic_id)
        if topic is None:
            topic = _Topic(target.name, target.topic_id)
            self._by_name[topic.name] = self._topics[topic.name] = self._topics[topic.topic_id] = topic
        if not self._is_assigned(target, index):
            return
        partition = topic.partitions.get(index)
        if partition is not None and self._is_replaced(partition, target):
            partition = None
        if partition is None:
            partition = self._open(target, index, config, directories)
            if partition is None:
                return
            topic.partitions[index] = partition
        if partition.update(target.partitions[index], self._leading_id()):
            self._tell(self.on_role_change, partition)

    def _is_replaced(self, partition: Partition, target: TopicImage) -> bool:
        """Stop serving a damaged replica whose log may be set aside now; it is opened again, empty."""
        assigned = target.partitions[partition.index]
        if (reason := self.local_failures.updated(partition, assigned)) is None:
            return False
        partition.update(assigned, NOBODY)  # waits for commits fail, since another broker leads
        self._stop_serving(partition)
        self._offline.add_quietly(partition.topic, partition.index, reason)
        return True

    def _leading_id(self) -> int:
        """The id under which this broker leads partitions."""
        node_id = self._config.node_id
        if self.incarnation_id is not None:
            registered = self._current_image().brokers.get(node_id)
            if registered is None or registered.incarnation_id != self.incarnation_id:
                return NOBODY
            self.incarnation_id = None
        return node_id

    @staticmethod
    def _tell(subscribers: Sequence[Callable[[Partition], None]], partition: Partition) -> None:
        for subscriber in subscribers:
            call_guarded("Following a change of a partition", subscriber, partition)

    def _open(
        self, topic: TopicImage, index: int, config: LogConfig, directories: NewDirectories | None = None
    ) -> Partition | None:
        """Open a partition's log; None when the partition is offline. `directories` were just made."""
        if (topic.name, index) in self.offline:
            local = self.local_failures
            if (topic.topic_id, index) not in local.damaged or not local.may_refill(topic.partitions[index]):
                return None
            if not self._give_up(topic, index, self.offline[topic.name, index]):
                return None
        try:
            if directories is not None:
                self._check_made(topic.name, index, directories)
            log = self._log_dirs.open_log(
                topic.name,
                index,
                config,
                topic_id=topic.topic_id,
                now_ms=self._loop.now_ms(),
                now=self._loop.now(),
                producer_expiration_ms=self._config[PRODUCER_ID_EXPIRATION_MS],
                new_directories=directories,
            )
        except (DamagedLog, CorruptCheckpoint) as error:
            return self._open_damaged(topic, index, config, str(error))
        except (KafkaError, OSError) as error:  # KafkaError: no directory works
            self._not_opened(topic, index, error)
            return None
        log.checks_reads = self._config[LOG_READ_CHECK_CRCS]
        log.max_producers = self._config[PARTITION_PRODUCERS_MAX]
        if not self._is_loading:
            self._warn_of_strays()
        if log.torn is not None:
            logger.warning("Recovery of %s-%d has cut %s", topic.name, index, log.torn)
        partition = Partition(
            topic.name,
            index,
            topic.topic_id,
            log,
            loop=self._loop,
            failures=self._failures,
            on_failure=self.take_offline,
            on_damage=self.local_failures.add_damaged,
            lead=self._lead,
        )
        self._apply_flush_policy(partition)
        return partition

    def _open_damaged(self, topic: TopicImage, index: int, config: LogConfig, reason: str) -> Partition | None:
        """A damaged log is offline, unless its leader can fill it again: then no operator is needed."""
        self.local_failures.damaged[topic.topic_id, index] = reason
        if self.local_failures.may_refill(topic.partitions[index]):
            self._offline.add_quietly(topic.name, index, reason)
            return self._open(topic, index, config)
        self._offline.add(topic.name, index, reason, has_peers=len(topic.partitions[index].replicas) > 1)
        self.local_failures.changed([(topic.topic_id, index)])
        return None

    def _not_opened(self, topic: TopicImage, index: int, error: KafkaError | OSError) -> None:
        """Keep the partition offline: until the broker is started again, or for now if the error may pass."""
        if not (isinstance(error, OSError) and is_transient(error)):
            self._offline.add(topic.name, index, str(error), has_peers=False)
        elif self._is_loading and error.errno in NO_DESCRIPTORS:
            raise error  # descriptors are not freed before the start is over
        else:
            self._offline.add_for_now(topic, index, error)
        self.local_failures.changed([(topic.topic_id, index)])

    def _give_up(self, topic: TopicImage, index: int, reason: str) -> bool:
        """Set a damaged log aside, so that it is created again and filled by its leader; whether that was done."""
        try:
            path = self._log_dirs.give_up(topic.name, index)
        except OSError as error:
            self._failures.report_log(topic.name, index, "renaming of a damaged log", error)
            self._offline.add_for_now(topic, index, error)
            return False
        self.local_failures.given_up(topic.topic_id, index)
        self._offline.remove(topic.name, index)
        hint = f". What it had is kept in {path}; remove it when it is not needed" if path else ""
        text = "Partition %s-%d is filled from its leader again, since %s%s"
        logger.warning(text, topic.name, index, reason.rstrip("."), hint)
        return True

    def _check_made(self, topic: str, index: int, directories: NewDirectories) -> None:
        """Raise the error with which making the directory of a new partition has failed, if it has."""
        failure = directories.failures.get((topic, index))
        log_dir = self._log_dirs.dir_of(topic, index)
        if failure is None and log_dir is not None and log_dir.failure is not None:
            failure = OSError(errno.EIO, "The log directory has failed", log_dir.path)
        if failure is not None:
            raise failure

    def _warn_of_strays(self) -> None:
        strays = self._log_dirs.strays
        while strays:
            logger.warning(
                "A directory belongs to no partition of the metadata, by its name or by its topic id. It was set "
                "aside as %s; remove it when it is not needed",
                strays.pop(),
            )

    def _apply_flush_policy(self, partition: Partition) -> None:
        """Apply the topic's flush policy."""
        log_dir = self._log_dirs.dir_of(partition.topic, partition.index)
        if log_dir is not None:
            partition.apply_flush_policy(self._config[LOG_SYNC], self._flushers[log_dir])
            if partition.flush_policy is not None and not self._is_loading:  # `_flush_loaded` does it then
                partition.flush_policy.applied()

    def moved(self, partition: Partition, log: Log) -> None:
        """The log of a partition is in another log directory now."""
        partition.log = log
        log_dir = self._log_dirs.dir_of(partition.topic, partition.index)
        if partition.flush_policy is not None and log_dir is not None:
            partition.flush_policy.release(self._flushers[log_dir].request)

    def forget_expired_producers(self) -> Steps[None]:
        """Drop the state of idempotent producers that wrote nothing for `producer.id.expiration.ms` (I6)."""
        now_ms, expiration_ms = self._loop.now_ms(), self._config[PRODUCER_ID_EXPIRATION_MS]
        for partition in list(self):
            partition.log.producers.remove_expired(now_ms, expiration_ms)
            yield None

    # -- offline

    def take_offline(self, partition: Partition, reason: str) -> None:
        """Stop serving a partition; everything that waits for it gets KAFKA_STORAGE_ERROR."""
        self._stop_serving(partition)
        self.local_failures.damaged[partition.topic_id, partition.index] = reason
        self._offline.add(partition.topic, partition.index, reason, has_peers=partition.has_peers)
        self.local_failures.changed([(partition.topic_id, partition.index)])

    def _exhaustion_changed(self, log_dir: LogDir) -> None:
        """Nothing can be appended in a log directory for now, or again: followers stop or go on fetching."""
        for partition in self.local_failures.exhaustion_changed(log_dir, self):
            if not partition.is_leader:
                self._tell(self.on_role_change, partition)

    def reopen(self, image: ClusterImage) -> None:
        """Try again to open the partitions for which a resource was exhausted."""
        to_reopen = self._offline.to_reopen
        for topic_id, index in list(to_reopen):
            topic = image.topics_by_id.get(topic_id)
            if topic is None:
                del to_reopen[topic_id, index]
                continue
            local = self.local_failures
            if (topic_id, index) not in local.damaged or not local.may_refill(topic.partitions[index]):
                self._offline.remove(topic.name, index)
            self._open_topic(image, topic, [index])
            if (topic.name, index) not in self.offline:
                del to_reopen[topic_id, index]
                logger.info("Partition %s-%d is online again", topic.name, index)
                self.local_failures.changed([(topic_id, index)])

    def take_dir_offline(self, log_dir: LogDir, reason: str) -> None:
        """Stop serving the partitions in a log directory."""
        dir_of = self._log_dirs.dir_of
        lost = [partition for partition in self if dir_of(partition.topic, partition.index) is log_dir]
        for partition in lost:
            self._stop_serving(partition)
            self._offline.add_quietly(partition.topic, partition.index, reason)
        if lost:
            logger.error(
                "%d partitions are offline with the log directory %s: %s",
                *(len(lost), log_dir.path, ", ".join(f"{replica.topic}-{replica.index}" for replica in lost)),
            )

    def _stop_serving(self, partition: Partition) -> None:
        topic = self._topics.get(partition.topic_id)
        if topic is not None:  # else it is being deleted
            topic.partitions.pop(partition.index, None)
        callback = self.on_failure.get(partition.topic)
        if callback is not None:
            self._loop.call_after_turn(partial(callback, partition.index))
        partition.close(ErrorCode.KAFKA_STORAGE_ERROR)
        self._tell(self.on_removed, partition)

    def _forget_topic(self, deleted: TopicImage) -> _Topic | None:
        """Remove a topic's partitions from the maps by name and id."""
        topic = self._topics.pop(deleted.topic_id, None)
        if topic is not None and self._by_name.get(topic.name) is topic:
            del self._by_name[topic.name], self._topics[topic.name]
        return topic

    def _remove(self, deleted: Sequence[TopicImage]) -> Steps[None]:
        """Stop serving the partitions of deleted topics at once; then delete their logs, durably."""
        removed = [topic for image in deleted if (topic := self._forget_topic(image)) is not None]
        if not removed:
            return
        for image in deleted:
            for index in image.partitions:
                self.local_failures.forget(image.topic_id, index)
                if (image.name, index) in self.offline:
                    self._offline.delete(image.name, index)
                    yield None
        changed: dict[LogDir, None] = {}
        for topic in removed:
            for partition in list(topic.partitions.values()):
                if not partition.is_closed:
                    self._delete(partition, changed)
                    yield None
        yield from self._persist_deletion(changed)

    def _remove_replicas(self, delta: ClusterDelta) -> Steps[None]:
        """Stop serving the partitions that were moved to other brokers, and delete their logs, durably (R19)."""
        changed: dict[LogDir, None] = {}
        for count, ((topic_id, index), image) in enumerate(list(delta.changed_partitions.items()), 1):
            if count % 1000 == 0:
                yield None
            if self._is_assigned(image, index):
                continue
            self.local_failures.forget(topic_id, index)
            if (image.name, index) in self.offline:
                self._offline.delete(image.name, index)
                yield None
            topic = self._topics.get(topic_id)
            partition = None if topic is None else topic.partitions.pop(index, None)
            if partition is not None and not partition.is_closed:
                logger.info("Partition %s-%d was moved to other brokers: its log is deleted", image.name, index)
                self._delete(partition, changed, ErrorCode.NOT_LEADER_OR_FOLLOWER)
                yield None
        if changed:
            yield from self._persist_deletion(changed)

    def _persist_deletion(self, changed: Iterable[LogDir]) -> Steps[None]:
        """Make the new names of deleted logs' directories durable, and remove these logs from the checkpoints."""
        for log_dir in changed:
            try:
                yield log_dir.sync_names
            except OSError as error:
                self._failures.take_offline(log_dir, "sync", error)
        for name in CHECKPOINT_NAMES:  # so that new partitions of the same names need not write them
            yield from self._failures.write_checkpoint(name)

    def _delete(self, partition: Partition, changed: dict[LogDir, None], error: ErrorCode = DELETED) -> None:
        """Delete a partition's log, and add its log directory to those whose names have changed."""
        try:
            changed[self._log_dirs.delete_log(partition.topic, partition.index, now=self._loop.now())] = None
        except OSError as failure:
            partition.report_failure("deletion", failure)
        partition.close(error)
        self._tell(self.on_removed, partition)

    def config_of(self, image: ClusterImage, topic: str) -> LogConfig:
        """A topic's effective configuration: its own overrides over this broker's defaults."""
        config = LogConfig.from_map(image.config(TOPIC, topic), self._config.topic_defaults())
        config.record_validation = self._config[PRODUCE_VALIDATION]
        return config

    def update_configs(self, image: ClusterImage, topic: str | None = None) -> Steps[None]:
        """Apply changed configuration to the logs of a topic, or of all topics when the broker's defaults changed."""
        for name in [topic] if topic is not None else list(self._by_name):
            config = self.config_of(image, name)
            for partition in self.of_topic(name):
                partition.log.update_config(config)
                self._apply_flush_policy(partition)
                if partition.leading is not None:
                    partition.leading.advance()  # min.insync.replicas may be less now
                yield None

    # -- deletion of records

    def persist_log_starts(self, then: Callable[[bool], None] = lambda _: None) -> None:
        """Persist the log starts, then delete the segments below them; see `LogStarts.persist`."""
        self._log_starts.persist(then)


def _no_controller(_: object, __: object) -> None:
    raise RuntimeError("This broker was built without a channel to the controller")
