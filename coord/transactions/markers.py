"""The markers that a transaction coordinator requests, in addition to records and replies."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.coord.machine import Result

if TYPE_CHECKING:
    from barnabas.coord.transactions.transaction import TopicPartition


class Markers(NamedTuple):
    """Request to write a commit or abort marker to partitions (WriteTxnMarkers, rules T4 and T5)."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    transaction_version: int
    partitions: frozenset[TopicPartition]


class TransactionResult(Result):
    """A result that may request markers, to be written once the records are committed and not before (rule T4).

    The caller retries until every partition is reported to `TransactionCoordinator.markers_written`.
    """

    __slots__ = ("markers",)

    def __init__(self) -> None:
        super().__init__()
        self.markers: list[Markers] = []

    def merge(self, other: Result) -> None:
        """Append everything in `other` to this result."""
        super().merge(other)
        if isinstance(other, TransactionResult):
            self.markers += other.markers

    def __bool__(self) -> bool:
        return bool(self.records or self.replies or self.markers)
