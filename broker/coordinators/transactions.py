"""Runs the transaction coordinators: one pure `TransactionCoordinator` for each partition of `__transaction_state`.

How they are run is in `broker.coordinators.runtime`. Here markers are written: once the outcome of a transaction is
committed, not before, and again and again until every partition has one that is committed too (T4). On one node all
partitions are here; a partition that is offline is tried again, one that was deleted needs none.
"""

from __future__ import annotations

import logging
from functools import cached_property, partial
from typing import TYPE_CHECKING

from barnabas.broker.config.keys.transactions import (
    TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS,
    TRANSACTION_MAX_TIMEOUT_MS,
    TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS,
    TRANSACTION_TWO_PHASE_COMMIT_ENABLE,
    TRANSACTIONAL_ID_EXPIRATION_MS,
)
from barnabas.broker.coordinators.runtime import CoordinatorRuntime, Shard, release_replies
from barnabas.coord.cluster.image import FEATURES
from barnabas.coord.cluster.node_records import TRANSACTION_VERSION_FEATURE
from barnabas.coord.cluster.topic_names import TRANSACTION_STATE_TOPIC
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from barnabas.broker.coordinators.log import Take
    from barnabas.coord.cluster.image import ClusterDelta
    from barnabas.coord.machine import Moment, Result
    from barnabas.coord.transactions.config import TransactionConfig
    from barnabas.coord.transactions.coordinator import TransactionCoordinator
    from barnabas.coord.transactions.markers import Markers
    from barnabas.coord.transactions.transaction import TopicPartition

logger = logging.getLogger("kafka.coordinator.transaction.TransactionCoordinator")

MARKER_RETRY_S = 1.0
"""How long after a failure a marker is tried again."""

_IS_LATE = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
"""The partition has moved on: it holds nothing any more that this marker could end."""


class TransactionCoordinators(CoordinatorRuntime["TransactionCoordinator"]):
    """All transaction coordinators of this broker."""

    topic = TRANSACTION_STATE_TOPIC

    @cached_property
    def _config(self) -> TransactionConfig:
        """What all of them know of the configuration; the level of the feature follows the cluster's."""
        from barnabas.coord.transactions.config import TransactionConfig

        broker = self._broker
        return TransactionConfig(
            max_timeout_ms=broker.config[TRANSACTION_MAX_TIMEOUT_MS],
            id_expiration_ms=broker.config[TRANSACTIONAL_ID_EXPIRATION_MS],
            abort_interval_ms=broker.config[TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS],
            expiration_interval_ms=broker.config[TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS],
            is_two_phase_commit_enabled=broker.config[TRANSACTION_TWO_PHASE_COMMIT_ENABLE],
            transaction_version=broker.image.features.get(TRANSACTION_VERSION_FEATURE, 0),
        )

    def apply(self, delta: ClusterDelta) -> None:
        """Follow a change of the metadata."""
        if FEATURES in delta.other_changes:
            self._config.transaction_version = self._broker.image.features.get(TRANSACTION_VERSION_FEATURE, 0)
        if any(topic.name == TRANSACTION_STATE_TOPIC for topic in delta.deleted_topics.values()):
            self.stop()

    def _new(self, at: Moment) -> tuple[TransactionCoordinator, Take]:
        from barnabas.broker.coordinators.log import into_transactions
        from barnabas.coord.transactions.coordinator import TransactionCoordinator

        coordinator = TransactionCoordinator(self._config, self._broker.producer_ids.next)
        return coordinator, into_transactions(coordinator, at)

    def _contents(self, coordinator: TransactionCoordinator) -> str:
        return f"{len(coordinator.transactions)} transactional ids"

    def _replay(self, shard: Shard[TransactionCoordinator], result: Result, first_offset: int, at: Moment) -> None:  # noqa: ARG002 - offsets tell nothing here
        for key, value in result.records:
            shard.coordinator.replay(key, value, at)

    # ---- markers

    def _released(self, shard: Shard[TransactionCoordinator], result: Result) -> None:
        release_replies(result)
        for markers in getattr(result, "markers", ()):
            self._write_markers(shard, markers, sorted(markers.partitions))

    def _write_markers(
        self, shard: Shard[TransactionCoordinator], markers: Markers, partitions: Sequence[TopicPartition]
    ) -> None:
        """Write a transaction's end into partitions, and tell the coordinator of those that have it for good."""
        if not self._is_current(shard):
            return
        done = [place for place in partitions if self._write_one(shard, markers, place)]
        if done:
            self._report(shard, markers, done)

    def _write_one(self, shard: Shard[TransactionCoordinator], markers: Markers, place: TopicPartition) -> bool:
        """Write one marker; whether nothing is left to wait for."""
        from barnabas.broker.coordinators.markers import Marker, write_marker

        topic, index = place
        marker = Marker(
            markers.producer_id,
            markers.producer_epoch,
            markers.is_commit,
            shard.partition.leader_epoch,
            markers.transaction_version,
        )
        try:
            partition = self._broker.partitions.get(topic, index)
            offset = write_marker(partition, marker)
        except KafkaError as error:
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return True
            if error.code in _IS_LATE:
                logger.error("%s-%d refuses the marker of %r: %s", topic, index, markers.transactional_id, error)
                return True
            self._retry_later(shard, markers, place)
            return False
        if offset < partition.log.high_watermark:
            return True
        partition.when_committed(offset, partial(self._decided_one, shard, markers, place))
        return False

    def _decided_one(
        self, shard: Shard[TransactionCoordinator], markers: Markers, place: TopicPartition, error: ErrorCode
    ) -> None:
        """A marker is committed, or will never be."""
        if error:
            self._retry_later(shard, markers, place)
        elif self._is_current(shard):
            self._report(shard, markers, [place])

    def _retry_later(self, shard: Shard[TransactionCoordinator], markers: Markers, place: TopicPartition) -> None:
        broker = self._broker
        broker.timers.at(broker.now() + MARKER_RETRY_S, lambda: self._write_markers(shard, markers, [place]))

    def _report(self, shard: Shard[TransactionCoordinator], markers: Markers, done: Iterable[TopicPartition]) -> None:
        at = self._moment()
        self._finish(shard, shard.coordinator.markers_written(markers, done, at), at)

    def _is_current(self, shard: Shard[TransactionCoordinator]) -> bool:
        return self._shards.get(shard.partition.index) is shard
