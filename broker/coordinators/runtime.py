"""Runs the coordinators of one internal topic: a pure state machine for each of its partitions (rules G2, T1).

An event is handled by the coordinator of its key. The records of the result are appended as one write and replayed
into the coordinator; once they are committed the replies are sent. One timer of the loop serves all deadlines of a
coordinator.

Invariant: a coordinator's durable state is what its log says. If an exception leaves that in doubt, the coordinator is
unloaded and loaded again from its log.

A coordinator is where its partition is led: created from the log when this broker becomes the leader, beside the
serving loop (`loading`), and unloaded when it is not the leader any more: waiting requests are then answered
NOT_COORDINATOR (`role_changed`). It writes only in the leader epoch that it was loaded in. An empty log has its
coordinator when it is first needed. At start, small logs are read before the broker serves, because timeouts run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Generic, TypeVar

from barnabas.broker.coordinators.append import append_records
from barnabas.broker.coordinators.loading import SYNCHRONOUS_LOAD_BYTES, BackgroundLoading, Backoff, Loading
from barnabas.broker.coordinators.shard import Shard, release_replies
from barnabas.broker.event_loop.guarded import call_guarded, log_failure
from barnabas.broker.event_loop.waiting import start
from barnabas.coord.machine import Moment
from barnabas.coord.partitioning import coordinator_partition
from barnabas.wire.batches.compression import Codec
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.coordinators.loading import Event
    from barnabas.broker.coordinators.replay import Replay
    from barnabas.broker.coordinators.services import BrokerServices
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.coordinator import Coordinator
    from barnabas.coord.machine import Result

logger = logging.getLogger("kafka.coordinator.Runtime")

C = TypeVar("C", bound="Coordinator")

DUE_S = 0.001
"""How long deadlines are handled at a time, seconds."""
TICK_RETRY_S = 1.0
"""Delay after handling a deadline has failed, seconds."""
_RETRIABLE = frozenset({ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND})
"""Errors of a write while brokers are missing: clients repeat the request."""
CALLS_OF_A_STEP = 20
"""How many of the requests that wait for the internal topic are continued in a step."""


class CoordinatorRuntime(Generic[C]):
    """All coordinators of one topic on this broker. Subclasses add the differences between kinds of coordinators."""

    topic: str
    """The internal topic that they write to."""
    codec: int = Codec.NONE
    """Compression of the batches that they write."""
    write_timeout_s: float
    """How long an answer waits for the followers of its partition, seconds."""

    def __init__(self, services: BrokerServices) -> None:
        self._services = services
        self._loop = services.loop
        self._shards: dict[int, Shard[C]] = {}
        self._loading: BackgroundLoading[C] = BackgroundLoading(services.loop, self._activate, self._load_failed)
        self._backoff = Backoff()
        self._awaiting_topic: list[Callable[[KafkaError | None], None]] = []  # while it is being created
        self._partition_count = 0  # fixed once known: it decides which coordinator a key has

    # ---- overridden by each kind of coordinator

    def _new(self, at: Moment) -> tuple[C, Replay]:
        """An empty coordinator, and the function that replays a record of its log into it."""
        raise NotImplementedError

    def _summary(self, coordinator: C) -> str:
        """The contents of a coordinator, for the log: "12 groups"."""
        raise NotImplementedError

    def _replay(self, shard: Shard[C], result: Result, first_offset: int, at: Moment) -> None:
        """Replay the records of `result`, which were appended at `first_offset`."""
        raise NotImplementedError

    def _committed(self, shard: Shard[C], result: Result) -> None:
        """The records of `result`, and all before them, are committed, and its replies are sent."""

    # ---- loading

    def load(self) -> None:
        """Load the coordinators that have a log, or start to; called once, when the partitions are open.

        From now on they are loaded and unloaded as the leadership of their partitions changes.
        """
        self._services.partitions.on_role_change.append(self.role_changed)
        self._services.partitions.on_removed.append(self._removed)
        partitions = self._services.partitions.of_topic(self.topic)
        written = [partition for partition in partitions if partition.is_leader and _has_records(partition)]
        is_small = sum(partition.log.size_bytes for partition in written) <= SYNCHRONOUS_LOAD_BYTES
        for partition in written:
            if is_small:
                self._load_now(partition)
            else:
                self._loading.start(partition.index, self._loading_of(partition))

    def role_changed(self, partition: Partition) -> None:
        """Load the coordinator of a partition that this broker leads now; unload it when the leadership has ended.

        If the only change since is one more leader epoch, no other broker has led meanwhile, and the coordinator stays.
        """
        if partition.topic != self.topic:
            return
        index = partition.index
        current = self._shards.get(index) or self._loading.get(index)
        if (
            current is not None
            and partition.is_leader
            and current.partition is partition
            and partition.leader_epoch - current.leader_epoch <= 1
        ):
            current.leader_epoch = partition.leader_epoch
            return
        deferred = self._loading.discard(index)
        shard = self._shards.pop(index, None)
        if shard is not None:
            logger.info("This broker is not the leader of %r in epoch %d any more", partition, shard.leader_epoch)
            self._unload(shard)
        if partition.is_leader and _has_records(partition):
            self._loading.start(index, self._loading_of(partition, deferred))

    def _removed(self, partition: Partition) -> None:
        """Unload the coordinator of a partition that this broker holds no longer, at the end of the turn."""
        if partition.topic == self.topic:
            self._loop.call_after_turn(partial(self._unload_closed, partition))

    def _unload_closed(self, partition: Partition) -> None:
        current = self._shards.get(partition.index) or self._loading.get(partition.index)
        if current is not None and current.partition is partition:
            self.partition_failed(partition.index)

    def _loading_of(self, partition: Partition, deferred: Iterable[Event[C]] = ()) -> Loading[C]:
        def begin() -> tuple[C, Iterator[int]]:
            from barnabas.broker.coordinators.replay import replay_log

            coordinator, replay = self._new(self._moment())
            return coordinator, replay_log(partition, replay)

        return Loading(partition, begin, deferred)

    def _load_now(self, partition: Partition) -> Shard[C] | None:
        """Load a coordinator before this returns; None if that has failed."""
        loading = self._loading_of(partition)
        try:
            for _ in loading.steps():
                pass
        except Exception as error:
            self._load_failed(loading, error)
            return None
        return self._activate(partition.index, loading)

    def _activate(self, index: int, loading: Loading[C]) -> Shard[C] | None:
        """Start the timers of a loaded coordinator and let it handle events, the deferred ones first.

        None if it has failed already, and is loaded again.
        """
        coordinator, at = loading.coordinator, self._moment()
        partition = loading.partition
        if partition.is_closed or not partition.is_leader or partition.leader_epoch != loading.leader_epoch:
            logger.info("Discarded the coordinator loaded from %r: the leader of the partition has changed", partition)
            return None
        try:
            if loading.count:
                summary = self._summary(coordinator)
                logger.info("Loaded %s from %d records of %r", summary, loading.count, loading.partition)
            result = coordinator.loaded(at)
        except Exception as error:
            self._load_failed(loading, error)
            return None
        shard = self._shards[index] = Shard(coordinator, partition, loading.leader_epoch)
        self._process(shard, result, at)
        for event in loading.deferred:
            self._handle_for_all(shard, event, at)
        if self.is_current(shard):
            return shard
        self._loading.defer_for(index, loading.deferred)
        return None

    def _load_failed(self, loading: Loading[C], error: Exception) -> None:
        """Log it, and load the coordinator again after a while."""
        partition = loading.partition
        log_failure(f"Loading a coordinator from {partition!r}", error)
        partition.report_unreadable(error.__cause__ if isinstance(error, KafkaError) else error)
        self._load_again(loading.partition, loading.deferred)

    def _load_again(self, partition: Partition, deferred: Iterable[Event[C]] = ()) -> None:
        if partition.is_closed or not partition.is_leader:
            return
        delay_s = self._backoff.next_delay_s(partition.index, self._loop.now())
        logger.error("The coordinator of %r is loaded from its log again in %g s", partition, delay_s)
        self._loading.start(partition.index, self._loading_of(partition, deferred), delay_s)

    def fail(self, shard: Shard[C], what: str, error: Exception) -> None:
        """Unload a coordinator that may differ from its log, and load it again; its waiting requests are answered.

        Until then its clients get COORDINATOR_LOAD_IN_PROGRESS.
        """
        log_failure(f"{what} in the coordinator of {shard.partition!r}", error)
        if self.is_current(shard):
            del self._shards[shard.partition.index]
            self._unload(shard)
            self._load_again(shard.partition)

    def _unload(self, shard: Shard[C]) -> None:
        call_guarded(f"Unloading the coordinator of {shard.partition!r}", shard.unload, self._moment(), self._loop)

    def reload(self, key: str, after_s: float) -> None:
        """Unload the coordinator of a key and load it again, `after_s` seconds from now.

        Until then its clients get COORDINATOR_LOAD_IN_PROGRESS. KafkaError as in `coordinator_of`.
        """
        shard = self._shard_of(key)
        partition = shard.partition
        del self._shards[partition.index]
        self._unload(shard)
        self._loading.start(partition.index, self._loading_of(partition), after_s)

    def is_current(self, shard: Shard[C]) -> bool:
        """Whether the coordinator is loaded: not unloaded meanwhile."""
        return self._shards.get(shard.partition.index) is shard

    def check_loaded(self) -> None:
        """Raise KafkaError COORDINATOR_LOAD_IN_PROGRESS while any coordinator is being loaded."""
        if self._loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    # ---- the coordinator of a key

    @property
    def has_topic(self) -> bool:
        """Whether the internal topic exists, with its partitions open."""
        return self._services.has_topic(self.topic)

    def ensure_topic(self, then: Callable[[KafkaError | None], None]) -> None:
        """Create the internal topic unless it exists; then call `then`, with COORDINATOR_NOT_AVAILABLE if that failed.

        If the topic exists, `then` is called before this returns. Thousands of calls may wait for one creation.
        """
        if self._services.has_topic(self.topic):
            then(None)
            return
        self._awaiting_topic.append(then)
        if len(self._awaiting_topic) == 1:
            self._services.create_topics([self.topic], self._topic_created)

    def _topic_created(self, errors: Mapping[str, KafkaError]) -> None:
        """Continue all requests that wait for the internal topic."""
        error = errors.get(self.topic)
        if error is not None:
            logger.warning("Cannot create %s: %s", self.topic, error)
            error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error))
        awaiting, self._awaiting_topic = self._awaiting_topic, []
        start(self._call_each(awaiting, error), self._loop.slices, _called)

    def _call_each(
        self, awaiting: Iterable[Callable[[KafkaError | None], None]], error: KafkaError | None
    ) -> Generator[None, None, None]:
        for number, then in enumerate(awaiting, 1):
            call_guarded(f"A request that waited for {self.topic}", then, error)
            if number % CALLS_OF_A_STEP == 0:
                yield

    def find(self, key: str) -> int:
        """The broker that has a key's coordinator, for FindCoordinator, when the topic exists.

        KafkaError COORDINATOR_NOT_AVAILABLE if none has it.
        """
        services = self._services
        topic = services.image().topics.get(self.topic)
        if topic is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self.topic} was deleted.")
        index = coordinator_partition(key, self._partition_count or len(topic.partitions))
        leader = topic.partitions[index].leader
        if leader < 0:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self.topic}-{index} has no leader.")
        offline = services.partitions.offline
        if offline and (self.topic, index) in offline and leader == services.config.node_id:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self.topic}-{index} is offline.")
        return leader

    def leader_of(self, key: str) -> int:
        """The broker that leads the partition of a key: -1 while there is none, also while the topic does not exist."""
        topic = self._services.image().topics.get(self.topic)
        if topic is None:
            return -1
        return topic.partitions[self.partition_of(key)].leader

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
        count = self._partition_count
        index = coordinator_partition(key, count) if count else self.partition_of(key)
        return self._shards.get(index) or self._shard(index)

    def _shard(self, index: int) -> Shard[C]:
        try:
            partition = self._services.partitions.get_leader(self.topic, index)
        except KafkaError:
            raise KafkaError(ErrorCode.NOT_COORDINATOR) from None
        if index in self._loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if _has_records(partition) and partition.log.size_bytes > SYNCHRONOUS_LOAD_BYTES:
            self._loading.start(index, self._loading_of(partition))
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        shard = self._load_now(partition)
        if shard is None:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    def uncommitted(self, keys: Iterable[str]) -> set[Partition]:
        """The partitions of the keys' coordinators that have uncommitted records."""
        partitions = set()
        for key in keys:
            try:
                shard = self._shard_of(key)
            except KafkaError:
                continue  # no coordinator, hence nothing to wait for
            if not shard.is_committed:
                partitions.add(shard.partition)
        return partitions

    def all_uncommitted(self) -> set[Partition]:
        """The partitions of all coordinators that have uncommitted records."""
        return {shard.partition for shard in self._shards.values() if not shard.is_committed}

    # ---- events

    def handle(self, key: str, event: Event[C]) -> None:
        """Let the coordinator of a key handle an event. KafkaError as in `coordinator_of`."""
        shard = self._shard_of(key)
        if shard.gathered is not None:
            self._loop.write_gathered()
        at = self._moment()
        self._process(shard, event(shard.coordinator, at), at)

    def handle_each(
        self, event: Event[C], in_steps: Callable[[C], Iterator[Result]] | None = None
    ) -> Generator[None, None, None]:
        """Let every coordinator handle an event, in steps; coordinators that are being loaded do so afterwards.

        It yields after each coordinator. For an event that is long for one coordinator, `in_steps` returns the results
        of its parts; it is done for coordinators that are loaded.
        """
        self._loading.defer(event)
        for shard in list(self._shards.values()):
            if in_steps is None:
                self._handle_for_all(shard, event, self._moment())
                yield
            else:
                yield from self._handle_parts(shard, in_steps(shard.coordinator))

    def _handle_parts(self, shard: Shard[C], parts: Iterator[Result]) -> Generator[None, None, None]:
        while self.is_current(shard):
            try:
                result = next(parts, None)
            except Exception as error:
                log_failure(f"An event of all coordinators in that of {shard.partition!r}", error)
                return
            if result is None:
                return
            self._process(shard, result, self._moment())
            yield

    def _handle_for_all(self, shard: Shard[C], event: Event[C], at: Moment) -> None:
        """Let one coordinator handle an event of all; its failure is logged, so that the others handle it too."""
        if not self.is_current(shard):
            return
        try:
            result = event(shard.coordinator, at)
        except Exception as error:
            log_failure(f"An event of all coordinators in that of {shard.partition!r}", error)
        else:
            self._process(shard, result, at)

    def partition_failed(self, index: int) -> None:
        """Unload the coordinator of a partition that went offline: its keys have none until the next start."""
        self._loading.discard(index)
        shard = self._shards.pop(index, None)
        if shard is not None:
            self._unload(shard)

    def stop(self) -> None:
        """Unload all coordinators and answer all waiting requests; nothing is written."""
        shards, self._shards = self._shards, {}
        self._loading.cancel()
        self._partition_count = 0
        for shard in shards.values():
            self._unload(shard)

    # ---- results

    def _process(self, shard: Shard[C], result: Result, at: Moment) -> None:
        """Append, replay and answer a result; then set the timer again if there is an earlier deadline."""
        self._append_and_reply(shard, result, at)
        self._follow_deadlines(shard, at)

    def _follow_deadlines(self, shard: Shard[C], at: Moment) -> None:
        timer = shard.timer
        if timer is None or timer.callback is None or shard.coordinator.timers.has_earlier:
            self._continue(shard, at)

    def _continue(self, shard: Shard[C], at: Moment) -> None:
        """Handle the deadlines that have passed, and set the timer of the next one, also after a failure."""
        try:
            deadline = self._do_what_is_due(shard, at)
        except Exception as error:
            what = f"What was due in the coordinator of {shard.partition!r}, and is tried again in {TICK_RETRY_S:g} s,"
            log_failure(what, error)
            deadline = at.now + TICK_RETRY_S
        if not self.is_current(shard):
            return
        timer = shard.timer
        if deadline is None or (timer is not None and timer.callback is not None and timer.deadline <= deadline):
            return  # a timer that fires too early finds nothing due and is set again
        if timer is not None:
            timer.cancel()
        shard.timer = self._loop.state_timers.at(deadline, lambda: self._tick(shard))

    def _do_what_is_due(self, shard: Shard[C], at: Moment) -> float | None:
        """Handle the deadlines up to `at`, for `DUE_S`; returns the next one, which is due already if time ran out.

        Thousands of members that vanish together are removed in pieces, between which others are served.
        """
        coordinator, end = shard.coordinator, inf
        while (deadline := coordinator.next_deadline()) is not None and deadline <= at.now and self.is_current(shard):
            if self._loop.now() >= end:
                break
            if end == inf:
                end = self._loop.now() + DUE_S
            self._append_and_reply(shard, coordinator.tick(at), at)
        return deadline

    def _tick(self, shard: Shard[C]) -> None:
        shard.timer = None
        if self.is_current(shard):
            self._continue(shard, self._moment())

    def _append_and_reply(self, shard: Shard[C], result: Result, at: Moment) -> None:
        if shard.gathered is not None:
            self._loop.write_gathered()
        if result.records:
            try:
                result = self._append(shard, result, at)
            except Exception as error:
                self.fail(shard, "Appending or replaying records", error)
                release_replies(result.failed_replies(ErrorCode.NOT_COORDINATOR), self._loop)
                return
        log = shard.partition.log
        if log.high_watermark == log.log_end_offset:
            self._finish(shard, result)
        elif shard.partition.has_peers and result.replies:
            self._await_followers(shard, result)
        else:  # also without records: the answer may depend on earlier records that are not committed yet
            shard.partition.when_committed(log.log_end_offset - 1, lambda error: self._decided(shard, result, error))

    def _append(self, shard: Shard[C], result: Result, at: Moment) -> Result:
        """Append and replay the records of a result; returns the result that is to be answered.

        Any exception means that the coordinator may differ from its log.
        """
        try:
            first_offset = append_records(shard.partition, shard.leader_epoch, result, at, self.codec)
        except KafkaError as error:
            log_unwritten(shard.partition, error)
            return shard.coordinator.append_failed(result, error.code, at)
        self._replay(shard, result, first_offset, at)
        return result

    def _await_followers(self, shard: Shard[C], result: Result) -> None:
        """Answer a result when the followers have its records, or with an error after `write_timeout_s`.

        Its records stay, and what follows their commit is done when they are committed after all.
        """
        is_late = False

        def decided(error: ErrorCode) -> None:
            timer.cancel()
            if not is_late:
                self._decided(shard, result, error)
            elif not error and self.is_current(shard):
                self._continue_committed(shard, result)

        def out_of_time() -> None:
            nonlocal is_late
            is_late = True
            logger.warning("Records of %r were not replicated in %g s", shard.partition, self.write_timeout_s)
            release_replies(shard.coordinator.commit_failed(result, ErrorCode.REQUEST_TIMED_OUT), self._loop)

        timer = self._loop.timers.at(self._loop.now() + self.write_timeout_s, out_of_time)
        shard.partition.when_committed(shard.partition.log.log_end_offset - 1, decided)

    def _decided(self, shard: Shard[C], result: Result, error: ErrorCode) -> None:
        """The records of `result`, and all before them, are committed, or with an error never will be."""
        if error:
            release_replies(shard.coordinator.commit_failed(result, error), self._loop)
        elif self.is_current(shard):
            self._finish(shard, result)
        else:  # the next coordinator does what follows
            release_replies(result, self._loop)

    def _finish(self, shard: Shard[C], result: Result) -> None:
        release_replies(result, self._loop)
        self._continue_committed(shard, result)

    def _continue_committed(self, shard: Shard[C], result: Result) -> None:
        try:
            self._committed(shard, result)
        except Exception as error:
            log_failure(f"A callback after a commit in the coordinator of {shard.partition!r}", error)

    def _moment(self) -> Moment:
        return Moment(self._loop.state_now(), self._loop.now_ms())


def log_unwritten(partition: Partition, error: KafkaError) -> None:
    """Log that records could not be appended to a coordinator's partition."""
    level = logging.WARNING if error.code in _RETRIABLE else logging.ERROR
    logger.log(level, "Cannot write to %r: %s", partition, error)


def _has_records(partition: Partition) -> bool:
    return partition.log.log_end_offset > partition.log.log_start_offset


def _called(error: Exception | None) -> None:
    """Log a bug; each callback is guarded."""
    if error is not None:
        log_failure("Requests that waited for an internal topic", error)
