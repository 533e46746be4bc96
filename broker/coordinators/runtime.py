"""Runs the coordinators of one internal topic: a pure state machine for each of its partitions (rules G2, T1).

An event goes to the coordinator of its key; the records of its result are appended as one write, replayed into the
coordinator, and once they are committed the replies leave. One timer of the broker stands for all deadlines of a
coordinator. A ticket is the function that takes the answer.

A coordinator is made when its partition is first needed, from its log; at start those with a log are made at once,
since time runs for what is in them, and where that would take long, beside the serving loop (`coordinator_loading`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from barnabas.broker.coordinators.loading import AT_ONCE_BYTES, SLICE_S, Loading
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.coord.machine import Moment, Result
from barnabas.coord.partitioning import coordinator_partition
from barnabas.wire.compression import Codec
from barnabas.wire.configdef import ConfigError
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records import BatchBuilder
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.context import Broker
    from barnabas.broker.coordinators.log import Take
    from barnabas.broker.replicas.partition import Partition
    from barnabas.broker.timers import Timer
    from barnabas.wire.configdef import ConfigKey
    from barnabas.wire.schema import Struct

logger = logging.getLogger("kafka.coordinator.Runtime")

_RECORD_OVERHEAD = 32  # lengths, attributes and deltas of one record, at most


class Coordinator(Protocol):
    """The part of a coordinator that the runtime deals with; see `coord.machine`."""

    def loaded(self, at: Moment, /) -> Result:
        """The whole log has been replayed."""

    def unload(self, at: Moment, /) -> Result:
        """The partition has gone elsewhere."""

    def append_failed(self, result: Result, error: ErrorCode, at: Moment, /) -> Result:
        """What to do and answer instead of a result that could not be written."""

    def commit_failed(self, result: Result, error: ErrorCode, /) -> Result:
        """What to answer instead of a result that will not become durable."""

    def next_deadline(self) -> float | None:
        """When `tick` has something to do."""

    def tick(self, at: Moment, /) -> Result:
        """Everything that is due."""


C = TypeVar("C", bound=Coordinator)
Event: TypeAlias = "Callable[[C, Moment], Result]"


class Shard(Generic[C]):
    """One coordinator, the partition it writes to, and the timer of its next deadline."""

    __slots__ = ("coordinator", "partition", "timer")

    def __init__(self, coordinator: C, partition: Partition) -> None:
        self.coordinator = coordinator
        self.partition = partition
        self.timer: Timer | None = None


class CoordinatorRuntime(Generic[C]):
    """All coordinators of one topic on this broker. What is special about a kind of them is in a subclass."""

    topic: str
    """The internal topic that they write to."""
    codec: int = Codec.NONE
    """How the batches that they write are compressed."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._shards: dict[int, Shard[C]] = {}
        self._loading: dict[int, Loading[C]] = {}
        self._partition_count = 0  # fixed once known: it decides which coordinator a key has

    # ---- what a kind of coordinators does in its own way

    def _new(self, at: Moment) -> tuple[C, Take]:
        """A coordinator that knows nothing yet, and what takes the records of its log."""
        raise NotImplementedError

    def _contents(self, coordinator: C) -> str:
        """What has been loaded, as the log tells it: "12 groups"."""
        raise NotImplementedError

    def _replay(self, shard: Shard[C], result: Result, first_offset: int, at: Moment) -> None:
        """The records of a result are in the log, from this offset on."""
        raise NotImplementedError

    def _released(self, shard: Shard[C], result: Result) -> None:  # noqa: ARG002 - subclasses look at it
        """The records of a result, and those before them, are committed."""
        release_replies(result)

    # ---- which coordinator

    def load(self) -> None:
        """Replay the logs there are, or begin to; called once, when the partitions are open."""
        partitions = self._broker.partitions.of_topic(self.topic)
        written = [one for one in partitions if one.log.log_end_offset > one.log.log_start_offset]
        if sum(one.log.size_bytes for one in written) <= AT_ONCE_BYTES:
            for partition in written:
                self._shard(partition.index)
        else:
            self._loading = {partition.index: self._begin(partition) for partition in written}
            self._load_later()

    def _begin(self, partition: Partition) -> Loading[C]:
        from barnabas.broker.coordinators.log import replay_log

        coordinator, take = self._new(self._moment())
        return Loading(coordinator, partition, replay_log(partition, take))

    def _load_later(self) -> None:
        self._broker.timers.at(self._broker.now(), self._load_some)

    def _load_some(self) -> None:
        """Go on loading for a moment; again and again until all is loaded."""
        now = self._broker.now
        end = now() + SLICE_S
        while self._loading:
            index, loading = next(iter(self._loading.items()))
            if not loading.go_on(lambda: now() >= end):
                self._load_later()
                return
            del self._loading[index]
            self._put_in_charge(index, loading)

    def _put_in_charge(self, index: int, loading: Loading[C]) -> Shard[C]:
        """The whole log is replayed: time begins to run for what is in it, and events come in."""
        coordinator, at = loading.coordinator, self._moment()
        if loading.count:
            contents = self._contents(coordinator)
            logger.info("Loaded %s from %d records of %r", contents, loading.count, loading.partition)
        shard = self._shards[index] = Shard(coordinator, loading.partition)
        self._finish(shard, coordinator.loaded(at), at)
        for event in loading.missed:
            self._finish(shard, event(coordinator, at), at)
        return shard

    def check_loaded(self) -> None:
        """KafkaError COORDINATOR_LOAD_IN_PROGRESS while some coordinator does not know all of its log."""
        if self._loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def ensure_topic(self) -> None:
        """Create the internal topic unless it is there. KafkaError COORDINATOR_NOT_AVAILABLE when that fails."""
        if self.topic in self._broker.image.topics:
            return
        try:
            self._broker.controller.auto_create([self.topic])
        except KafkaError as error:
            logger.warning("Cannot create %s: %s", self.topic, error)
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error

    def find(self, key: str) -> None:
        """Make sure that a key has a coordinator. KafkaError COORDINATOR_NOT_AVAILABLE when it cannot have one."""
        self.ensure_topic()
        partition_count = self._partition_count or len(self._broker.image.topics[self.topic].partitions)
        index = coordinator_partition(key, partition_count)
        if (self.topic, index) in self._broker.partitions.offline:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self.topic}-{index} is offline.")

    def of(self, key: str) -> C:
        """The coordinator of a key, to look at.

        KafkaError NOT_COORDINATOR before anybody asked for one, COORDINATOR_LOAD_IN_PROGRESS while it is loaded.
        """
        return self._shard_of(key).coordinator

    def partition_of(self, key: str) -> int:
        """The partition that a key falls on. KafkaError NOT_COORDINATOR while there is no topic."""
        if not self._partition_count:
            topic = self._broker.image.topics.get(self.topic)
            if topic is None:
                raise KafkaError(ErrorCode.NOT_COORDINATOR)
            self._partition_count = len(topic.partitions)
        return coordinator_partition(key, self._partition_count)

    def __iter__(self) -> Iterator[C]:
        return (shard.coordinator for shard in self._shards.values())

    def _shard_of(self, key: str) -> Shard[C]:
        index = self.partition_of(key)
        return self._shards.get(index) or self._shard(index)

    def _shard(self, index: int) -> Shard[C]:
        try:
            partition = self._broker.partitions.get(self.topic, index)
        except KafkaError:
            raise KafkaError(ErrorCode.NOT_COORDINATOR) from None
        if index in self._loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        loading = self._begin(partition)
        loading.go_on(lambda: False)
        return self._put_in_charge(index, loading)

    # ---- events

    def uncommitted(self, keys: Iterable[str]) -> set[Partition]:
        """Of the partitions that these keys are kept in, those with records that are not committed yet."""
        found = set()
        for key in keys:
            try:
                partition = self._shard_of(key).partition
            except KafkaError:
                continue  # there is no coordinator, nothing is known
            if _is_uncommitted(partition):
                found.add(partition)
        return found

    def all_uncommitted(self) -> set[Partition]:
        """Of the partitions of all coordinators, those with records that are not committed yet."""
        return {shard.partition for shard in self._shards.values() if _is_uncommitted(shard.partition)}

    def handle(self, key: str, event: Event[C]) -> None:
        """Let the coordinator of a key handle an event. KafkaError NOT_COORDINATOR when there is none."""
        shard = self._shard_of(key)
        at = self._moment()
        self._finish(shard, event(shard.coordinator, at), at)

    def handle_all(self, event: Event[C]) -> None:
        """Let every coordinator that there is handle an event; those that are being loaded do so afterwards."""
        for loading in self._loading.values():
            loading.missed.append(event)
        at = self._moment()
        for shard in list(self._shards.values()):
            self._finish(shard, event(shard.coordinator, at), at)

    def partition_failed(self, index: int) -> None:
        """A partition's log cannot be served any more: its keys have no coordinator until the next start."""
        self._loading.pop(index, None)
        shard = self._shards.pop(index, None)
        if shard is not None:
            _unload(shard, self._moment())

    def stop(self) -> None:
        """Send everybody who waits away; nothing is written, so that a restart finds all as it was."""
        at = self._moment()
        shards, self._shards = self._shards, {}
        self._loading = {}
        self._partition_count = 0
        for shard in shards.values():
            _unload(shard, at)

    def _finish(self, shard: Shard[C], result: Result, at: Moment) -> None:
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

    def _fire(self, shard: Shard[C]) -> None:
        shard.timer = None
        at = self._moment()
        self._finish(shard, shard.coordinator.tick(at), at)

    def _write_and_release(self, shard: Shard[C], result: Result, at: Moment) -> None:
        if result.records:
            try:
                first_offset = self._append(shard.partition, result, at)
            except KafkaError as error:
                logger.error("Cannot write to %r: %s", shard.partition, error)
                result = shard.coordinator.append_failed(result, error.code, at)
            else:
                self._replay(shard, result, first_offset, at)
        log = shard.partition.log
        if log.high_watermark == log.log_end_offset:
            self._released(shard, result)
        else:  # also without records: the answer may tell of some that are not committed yet
            shard.partition.when_committed(log.log_end_offset - 1, lambda error: self._decided(shard, result, error))

    def _decided(self, shard: Shard[C], result: Result, error: ErrorCode) -> None:
        """The records of a result, and those before them, are committed; or they never will be."""
        if error:
            release_replies(shard.coordinator.commit_failed(result, error))
        else:
            self._released(shard, result)

    def _append(self, partition: Partition, result: Result, at: Moment) -> int:
        """Append the records as one write: one batch, or as many as `max.message.bytes` asks for; the first offset."""
        if partition.is_gone:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        settings: dict[str, Any] = {"codec": self.codec}
        if result.producer is not None:
            producer_id, producer_epoch = result.producer
            settings |= {"producer_id": producer_id, "producer_epoch": producer_epoch, "transactional": True}
        limit = partition.log.config.max_message_bytes
        batches = bytearray()
        builder = BatchBuilder(**settings)
        for key, value in result.records:
            size = len(key) + len(value or b"") + _RECORD_OVERHEAD
            if builder.count and builder.size_estimate + size > limit:
                batches += builder.build()
                builder = BatchBuilder(**settings)
            builder.append(at.now_ms, key, value)
        batches += builder.build()
        return partition.append(memoryview(batches), at.now, origin="coordinator").first_offset

    def _moment(self) -> Moment:
        return Moment(self._broker.now(), self._broker.now_ms())


def codec_of(config: ServerConfig, key: ConfigKey[int]) -> int:
    """The codec that a key asks for by its id; ConfigError when there is none of that id."""
    codec_id = config[key]
    if codec_id not in {codec.value for codec in Codec}:
        names = ", ".join(f"{codec.value} ({codec.name.lower()})" for codec in Codec)
        raise ConfigError(f"{key.name}={codec_id} is no codec: it is one of {names}")
    return codec_id


def _is_uncommitted(partition: Partition) -> bool:
    return partition.log.high_watermark < partition.log.log_end_offset


R = TypeVar("R", bound=Message)


def once_committed(response: R, partitions: Collection[Partition]) -> R | DelayedResponse:
    """A response that tells what these partitions hold now: it leaves when all of that is committed.

    When that is not to be the whole request is answered NOT_COORDINATOR.
    """
    if not partitions:
        return response
    delayed = DelayedResponse(send_before_close=True)
    left = len(partitions)

    def committed(error: ErrorCode) -> None:
        nonlocal left
        left -= 1
        if error:
            delayed.fail(ErrorCode.NOT_COORDINATOR)
        elif not left:
            delayed.resolve(response)

    for partition in partitions:
        partition.when_committed(partition.log.log_end_offset - 1, committed)
    return delayed


def _unload(shard: Shard[C], at: Moment) -> None:
    if shard.timer is not None:
        shard.timer.cancel()
    release_replies(shard.coordinator.unload(at))


def release_replies(result: Result) -> None:
    """Give each answer to the one who waits for it."""
    for ticket, message, _ in result.replies:
        answer: Callable[[Struct], None] = ticket  # type: ignore[assignment]  # every ticket here is such a function
        answer(message)
