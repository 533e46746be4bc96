"""Runs the group coordinators: one pure `GroupCoordinator` for each partition of `__consumer_offsets` (rule G2).

An event goes to the coordinator of its group; the records of its result are appended as one write, replayed into the
coordinator, and once they are committed the replies leave. One timer of the broker stands for all deadlines of a
coordinator. A ticket is the function that takes the answer.

A coordinator is made when its partition is first needed, from its log; at start those with a log are made at once,
since their members' sessions have to run. Expiry of offsets and loading beside the serving loop
(COORDINATOR_LOAD_IN_PROGRESS) have their places here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from os import urandom
from typing import TYPE_CHECKING, TypeAlias

from broker.config_keys.groups import (
    GROUP_INITIAL_REBALANCE_DELAY_MS,
    GROUP_MAX_SESSION_TIMEOUT_MS,
    GROUP_MAX_SIZE,
    GROUP_MIN_SESSION_TIMEOUT_MS,
    OFFSET_METADATA_MAX_BYTES,
)
from coord.cluster.topic_names import GROUP_METADATA_TOPIC
from coord.groups.config import GroupConfig
from coord.machine import Moment, Result, coordinator_partition
from wire.errors import ErrorCode, KafkaError
from wire.records import BatchBuilder

if TYPE_CHECKING:
    from broker.context import Broker
    from broker.partition import Partition
    from broker.timers import Timer
    from coord.cluster.image import ClusterDelta
    from coord.groups.coordinator import GroupCoordinator
    from coord.machine import CoordinatorRecord
    from wire.schema import Struct

logger = logging.getLogger("kafka.coordinator.group.GroupCoordinator")

_RECORD_OVERHEAD = 32  # lengths, attributes and deltas of one record, at most

Event: TypeAlias = "Callable[[GroupCoordinator, Moment], Result]"


def new_id() -> str:
    """A random uuid in the usual text form: member ids end in it."""
    text = urandom(16).hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[int(text[16], 16) & 3]}{text[17:20]}-{text[20:]}"


class _Shard:
    """One coordinator, the partition it writes to, and the timer of its next deadline."""

    __slots__ = ("coordinator", "partition", "timer")

    def __init__(self, coordinator: GroupCoordinator, partition: Partition) -> None:
        self.coordinator = coordinator
        self.partition = partition
        self.timer: Timer | None = None


class Coordinators:
    """All group coordinators of this broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._shards: dict[int, _Shard] = {}
        self._partition_count = 0  # fixed once known: it decides which coordinator a group has
        config = broker.config
        self._config = GroupConfig(
            min_session_timeout_ms=config[GROUP_MIN_SESSION_TIMEOUT_MS],
            max_session_timeout_ms=config[GROUP_MAX_SESSION_TIMEOUT_MS],
            initial_rebalance_delay_ms=config[GROUP_INITIAL_REBALANCE_DELAY_MS],
            max_size=config[GROUP_MAX_SIZE],
            offset_metadata_max_bytes=config[OFFSET_METADATA_MAX_BYTES],
        )

    # ---- which coordinator

    def load(self) -> None:
        """Replay the logs there are; called once, when the partitions are open."""
        for partition in self._broker.partitions.of_topic(GROUP_METADATA_TOPIC):
            if partition.log.log_end_offset > partition.log.log_start_offset:
                self._shard(partition.index)

    def ensure_topic(self) -> None:
        """Create `__consumer_offsets` unless it is there. KafkaError COORDINATOR_NOT_AVAILABLE when that fails."""
        if GROUP_METADATA_TOPIC in self._broker.image.topics:
            return
        try:
            self._broker.controller.auto_create([GROUP_METADATA_TOPIC])
        except KafkaError as error:
            logger.warning("Cannot create %s: %s", GROUP_METADATA_TOPIC, error)
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error

    def find(self, group_id: str) -> None:
        """Make sure that a group has a coordinator. KafkaError COORDINATOR_NOT_AVAILABLE when it cannot have one."""
        self.ensure_topic()
        partition_count = self._partition_count or len(self._broker.image.topics[GROUP_METADATA_TOPIC].partitions)
        index = coordinator_partition(group_id, partition_count)
        if (GROUP_METADATA_TOPIC, index) in self._broker.partitions.offline:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{GROUP_METADATA_TOPIC}-{index} is offline.")

    def of_group(self, group_id: str) -> GroupCoordinator:
        """The coordinator of a group, to look at. KafkaError NOT_COORDINATOR before anybody asked for one."""
        return self._shard_of(group_id).coordinator

    def __iter__(self) -> Iterator[GroupCoordinator]:
        return (shard.coordinator for shard in self._shards.values())

    def _shard_of(self, group_id: str) -> _Shard:
        if not self._partition_count:
            topic = self._broker.image.topics.get(GROUP_METADATA_TOPIC)
            if topic is None:
                raise KafkaError(ErrorCode.NOT_COORDINATOR)
            self._partition_count = len(topic.partitions)
        index = coordinator_partition(group_id, self._partition_count)
        return self._shards.get(index) or self._shard(index)

    def _shard(self, index: int) -> _Shard:
        try:
            partition = self._broker.partitions.get(GROUP_METADATA_TOPIC, index)
        except KafkaError:
            raise KafkaError(ErrorCode.NOT_COORDINATOR) from None
        from broker.coordinator_log import replay_log
        from coord.groups.coordinator import GroupCoordinator  # 20 ms that a start without groups does not pay

        shard = self._shards[index] = _Shard(GroupCoordinator(self._config, new_id), partition)
        at = self._moment()
        count = replay_log(partition, shard.coordinator, at)
        if count:
            logger.info("Loaded %d groups from %d records of %r", len(shard.coordinator.groups), count, partition)
        self._finish(shard, shard.coordinator.loaded(at), at)
        return shard

    # ---- events

    def uncommitted(self, group_ids: Iterable[str]) -> set[Partition]:
        """Of the partitions that these groups are kept in, those with records that are not committed yet."""
        found = set()
        for group_id in group_ids:
            try:
                partition = self._shard_of(group_id).partition
            except KafkaError:
                continue  # there is no coordinator, nothing is known
            if partition.log.high_watermark < partition.log.log_end_offset:
                found.add(partition)
        return found

    def handle(self, group_id: str, event: Event) -> None:
        """Let the group's coordinator handle an event. KafkaError NOT_COORDINATOR when there is none."""
        shard = self._shard_of(group_id)
        at = self._moment()
        self._finish(shard, event(shard.coordinator, at), at)

    def apply(self, delta: ClusterDelta) -> None:
        """Follow a change of the metadata: the offsets of deleted topics go."""
        for topic in delta.deleted_topics.values():
            if topic.name == GROUP_METADATA_TOPIC:
                self.stop()
            else:
                at = self._moment()
                for shard in list(self._shards.values()):
                    self._finish(shard, shard.coordinator.topic_deleted(topic.name), at)

    def partition_failed(self, index: int) -> None:
        """A partition's log cannot be served any more: its groups have no coordinator until the next start."""
        shard = self._shards.pop(index, None)
        if shard is not None:
            _unload(shard, self._moment())

    def stop(self) -> None:
        """Send everybody who waits away; nothing is written, so that a restart finds the groups as they were."""
        at = self._moment()
        shards, self._shards = self._shards, {}
        self._partition_count = 0
        for shard in shards.values():
            _unload(shard, at)

    def _finish(self, shard: _Shard, result: Result, at: Moment) -> None:
        """Write, replay, release; then whatever is due already; then set the timer."""
        self._write_and_release(shard, result, at)
        coordinator = shard.coordinator
        while (deadline := coordinator.next_deadline()) is not None and deadline <= at.now:
            self._write_and_release(shard, coordinator.tick(at), at)
        timer = shard.timer
        if deadline is None or (timer is not None and timer.callback is not None and timer.deadline <= deadline):
            return  # a timer that fires too early finds nothing due and is set anew
        if timer is not None:
            timer.cancel()
        shard.timer = self._broker.timers.at(deadline, lambda: self._fire(shard))

    def _fire(self, shard: _Shard) -> None:
        shard.timer = None
        at = self._moment()
        self._finish(shard, shard.coordinator.tick(at), at)

    def _write_and_release(self, shard: _Shard, result: Result, at: Moment) -> None:
        if result.records:
            try:
                self._append(shard.partition, result.records, at)
            except KafkaError as error:
                logger.error("Cannot write to %r: %s", shard.partition, error)
                result = shard.coordinator.append_failed(result, error.code, at)
            for key, value in result.records:
                shard.coordinator.replay(key, value, at)
        log = shard.partition.log
        if log.high_watermark == log.log_end_offset:
            _release(result)
        else:  # also without records: the answer may tell of some that are not committed yet
            shard.partition.when_committed(log.log_end_offset - 1, lambda error: _answer(shard, result, error))

    @staticmethod
    def _append(partition: Partition, records: list[CoordinatorRecord], at: Moment) -> None:
        """Append the records as one write: one batch, or as many as `max.message.bytes` asks for."""
        if partition.is_gone:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        limit = partition.log.config.max_message_bytes
        batches = bytearray()
        builder = BatchBuilder()
        for key, value in records:
            size = len(key) + len(value or b"") + _RECORD_OVERHEAD
            if builder.count and builder.size_estimate + size > limit:
                batches += builder.build()
                builder = BatchBuilder()
            builder.append(at.now_ms, key, value)
        batches += builder.build()
        partition.append(memoryview(batches), at.now, origin="coordinator")

    def _moment(self) -> Moment:
        return Moment(self._broker.now(), self._broker.now_ms())


def _unload(shard: _Shard, at: Moment) -> None:
    if shard.timer is not None:
        shard.timer.cancel()
    _release(shard.coordinator.unload(at))


def _answer(shard: _Shard, result: Result, error: ErrorCode) -> None:
    """The records of a result, and those before them, are committed; or they never will be."""
    _release(shard.coordinator.commit_failed(result, error) if error else result)


def _release(result: Result) -> None:
    for ticket, message, _ in result.replies:
        answer: Callable[[Struct], None] = ticket  # type: ignore[assignment]  # every ticket here is such a function
        answer(message)
