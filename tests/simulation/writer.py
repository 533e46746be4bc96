"""A transactional producer that gives others their work, committed or not, with as many lives as that takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.producer import Abortable, Fenced, Producer

if TYPE_CHECKING:
    from random import Random

    from tests.simulation.ledger import Ledger
    from tests.simulation.process import Process, Steps

TRANSACTIONS = (2, 6)
"""At least and at most."""


class Writer:
    """Some transactions into the partitions of a topic; a new life of the process goes on behind what it has sent."""

    def __init__(self, name: str, ledger: Ledger, topic: str, partitions: int) -> None:
        self.name = name
        self.is_done = False
        self._ledger = ledger
        self._topic = topic
        self._partitions = partitions
        self._left: int | None = None
        self._count = 0

    def run(self, process: Process, generation: int) -> Steps[None]:
        """All of them, by a client of this generation of the protocol."""
        random = process.world.random
        if self._left is None:
            self._left = random.randint(*TRANSACTIONS)
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
        random = process.world.random
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
                    yield thinking(random)
            if random.random() < 0.75:
                transaction.commit_was_asked = True
                yield from producer.end(commit=True)
                transaction.is_committed = True
            else:
                yield from producer.end(commit=False)
        except Abortable:
            yield from producer.end(commit=False)


def thinking(random: Random) -> float:
    """How long a client takes in the middle of a transaction; at times for longer than it may."""
    return random.choice((0.05, 0.3, 2.0, 8.0))
