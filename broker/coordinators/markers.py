"""Writes transaction markers into the partitions of this broker (WriteTxnMarkers; T5, T8; KIP-98, KIP-1228).

A marker is a control batch that ends the producer's transaction in a partition and moves the last stable offset. In
`__consumer_offsets` it also commits or drops the offsets of the transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas.coord.topic_names import GROUP_METADATA_TOPIC
from barnabas.coord.transactions.transaction import EPOCH_BUMP_VERSION
from barnabas.storage.producers.producer_entry import NO_OFFSET
from barnabas.wire.batches.records import end_txn_marker
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
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

        From KIP-890 on a marker has the producer's next epoch. A marker with the current epoch is either a repetition,
        when no transaction is open, and is not written again; or it is late and must not end the transaction that came
        after: KafkaError INVALID_PRODUCER_EPOCH (T8, T9). Also raises TRANSACTION_COORDINATOR_FENCED, and what an
        append raises.
        """
        if len(partition.replicas) > 1:
            partition.check_in_sync_replicas()
        log = partition.log
        entry = log.producers.producers.get(marker.producer_id)
        if (
            marker.transaction_version >= EPOCH_BUMP_VERSION
            and entry is not None
            and entry.producer_epoch == marker.producer_epoch
        ):
            if entry.current_txn_first_offset != NO_OFFSET:
                raise KafkaError(
                    ErrorCode.INVALID_PRODUCER_EPOCH,
                    f"The marker with epoch {marker.producer_epoch} of producer {marker.producer_id} belongs to an "
                    "earlier transaction",
                )
            return log.log_end_offset - 1
        batch = end_txn_marker(
            commit=marker.is_commit,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp_ms=self._loop.now_ms(),
        )
        info = partition.append(memoryview(bytearray(batch)), self._loop.now(), origin="coordinator")
        if partition.topic == GROUP_METADATA_TOPIC:
            self._on_offsets_ended(partition.index, marker.producer_id, commit=marker.is_commit)
        return info.last_offset
