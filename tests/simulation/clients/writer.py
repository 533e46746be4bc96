"""A transactional producer of input records, some of which are aborted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.clients.producer import Abortable, Fenced, Producer

if TYPE_CHECKING:
    from random import Random

    from tests.simulation.clients.ledger import Ledger
    from tests.simulation.clients.process import Process, Steps

TRANSACTIONS = (2, 6)
"""Minimum and maximum number."""


class Writer:
    """Runs transactions on the partitions of a topic; a restarted process continues with the next transaction."""

    def __init__(
        self, name: str, ledger: Ledger, topic: str, partitions: int, transactions: tuple[int, int] = TRANSACTIONS
    ) -> None:
        self.name = name
        self.is_done = False
        self._ledger = ledger
        self._topic = topic
        self._partitions = partitions
        self._left: int | None = None
        self._transactions = transactions
        self._count = 0

    def run(self, process: Process, generation: int) -> Steps[None]:
        """Run all transactions with this generation of the protocol."""
        random = process.random
        if self._left is None:
            self._left = random.randint(*self._transactions)
        while self._left:
            producer = Producer(process, self.name, generation, random.choice((1_000, 5_000, 20_000)))
            try:
                yield from producer.init()
                while self._left:
                    self._left -= 1
                    yield from self._transaction(producer, process)
                    yield random.choice((0.0, 0.0, 0.1, 0.5))
            except (Fenced, Abortable):
                yield random.random()
        self.is_done = True

    def _transaction(self, producer: Producer, process: Process) -> Steps[None]:
        random = process.random
        transaction = self._ledger.begin()
        try:
            for _ in range(random.randint(1, 4)):
                values = []
                for _ in range(random.randint(1, 3)):
                    self._count += 1
                    values.append(b"%s/%d" % (self.name.encode(), self._count))
                self._ledger.sending(transaction, values)
                yield from producer.send(self._topic, random.randrange(self._partitions), values)
                if random.random() < 0.2:
                    yield think_time_s(random)
            if random.random() < 0.75:
                transaction.commit_requested = True
                yield from producer.end(commit=True)
                transaction.is_committed = True
            else:
                yield from producer.end(commit=False)
        except Abortable:
            yield from producer.end(commit=False)


def think_time_s(random: Random) -> float:
    """A random pause within a transaction, in seconds; sometimes longer than the transaction timeout."""
    return random.choice((0.05, 0.3, 2.0, 8.0))
