"""Writes transaction markers into the partitions of this broker (WriteTxnMarkers; T5, T8; KIP-98, KIP-1228).

A marker is a control batch that ends the producer's transaction in a partition and moves the last stable offset. In
`__consumer_offsets` it also commits or drops the offsets of the transaction. The markers of several producers in a
partition are one write (`gathered_markers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas.coord.topic_names import GROUP_METADATA_TOPIC
from barnabas.coord.transactions.transaction import EPOCH_BUMP_VERSION
from barnabas.storage.producers.producer_entry import NO_OFFSET
from barnabas.storage.producers.producer_state import EndMarker
from barnabas.wire.batches.records import end_txn_marker
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.replicas.partition import Partition


class Marker(NamedTuple):
    """The end of one producer's transaction."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int


class OnOffsetsEnded(Protocol):
    """Called when a marker was written into a partition of `__consumer_offsets`."""

    def __call__(self, index: int, producer_id: int, /, *, commit: bool) -> None: ...


class MarkerWriter:
    """Writes markers, and reports those in `__consumer_offsets` to the group coordinators."""

    def __init__(self, loop: Loop, on_offsets_ended: OnOffsetsEnded) -> None:
        self._loop = loop
        self._on_offsets_ended = on_offsets_ended

    def write(self, partition: Partition, marker: Marker) -> int:
        """End the transaction in one partition; returns the offset that must be committed before it is acknowledged.

        KafkaError as of `is_repeated` and `write_all`.
        """
        if self.is_repeated(partition, marker):
            return partition.log.log_end_offset - 1
        return self.write_all(partition, [marker])

    def is_repeated(self, partition: Partition, marker: Marker) -> bool:
        """Whether a marker is in the partition already, so that it is not written again.

        From KIP-890 on a marker has the producer's next epoch. A marker with the current epoch is either a repetition,
        when no transaction is open; or it is late and must not end the transaction that came after: KafkaError
        INVALID_PRODUCER_EPOCH (T8, T9).
        """
        if len(partition.replicas) > 1:
            partition.check_in_sync_replicas()
        entry = partition.log.producers.producers.get(marker.producer_id)
        if (
            marker.transaction_version < EPOCH_BUMP_VERSION
            or entry is None
            or entry.producer_epoch != marker.producer_epoch
        ):
            return False
        if entry.current_txn_first_offset != NO_OFFSET:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"The marker with epoch {marker.producer_epoch} of producer {marker.producer_id} belongs to an "
                "earlier transaction",
            )
        return True

    def write_all(self, partition: Partition, markers: Sequence[Marker]) -> int:
        """Append markers of different producers with one write; the offset of the last one.

        KafkaError INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, and what an append raises: none is written.
        """
        now_ms = self._loop.now_ms()
        batches = [
            (
                end_txn_marker(
                    commit=marker.is_commit,
                    producer_id=marker.producer_id,
                    producer_epoch=marker.producer_epoch,
                    coordinator_epoch=marker.coordinator_epoch,
                    timestamp_ms=now_ms,
                ),
                EndMarker(marker.is_commit, marker.coordinator_epoch),
            )
            for marker in markers
        ]
        info = partition.append_markers(batches, self._loop.now())
        if partition.topic == GROUP_METADATA_TOPIC:
            for marker in markers:
                self._on_offsets_ended(partition.index, marker.producer_id, commit=marker.is_commit)
        return info.last_offset
