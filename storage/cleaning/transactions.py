"""Tracks transactions while a cleaner reads a log (rule L9).

Data of aborted transactions is removed. A marker may be removed after a pass that has read no batch of its transaction,
once the delete horizon has passed. The index entry of an aborted transaction is kept as long as its marker is
needed. Source: Kafka's `CleanedTransactionMetadata`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from barnabas.storage.segments.txn_index import AbortedTransaction
from barnabas.wire.batches.records import BatchView, ControlRecordType, control_record_type, iter_records


class CleanedTransactions:
    """The transactions that are open at the last batch read; every transactional batch must be passed in, in order."""

    __slots__ = ("_aborted", "_committing", "_open_aborted", "on_kept")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """`aborted` covers the range to be read; `on_kept` is called with each whose marker is still needed."""
        self.on_kept: Callable[[AbortedTransaction], None] | None = None
        self._aborted = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
        self._committing: set[int] = set()
        self._open_aborted: dict[int, tuple[AbortedTransaction, bool]] = {}  # and whether a batch of it was read

    def is_aborted(self, producer_id: int, last_offset: int) -> bool:
        """Whether the transaction of a data batch was aborted."""
        self._open_up_to(last_offset)
        entry = self._open_aborted.get(producer_id)
        if entry is None:
            self._committing.add(producer_id)
            return False
        self._open_aborted[producer_id] = (entry[0], True)
        return True

    def may_drop_marker(self, batch: BatchView) -> bool:
        """Whether no batch of a marker's transaction is left."""
        self._open_up_to(batch.last_offset)
        record = next(iter_records(batch), None)
        if record is None:
            return True  # only the header of a marker, kept for its producer
        kind = control_record_type(record)
        if kind == ControlRecordType.COMMIT:
            met = batch.producer_id in self._committing
            self._committing.discard(batch.producer_id)
            return not met
        if kind != ControlRecordType.ABORT:
            return False
        entry, met = self._open_aborted.pop(batch.producer_id, (None, False))
        if entry is not None and met and self.on_kept is not None:
            self.on_kept(entry)
        return not met

    def _open_up_to(self, offset: int) -> None:
        aborted = self._aborted
        while aborted and aborted[-1].first_offset <= offset:
            entry = aborted.pop()
            self._open_aborted.setdefault(entry.producer_id, (entry, False))
