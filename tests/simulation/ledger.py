"""What clients have done in their transactions, and what of it readers may see (T6, T12)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.consumer import Found


@dataclass
class Transaction:
    """What a client has done in one transaction."""

    values: list[bytes] = field(default_factory=list)
    commit_was_asked: bool = False
    is_committed: bool = False


class Ledger:
    """All transactions, and what readers have seen."""

    def __init__(self) -> None:
        self.transactions: list[Transaction] = []
        self.of_value: dict[bytes, Transaction] = {}

    def begin(self) -> Transaction:
        """A client begins a transaction."""
        transaction = Transaction()
        self.transactions.append(transaction)
        return transaction

    def sending(self, transaction: Transaction, values: list[bytes]) -> None:
        """A client sends records in it."""
        transaction.values += values
        for value in values:
            self.of_value[value] = transaction

    def check_seen(self, where: str, found: Found) -> None:
        """A read_committed reader may see these."""
        for offset, value in found:
            transaction = self.of_value.get(value)
            assert transaction is not None, f"{value!r} at {offset} of {where}: nobody has sent that"
            assert transaction.commit_was_asked, f"{value!r} at {offset} of {where} is visible and was never committed"

    def check_end(self, visible: Counter[bytes]) -> None:
        """All that is visible in the end."""
        twice = [value for value, count in visible.items() if count > 1]
        assert not twice, f"visible more than once: {twice}"
        for transaction in self.transactions:
            seen = [value in visible for value in transaction.values]
            if transaction.is_committed:
                assert all(seen), f"committed, and not all of it is visible: {transaction.values}"
            elif transaction.commit_was_asked:
                assert all(seen) or not any(seen), f"torn: {transaction.values}"
            else:
                assert not any(seen), f"visible, and never committed: {transaction.values}"
