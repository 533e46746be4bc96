"""Writing the ends of transactions into the partitions of this broker (WriteTxnMarkers; T5, T8; KIP-98, KIP-1228).

A marker is a control batch. It ends the producer's transaction in the partition, moves the last stable offset, and in
`__consumer_offsets` makes the offsets of the transaction count, or drops them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.coord.cluster.topic_names import GROUP_METADATA_TOPIC
from barnabas.coord.transactions.transaction import EPOCH_BUMP_VERSION
from barnabas.storage.producer_entry import NO_OFFSET
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records import end_txn_marker

if TYPE_CHECKING:
    from barnabas.broker.replicas.partition import Partition


class Marker(NamedTuple):
    """The end of one producer's transaction."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int


def write_marker(partition: Partition, marker: Marker) -> int:
    """End the transaction in one partition; gives the offset that has to be committed for the marker to be safe.

    From KIP-890 on a marker carries the producer's next epoch, so one of the current epoch is either a repeat, which
    finds nothing open and is not written again, or late: INVALID_PRODUCER_EPOCH, it must not end the transaction that
    came after (T8, T9). Also raises TRANSACTION_COORDINATOR_FENCED, and what an append raises.
    """
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
                f"The marker with epoch {marker.producer_epoch} of producer {marker.producer_id} is of an earlier "
                "transaction",
            )
        return log.log_end_offset - 1
    broker = partition.broker
    batch = end_txn_marker(
        commit=marker.is_commit,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        coordinator_epoch=marker.coordinator_epoch,
        timestamp_ms=broker.now_ms(),
    )
    info = partition.append(memoryview(bytearray(batch)), broker.now(), origin="coordinator")
    if partition.topic == GROUP_METADATA_TOPIC:
        broker.coordinators.transaction_ended(partition.index, marker.producer_id, commit=marker.is_commit)
    return info.last_offset
