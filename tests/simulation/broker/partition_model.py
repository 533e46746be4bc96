"""A model of one partition's log: open transactions, markers, the last stable offset.

It shares only the record format with the broker, so that both can be compared after every turn (T5, T6, I2).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from barnabas.wire.batches.records import (
    BatchView,
    ControlRecordType,
    Record,
    control_record_type,
    iter_batches,
    iter_records,
)

if TYPE_CHECKING:
    from barnabas.storage.log import Log

READ_BYTES = 1 << 22


class Marker(NamedTuple):
    """A commit or abort marker."""

    offset: int
    producer_id: int
    producer_epoch: int
    is_commit: bool


class Ended(NamedTuple):
    """A transaction with its marker."""

    first_offset: int
    marker: Marker


@dataclass
class Batch:
    """One batch of data."""

    base_offset: int
    last_offset: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    records: list[Record]

    def same(self) -> tuple[object, ...]:
        """The fields that must not change."""
        values = tuple((record.key, record.value) for record in self.records)
        return self.base_offset, self.producer_id, self.producer_epoch, self.base_sequence, values


@dataclass
class PartitionModel:
    """One partition, up to the offset that was read."""

    end: int = 0
    batches: list[Batch | Marker] = field(default_factory=list)
    open: dict[int, int] = field(default_factory=dict)
    """First offset of each producer's open transaction."""
    ended: list[Ended] = field(default_factory=list)
    """Transactions whose markers were not committed at the last call of `stable_offset`."""

    def read(self, log: Log) -> list[Batch | Marker]:
        """Read to the end of the log; the new batches."""
        new: list[Batch | Marker] = []
        while self.end < log.log_end_offset:  # segment by segment
            slice_ = log.read(self.end, READ_BYTES, limit_offset=log.log_end_offset, min_one_batch=True).slice
            assert slice_ is not None, "offsets have no holes"
            new += [self._take(batch) for batch in iter_batches(slice_.read())]
        self.batches += new
        return new

    def _take(self, batch: BatchView) -> Batch | Marker:
        assert batch.base_offset == self.end, f"expected a batch at offset {self.end}, found {batch.base_offset}"
        self.end = batch.next_offset
        producer_id = batch.producer_id
        records = list(iter_records(batch))
        if batch.is_control:
            is_commit = control_record_type(records[0]) == ControlRecordType.COMMIT
            marker = Marker(batch.base_offset, producer_id, batch.producer_epoch, is_commit)
            first = self.open.pop(producer_id, None)
            if first is not None:
                self.ended.append(Ended(first, marker))
            return marker
        if batch.is_transactional:
            self.open.setdefault(producer_id, batch.base_offset)
        return Batch(
            batch.base_offset,
            batch.last_offset,
            producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.is_transactional,
            records,
        )

    def stable_offset(self, high_watermark: int) -> int:
        """The offset below which every transaction has a committed marker."""
        self.ended = [transaction for transaction in self.ended if transaction.marker.offset >= high_watermark]
        undecided = [*self.open.values(), *(transaction.first_offset for transaction in self.ended)]
        return min([high_watermark, *undecided])

    def skipped(self, *, is_read_committed: bool) -> set[int]:
        """The offsets that readers skip: markers, and under read_committed aborted records."""
        offsets: set[int] = set()
        open_batches: dict[int, list[Batch]] = {}
        for entry in self.batches:
            if isinstance(entry, Marker):
                offsets.add(entry.offset)
                data = open_batches.pop(entry.producer_id, [])
                if is_read_committed and not entry.is_commit:
                    offsets.update(
                        offset for batch in data for offset in range(batch.base_offset, batch.last_offset + 1)
                    )
            elif entry.is_transactional:
                open_batches.setdefault(entry.producer_id, []).append(entry)
        return offsets
