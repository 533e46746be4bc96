"""The state of one producer in a partition: its epoch, its last five batches, its open transaction (I1)."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.wire.batches.batch_header import BatchHeader

NUM_BATCHES_TO_RETAIN = 5
NO_EPOCH = -1
NO_SEQUENCE = -1
NO_OFFSET = -1


class BatchMetadata(NamedTuple):
    """Sequences, offsets and timestamp of one batch."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class ProducerEntry:
    """The state of one producer id."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(self, producer_id: int, producer_epoch: int = NO_EPOCH) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.batches: list[BatchMetadata] = []
        self.last_timestamp = -1
        self.coordinator_epoch = -1
        self.current_txn_first_offset = NO_OFFSET

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, -1 when no batch is kept."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """The offset of the last data record, -1 when no batch is kept."""
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def find_duplicate(self, header: BatchHeader) -> BatchMetadata | None:
        """The kept batch with the same epoch and sequences (I1)."""
        if header.producer_epoch != self.producer_epoch:
            return None
        first, last = header.base_sequence, header.last_sequence
        for batch in self.batches:
            if batch.first_sequence == first and batch.last_sequence == last:
                return batch
        return None

    def enter_epoch(self, epoch: int) -> None:
        """Set the epoch, and remove the batches of another epoch."""
        if epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = epoch
