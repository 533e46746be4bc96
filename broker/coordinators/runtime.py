"""Runs the coordinators of one internal topic: a pure state machine for each of its partitions (rules G2, T1).

An event is handled by the coordinator of its key. The records of the result are appended as one write and replayed
into the coordinator; once they are committed the replies are sent. One timer of the loop serves all deadlines of a
coordinator.

A coordinator is created from the log of its partition when it is first needed. At start, coordinators with a log are
created right away, because their timeouts run; large logs are loaded beside the serving loop (`loading`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from barnabas.broker.coordinators.append import append_records
from barnabas.broker.coordinators.loading import SYNCHRONOUS_LOAD_BYTES, BackgroundLoading, Loading
from barnabas.broker.coordinators.shard import Coordinator, Shard, release_replies
from barnabas.coord.machine import Moment, Result
from barnabas.coord.partitioning import coordinator_partition
from barnabas.wire.compression import Codec
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.coordinators.loading import Event
    from barnabas.broker.coordinators.replay import Replay
    from barnabas.broker.coordinators.services import BrokerServices
    from barnabas.broker.replicas.partition import Partition

logger = logging.getLogger("kafka.coordinator.Runtime")

C = TypeVar("C", bound=Coordinator)


class CoordinatorRuntime(Generic[C]):
    """All coordinators of one topic on this broker. Subclasses add what differs between kinds of coordinators."""

    topic: str
    """The internal topic that they write to."""
    codec: int = Codec.NONE
    """Compression of the batches that they write."""

    def __init__(self, services: BrokerServices) -> None:
        self._services = services
        self._loop = services.loop
        self._shards: dict[int, Shard[C]] = {}
        self._loading: BackgroundLoading[C] = BackgroundLoading(services.loop, self._activate)
        self._partition_count = 0  # fixed once known: it decides which coordinator a key has

    # ---- overridden by each kind of coordinator

    def _new(self, at: Moment) -> tuple[C, Replay]:
        """An empty coordinator, and the function that replays a record of its log into it."""
        raise NotImplementedError

    def _summary(self, coordinator: C) -> str:
        """What a coordinator holds, for the log: "12 groups"."""
        raise NotImplementedError

    def _replay(self, shard: Shard[C], result: Result, first_offset: int, at: Moment) -> None:
        """Replay the records of `result`, which were appended at `first_offset`."""
        raise NotImplementedError

    def _committed(self, shard: Shard[C], result: Result) -> None:  # noqa: ARG002 - subclasses use it
        """The records of `result`, and all before them, are committed."""
        release_replies(result)

    # ---- loading

    def load(self) -> None:
        """Load the coordinators that have a log, or start to; called once, when the partitions are open."""
        partitions = self._services.partitions.of_topic(self.topic)
        written = [one for one in partitions if one.log.log_end_offset > one.log.log_start_offset]
        if sum(one.log.size_bytes for one in written) <= SYNCHRONOUS_LOAD_BYTES:
            for partition in written:
                self._shard(partition.index)
        else:
            self._loading.start({partition.index: self._start_loading(partition) for partition in written})

    def _start_loading(self, partition: Partition) -> Loading[C]:
        from barnabas.broker.coordinators.replay import replay_log

        coordinator, replay = self._new(self._moment())
        return Loading(coordinator, partition, replay_log(partition, replay))

    def _activate(self, index: int, loading: Loading[C]) -> Shard[C]:
        """Start the timers of a loaded coordinator and let it handle events, the deferred ones first."""
        coordinator, at = loading.coordinator, self._moment()
        if loading.count:
            summary = self._summary(coordinator)
            logger.info("Loaded %s from %d records of %r", summary, loading.count, loading.partition)
        shard = self._shards[index] = Shard(coordinator, loading.partition)
        self._process(shard, coordinator.loaded(at), at)
        for event in loading.deferred:
            self._process(shard, event(coordinator, at), at)
        return shard

    def check_loaded(self) -> None:
        """Raise KafkaError COORDINATOR_LOAD_IN_PROGRESS while any coordinator is being loaded."""
        if self._loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    # ---- the coordinator of a key

    def ensure_topic(self, then: Callable[[KafkaError | None], None]) -> None:
        """Create the internal topic unless it exists; then call `then`, with COORDINATOR_NOT_AVAILABLE if that failed.

        If the topic exists, `then` is called before this returns.
        """
        if self._services.has_topic(self.topic):
            then(None)
            return

        def created(errors: Mapping[str, KafkaError]) -> None:
            error = errors.get(self.topic)
            if error is None:
                then(None)
                return
            logger.warning("Cannot create %s: %s", self.topic, error)
            then(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)))

        self._services.create_topics([self.topic], created)

    def check_available(self, key: str) -> None:
        """Check that a key can have a coordinator, for FindCoordinator, when the topic exists.

        KafkaError COORDINATOR_NOT_AVAILABLE if not.
        """
        topic = self._services.image().topics.get(self.topic)
        if topic is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self.topic} was deleted.")
        partition_count = self._partition_count or len(topic.partitions)
        index = coordinator_partition(key, partition_count)
        if (self.topic, index) in self._services.partitions.offline:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self.topic}-{index} is offline.")

    def coordinator_of(self, key: str) -> C:
        """The coordinator of a key, for reading.

        KafkaError NOT_COORDINATOR before the internal topic exists, COORDINATOR_LOAD_IN_PROGRESS while it is loaded.
        """
        return self._shard_of(key).coordinator

    def partition_of(self, key: str) -> int:
        """The index of the partition of a key. KafkaError NOT_COORDINATOR while the internal topic does not exist."""
        if not self._partition_count:
            topic = self._services.image().topics.get(self.topic)
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
            partition = self._services.partitions.get(self.topic, index)
        except KafkaError:
            raise KafkaError(ErrorCode.NOT_COORDINATOR) from None
        if index in self._loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        loading = self._start_loading(partition)
        loading.read()
        return self._activate(index, loading)

    def uncommitted(self, keys: Iterable[str]) -> set[Partition]:
        """Those partitions of the keys' coordinators that have uncommitted records."""
        found = set()
        for key in keys:
            try:
                shard = self._shard_of(key)
            except KafkaError:
                continue  # no coordinator, hence nothing to wait for
            if not shard.is_committed:
                found.add(shard.partition)
        return found

    def all_uncommitted(self) -> set[Partition]:
        """Those partitions of all coordinators that have uncommitted records."""
        return {shard.partition for shard in self._shards.values() if not shard.is_committed}

    # ---- events

    def handle(self, key: str, event: Event[C]) -> None:
        """Let the coordinator of a key handle an event. KafkaError as in `coordinator_of`."""
        shard = self._shard_of(key)
        at = self._moment()
        self._process(shard, event(shard.coordinator, at), at)

    def handle_all(self, event: Event[C]) -> None:
        """Let every coordinator handle an event; those that are being loaded do so afterwards."""
        self._loading.defer(event)
        at = self._moment()
        for shard in list(self._shards.values()):
            self._process(shard, event(shard.coordinator, at), at)

    def partition_failed(self, index: int) -> None:
        """Unload the coordinator of a partition that went offline: its keys have none until the next start."""
        self._loading.discard(index)
        shard = self._shards.pop(index, None)
        if shard is not None:
            shard.unload(self._moment())

    def stop(self) -> None:
        """Unload all coordinators and answer everybody who waits; nothing is written."""
        at = self._moment()
        shards, self._shards = self._shards, {}
        self._loading.cancel()
        self._partition_count = 0
        for shard in shards.values():
            shard.unload(at)

    # ---- results

    def _process(self, shard: Shard[C], result: Result, at: Moment) -> None:
        """Append, replay and answer a result; then do what is already due, and set the timer."""
        self._append_and_reply(shard, result, at)
        coordinator = shard.coordinator
        while (deadline := coordinator.next_deadline()) is not None and deadline <= at.now:
            self._append_and_reply(shard, coordinator.tick(at), at)
        timer = shard.timer
        if deadline is None or (timer is not None and timer.callback is not None and timer.deadline <= deadline):
            return  # a timer that fires too early finds nothing due and is set again
        if timer is not None:
            timer.cancel()
        shard.timer = self._loop.timers.at(deadline, lambda: self._tick(shard))

    def _tick(self, shard: Shard[C]) -> None:
        shard.timer = None
        at = self._moment()
        self._process(shard, shard.coordinator.tick(at), at)

    def _append_and_reply(self, shard: Shard[C], result: Result, at: Moment) -> None:
        if result.records:
            try:
                first_offset = append_records(shard.partition, result, at, self.codec)
            except KafkaError as error:
                logger.error("Cannot write to %r: %s", shard.partition, error)
                result = shard.coordinator.append_failed(result, error.code, at)
            else:
                self._replay(shard, result, first_offset, at)
        log = shard.partition.log
        if log.high_watermark == log.log_end_offset:
            self._committed(shard, result)
        else:  # also without records: the answer may depend on earlier records that are not committed yet
            shard.partition.when_committed(log.log_end_offset - 1, lambda error: self._decided(shard, result, error))

    def _decided(self, shard: Shard[C], result: Result, error: ErrorCode) -> None:
        """The records of `result`, and all before them, are committed, or with an error never will be."""
        if error:
            release_replies(shard.coordinator.commit_failed(result, error))
        else:
            self._committed(shard, result)

    def _moment(self) -> Moment:
        return Moment(self._loop.now(), self._loop.now_ms())
