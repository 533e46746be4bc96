"""The transactions of all clients, and which of their records readers may see (T6, T12)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tests.support.requests.fetch import Records


@dataclass
class Transaction:
    """One transaction of a client."""

    values: list[bytes] = field(default_factory=list)
    commit_requested: bool = False
    is_committed: bool = False


class Read(NamedTuple):
    """A record of a writer."""

    offset: int
    number: int


class Ledger:
    """All transactions of a run."""

    def __init__(self) -> None:
        self.transactions: list[Transaction] = []
        self.of_value: dict[bytes, Transaction] = {}
        self._last: dict[tuple[int, bytes], Read] = {}
        """By partition and writer: the last record that was read."""

    def begin(self) -> Transaction:
        """A client starts a transaction."""
        transaction = Transaction()
        self.transactions.append(transaction)
        return transaction

    def sending(self, transaction: Transaction, values: list[bytes]) -> None:
        """A client sends records in a transaction."""
        transaction.values += values
        for value in values:
            self.of_value[value] = transaction

    def check_seen(self, where: str, records: Records) -> None:
        """Check records that a read_committed reader has received."""
        for offset, value in records:
            transaction = self.of_value.get(value)
            assert transaction is not None, f"{value!r} at {offset} of {where} was never sent"
            assert transaction.commit_requested, f"{value!r} at {offset} of {where} is visible and was never committed"

    def check_in_order(self, partition: int, records: Records) -> None:
        """Check records of writers (`name/number`) as a reader of a partition gets them from its beginning."""
        for offset, value in records:
            writer, _, number = value.partition(b"/")
            before = self._last.get((partition, writer))
            if before is not None and before.offset < offset:
                assert int(number) > before.number, f"{value!r} at {offset} of {partition} comes after {before}"
            self._last[partition, writer] = Read(offset, int(number))

    def check_end(self, visible: Counter[bytes]) -> None:
        """Check all visible values at the end of a run."""
        twice = [value for value, count in visible.items() if count > 1]
        assert not twice, f"visible more than once: {twice}"
        for transaction in self.transactions:
            seen = [value in visible for value in transaction.values]
            if transaction.is_committed:
                assert all(seen), f"committed, and not all of it is visible: {transaction.values}"
            elif transaction.commit_requested:
                assert all(seen) or not any(seen), f"torn: {transaction.values}"
            else:
                assert not any(seen), f"visible, and never committed: {transaction.values}"
