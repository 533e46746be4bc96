"""Runs the transaction coordinators: one `TransactionCoordinator` for each partition of `__transaction_state`.

Markers are written when the outcome of a transaction is committed, and retried until the marker of every partition is
committed too (T4): here, or by the broker that leads the partition. A deleted partition needs no marker. The markers
of the transactions that a turn ends are written together (`gathered_markers`).
"""

from __future__ import annotations

import logging
from functools import cached_property, partial
from typing import TYPE_CHECKING

from barnabas.broker.config.keys.general import REQUEST_TIMEOUT_MS
from barnabas.broker.config.keys.own import TRANSACTIONAL_IDS_MAX
from barnabas.broker.config.keys.transactions import (
    TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS,
    TRANSACTION_MAX_TIMEOUT_MS,
    TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS,
    TRANSACTION_TWO_PHASE_COMMIT_ENABLE,
    TRANSACTIONAL_ID_EXPIRATION_MS,
)
from barnabas.broker.coordinators.runtime import CoordinatorRuntime
from barnabas.broker.coordinators.shard import Shard
from barnabas.broker.event_loop.guarded import log_failure
from barnabas.broker.event_loop.limited_log import LimitedLog
from barnabas.coord.cluster.delta import FEATURES
from barnabas.coord.cluster.node_records import TRANSACTION_VERSION_FEATURE
from barnabas.coord.topic_names import TRANSACTION_STATE_TOPIC
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from barnabas.broker.coordinators.gathered_markers import GatheredMarkers
    from barnabas.broker.coordinators.markers import Marker, MarkerWriter, OnOffsetsEnded
    from barnabas.broker.coordinators.remote_markers import RemoteMarkers
    from barnabas.broker.coordinators.replay import Replay
    from barnabas.broker.coordinators.services import BrokerServices
    from barnabas.broker.coordinators.transaction_requests import TransactionRequests
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.cluster.delta import ClusterDelta
    from barnabas.coord.machine import Moment, Result
    from barnabas.coord.transactions.config import TransactionConfig
    from barnabas.coord.transactions.coordinator import TransactionCoordinator
    from barnabas.coord.transactions.markers import Markers
    from barnabas.coord.transactions.transaction import TopicPartition

logger = logging.getLogger("kafka.coordinator.transaction.TransactionCoordinator")

MARKER_RETRY_S = 0.1
MAX_MARKER_RETRY_S = 1.0
"""Time until a marker is tried again: it doubles with each attempt."""

LATE_MARKER_ERRORS = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
"""The partition has no open transaction that this marker could end."""


class TransactionCoordinators(CoordinatorRuntime["TransactionCoordinator"]):
    """All transaction coordinators of this broker."""

    topic = TRANSACTION_STATE_TOPIC

    def __init__(
        self, services: BrokerServices, new_producer_id: Callable[[], int], on_offsets_ended: OnOffsetsEnded
    ) -> None:
        """`on_offsets_ended` is called for markers in `__consumer_offsets`."""
        super().__init__(services)
        self.write_timeout_s = services.config[REQUEST_TIMEOUT_MS] / 1000
        self._new_producer_id = new_producer_id
        self._on_offsets_ended = on_offsets_ended
        self._refusals = LimitedLog(services.loop, logger, logging.WARNING, "transactional ids that were refused")

    @cached_property
    def markers(self) -> MarkerWriter:
        """Writes the markers; imported with the first one."""
        from barnabas.broker.coordinators.markers import MarkerWriter

        return MarkerWriter(self._loop, self._on_offsets_ended)

    @cached_property
    def remote_markers(self) -> RemoteMarkers:
        """Sends markers to other brokers; imported with the first one."""
        from barnabas.broker.coordinators.remote_markers import RemoteMarkers

        services = self._services
        timeout_s = services.config[REQUEST_TIMEOUT_MS] / 1000
        return RemoteMarkers(self._loop, lambda node_id: services.client(node_id, "transaction-markers"), timeout_s)

    @cached_property
    def requests(self) -> TransactionRequests:
        """Asks the coordinators of other brokers; imported with the first request."""
        from barnabas.broker.coordinators.transaction_requests import TransactionRequests

        services = self._services
        timeout_s = services.config[REQUEST_TIMEOUT_MS] / 1000
        return TransactionRequests(self._loop, lambda node_id: services.client(node_id, "transactions"), timeout_s)

    @cached_property
    def _config(self) -> TransactionConfig:
        """The settings of all coordinators; `apply` keeps the feature level current."""
        from barnabas.coord.transactions.config import TransactionConfig

        config = self._services.config
        return TransactionConfig(
            max_timeout_ms=config[TRANSACTION_MAX_TIMEOUT_MS],
            id_expiration_ms=config[TRANSACTIONAL_ID_EXPIRATION_MS],
            abort_interval_ms=config[TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS],
            expiration_interval_ms=config[TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS],
            is_two_phase_commit_enabled=config[TRANSACTION_TWO_PHASE_COMMIT_ENABLE],
            transaction_version=self._transaction_version(),
        )

    def _transaction_version(self) -> int:
        return self._services.image().features.get(TRANSACTION_VERSION_FEATURE, 0)

    def apply(self, delta: ClusterDelta) -> None:
        """Apply a metadata change."""
        if FEATURES in delta.other_changes:
            self._config.transaction_version = self._transaction_version()
        if any(topic.name == TRANSACTION_STATE_TOPIC for topic in delta.deleted_topics.values()):
            self.stop()

    def _new(self, at: Moment) -> tuple[TransactionCoordinator, Replay]:
        from barnabas.broker.coordinators.replay import transaction_replay
        from barnabas.coord.transactions.coordinator import TransactionCoordinator

        coordinator = TransactionCoordinator(self._config, self._new_producer_id)
        return coordinator, transaction_replay(coordinator, at)

    def _summary(self, coordinator: TransactionCoordinator) -> str:
        return f"{len(coordinator.transactions)} transactional ids"

    def _replay(self, shard: Shard[TransactionCoordinator], result: Result, first_offset: int, at: Moment) -> None:  # noqa: ARG002 - offsets are not used
        for key, value in result.records:
            shard.coordinator.replay(key, value, at)

    def check_room(self, transactional_id: str) -> None:
        """KafkaError POLICY_VIOLATION if this id is new and there are `barnabas.transactional.ids.max` already.

        KafkaError as in `coordinator_of`.
        """
        if transactional_id in self.coordinator_of(transactional_id).transactions:
            return
        most = self._services.config[TRANSACTIONAL_IDS_MAX]
        if sum([len(coordinator.transactions) for coordinator in self]) >= most:
            text = f"There are {most} transactional ids already, no more are allowed ({TRANSACTIONAL_IDS_MAX.name})."
            self._refusals.line("", "The transactional id %.100r is refused: %s", transactional_id, text)
            raise KafkaError(ErrorCode.POLICY_VIOLATION, text)

    # ---- markers

    def _committed(self, shard: Shard[TransactionCoordinator], result: Result) -> None:
        for markers in getattr(result, "markers", ()):
            if not self._loop.is_gathering:
                self._write_markers(shard, markers, sorted(markers.partitions))
            else:
                self._gathered_markers.add(shard, markers)

    @cached_property
    def _gathered_markers(self) -> GatheredMarkers:
        from barnabas.broker.coordinators.gathered_markers import GatheredMarkers

        return GatheredMarkers(self, self._loop)

    def _write_markers(
        self,
        shard: Shard[TransactionCoordinator],
        markers: Markers,
        partitions: Sequence[TopicPartition],
        attempt: int = 0,
    ) -> None:
        """Have the leaders of `partitions` write markers, and report the partitions where markers are committed."""
        done = self.write_markers(shard, markers, partitions, partial(self._write_one, shard, markers), attempt)
        if done:
            self.report(shard, [(markers, done)])

    def write_markers(
        self,
        shard: Shard[TransactionCoordinator],
        markers: Markers,
        partitions: Sequence[TopicPartition],
        write_here: Callable[[TopicPartition, int], bool],
        attempt: int = 0,
    ) -> list[TopicPartition]:
        """Have the leaders of `partitions` write markers; the partitions where they are committed, or not needed.

        `write_here(target, attempt)` writes a marker of this broker, and returns whether it is committed. The others
        are reported, or tried again, later.
        """
        if not self.is_current(shard):
            return []
        image, node_id = self._services.image(), self._services.config.node_id
        done: list[TopicPartition] = []
        again: list[TopicPartition] = []
        remote: dict[int, list[TopicPartition]] = {}
        for target in partitions:
            partition = image.partition(*target)
            if partition is None:
                done.append(target)  # deleted: needs no marker
            elif partition.leader == node_id:
                if write_here(target, attempt):
                    done.append(target)
            elif partition.leader < 0:
                again.append(target)
            else:
                remote.setdefault(partition.leader, []).append(target)
        for leader, targets in remote.items():
            decided = partial(self._remote_decided, shard, markers, attempt)
            self.remote_markers.write(leader, markers, shard.leader_epoch, targets, decided)
        self._retry_later(shard, markers, again, attempt)
        return done

    def _remote_decided(
        self,
        shard: Shard[TransactionCoordinator],
        markers: Markers,
        attempt: int,
        done: Sequence[TopicPartition],
        again: Sequence[TopicPartition],
    ) -> None:
        """Another broker has written markers, or could not."""
        self._retry_later(shard, markers, again, attempt)
        if done and self.is_current(shard):
            self.report(shard, [(markers, done)])

    def marker_of(self, shard: Shard[TransactionCoordinator], markers: Markers) -> Marker:
        """The marker of a transaction, the same in each of its partitions."""
        from barnabas.broker.coordinators.markers import Marker

        return Marker(
            markers.producer_id,
            markers.producer_epoch,
            markers.is_commit,
            shard.leader_epoch,
            markers.transaction_version,
        )

    def leader(self, target: TopicPartition) -> Partition:
        """A partition that this broker leads. KafkaError."""
        return self._services.partitions.get_leader(*target)

    def _write_one(
        self, shard: Shard[TransactionCoordinator], markers: Markers, target: TopicPartition, attempt: int
    ) -> bool:
        """Write one marker here; returns whether it is done, because it is committed or not needed."""
        try:
            partition = self.leader(target)
            offset = self.markers.write(partition, self.marker_of(shard, markers))
        except Exception as error:
            return self.marker_failed(shard, markers, target, attempt, error)
        return self.is_marked(shard, markers, target, attempt, partition, offset)

    @staticmethod
    def is_late(error: Exception) -> bool:
        """Whether the partition has refused a marker because it has no open transaction that this one could end."""
        return isinstance(error, KafkaError) and error.code in LATE_MARKER_ERRORS

    def marker_failed(
        self,
        shard: Shard[TransactionCoordinator],
        markers: Markers,
        target: TopicPartition,
        attempt: int,
        error: Exception,
    ) -> bool:
        """A marker could not be written here, and is tried again; True if it is not needed any more."""
        if self.is_late(error):
            text = "%s-%d rejected the marker of transactional id %r: %s"
            logger.error(text, *target, markers.transactional_id, error)
            return True
        if not isinstance(error, KafkaError):
            topic, index = target
            what = f"Writing the marker of transactional id {markers.transactional_id!r} to {topic}-{index}"
            log_failure(what, error)
        self._retry_later(shard, markers, [target], attempt)
        return False

    def is_marked(
        self,
        shard: Shard[TransactionCoordinator],
        markers: Markers,
        target: TopicPartition,
        attempt: int,
        partition: Partition,
        offset: int,
    ) -> bool:
        """Whether a marker, written at or below `offset`, is committed; otherwise it is reported when it is."""
        if offset < partition.log.high_watermark:
            return True
        partition.when_committed(offset, partial(self._marker_decided, shard, markers, target, attempt))
        return False

    def _marker_decided(
        self,
        shard: Shard[TransactionCoordinator],
        markers: Markers,
        target: TopicPartition,
        attempt: int,
        error: ErrorCode,
    ) -> None:
        """A marker is committed, or with an error never will be."""
        if error:
            self._retry_later(shard, markers, [target], attempt)
        elif self.is_current(shard):
            self.report(shard, [(markers, [target])])

    def _retry_later(
        self,
        shard: Shard[TransactionCoordinator],
        markers: Markers,
        targets: Sequence[TopicPartition],
        attempt: int,
    ) -> None:
        """Try markers again; the leaders of their partitions are looked up then."""
        if targets:
            retry_at = self._loop.now() + min(MAX_MARKER_RETRY_S, MARKER_RETRY_S * 2 ** min(attempt, 10))
            self._loop.timers.at(retry_at, lambda: self._write_markers(shard, markers, targets, attempt + 1))

    def report(
        self, shard: Shard[TransactionCoordinator], marked: Iterable[tuple[Markers, Iterable[TopicPartition]]]
    ) -> None:
        """Report the partitions where markers of different transactions are committed: one write ends them all."""
        at = self._moment()
        result: Result | None = None
        for markers, done in marked:
            try:
                of_transaction = shard.coordinator.markers_written(markers, done, at)
            except Exception as error:
                self.fail(shard, f"The report of the markers of transactional id {markers.transactional_id!r}", error)
                return
            if result is None:
                result = of_transaction
            else:
                result.merge(of_transaction)
        if result is not None:
            self._process(shard, result, at)
