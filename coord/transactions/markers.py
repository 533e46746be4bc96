"""What a transaction coordinator asks for beside records and replies: markers in the partitions of a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.coord.machine import Result

if TYPE_CHECKING:
    from barnabas.coord.transactions.transaction import TopicPartition


class Markers(NamedTuple):
    """Write the end of a transaction into its partitions (WriteTxnMarkers, rules T4 and T5)."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    transaction_version: int
    partitions: frozenset[TopicPartition]


class TransactionResult(Result):
    """A result that may ask for markers: to be written once the records are committed, not before (rule T4).

    Each partition is reported back through `TransactionCoordinator.markers_written`, however long it takes.
    """

    __slots__ = ("markers",)

    def __init__(self) -> None:
        super().__init__()
        self.markers: list[Markers] = []

    def merge(self, other: Result) -> None:
        """Take over everything `other` holds, after what is here."""
        super().merge(other)
        if isinstance(other, TransactionResult):
            self.markers += other.markers

    def __bool__(self) -> bool:
        return bool(self.records or self.replies or self.markers)
