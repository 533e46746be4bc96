"""The transactional ids of one partition of `__transaction_state`, as the records say, and what their states imply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.machine import check_transition
from barnabas.coord.transactions.states import PREDECESSORS, PREPARED, TransactionState

if TYPE_CHECKING:
    from barnabas.coord.transactions.transaction import TopicPartition, Transaction


class TransactionTable:
    """Transactions by transactional id. Only `replay` of the coordinator changes them."""

    __slots__ = ("ongoing", "transactions", "unmarked")

    def __init__(self) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.ongoing: set[str] = set()
        """Transactional ids with an open transaction."""
        self.unmarked: dict[str, set[TopicPartition]] = {}
        """By transactional id in a prepared state: the partitions whose marker is not written yet."""

    def apply(self, transactional_id: str, new: Transaction | None, *, is_checked: bool) -> TransactionState:
        """Replace a transaction, None removing it; the state it has now.

        AssertionError with `is_checked` when the state may not follow the one before.
        """
        old = self.transactions.get(transactional_id)
        if new is None:
            self.transactions.pop(transactional_id, None)
            state = TransactionState.DEAD
        else:
            self.transactions[transactional_id] = new
            state = new.state
        if is_checked and old is not None:
            check_transition(PREDECESSORS, old.state, state)
        if state is TransactionState.ONGOING:
            self.ongoing.add(transactional_id)
        else:
            self.ongoing.discard(transactional_id)
        if new is not None and state in PREPARED:
            self.unmarked[transactional_id] = set(new.partitions)
        else:
            self.unmarked.pop(transactional_id, None)
        return state

    def clear(self) -> None:
        """Remove everything."""
        self.transactions.clear()
        self.ongoing.clear()
        self.unmarked.clear()
