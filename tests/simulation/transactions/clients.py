"""The clients of runs with transactions: writers, copiers that copy exactly once, and a reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tests.simulation.clients.consumer import Reader, committed_offsets
from tests.simulation.clients.copies import copy_of, originals
from tests.simulation.clients.ledger import Ledger
from tests.simulation.clients.producer import BACKOFF_S, GROUP_KEY, Abortable, Fenced, Producer, find_coordinator
from tests.simulation.clients.writer import TRANSACTIONS, Writer, think_time_s

if TYPE_CHECKING:
    from tests.simulation.clients.process import Process, Steps
    from tests.simulation.clients.processes import Processes
    from tests.support.requests.fetch import Records

IN, OUT = "in", "out"
PARTITIONS = 2
GROUP = "copiers"


class TransactionClients:
    """The clients of one run, and the records that they must see."""

    transactions = TRANSACTIONS
    """How many a writer has, at least and at most."""

    def __init__(self, world: Processes) -> None:
        self.world = world
        self.ledger = Ledger()
        self.writers: list[Writer] = []
        self.copiers: Sequence[str] = ()
        self.count = 0

    def visible(self, topic: str) -> Counter[bytes]:
        """All values of a topic under read_committed."""
        raise NotImplementedError

    def begin(self, generations: Mapping[str, int], writers: Sequence[str], copiers: Sequence[str]) -> None:
        """Start the clients; `generations` says which generation of the protocol each uses."""
        world = self.world
        self.writers = [Writer(name, self.ledger, IN, PARTITIONS, self.transactions) for name in writers]
        self.copiers = copiers
        for writer in self.writers:
            world.expendable.add(writer.name)
            world.run_process(
                writer.name,
                lambda process, writer=writer: process.spawn(writer.run(process, generations[writer.name])),
            )
        for n, name in enumerate(copiers):
            world.run_process(
                name, lambda process, name=name, n=n: process.spawn(self.copy(process, generations[name], n))
            )
        world.run_process("reader", lambda process: process.spawn(self.read(process)))

    def is_written(self) -> bool:
        """Whether every writer is done or was killed for good."""
        return all(writer.is_done or writer.name in self.world.killed_for_good for writer in self.writers)

    def check_read(self, topic: str, partition: int, records: Records) -> None:
        """Check records that are read at the end of a run, from the beginning of a partition on."""
        self.ledger.check_seen(topic, records)
        if topic == IN:
            self.ledger.check_in_order(partition, records)

    def check_visible(self) -> None:
        """Check at the end of a run what readers see."""
        assert self.is_written(), "a writer is not done"
        written = self.visible(IN)
        copied = self.visible(OUT)
        self.ledger.check_end(written + copied)
        if self.copiers:
            copies = originals(copied)
            assert copies == written, f"copies without input {copies - written}, input without copy {written - copies}"

    # ---- clients

    def copy(self, process: Process, generation: int, partition: int) -> Steps[None]:
        """Copy one partition in transactions, forever."""
        random = process.random
        while True:
            producer = Producer(process, process.name, generation, random.choice((1_000, 5_000)))
            try:
                yield from producer.init()
                yield from find_coordinator(process, GROUP, GROUP_KEY)
                while True:
                    yield from self._copy_until_error(process, producer, partition)
            except (Fenced, Abortable):
                if self.world.processes[process.name] is not process:
                    return  # a newer process has replaced this one
                yield random.random()

    def _copy_until_error(self, process: Process, producer: Producer, partition: int) -> Steps[None]:
        """Copy from the committed offset on until an error."""
        random = process.random
        reader = Reader(process, IN)
        offsets = None
        while offsets is None:
            offsets = yield from committed_offsets(process, GROUP, IN, [partition])
            if offsets is None:
                yield BACKOFF_S
        position = offsets[partition]
        while True:
            fetched = yield from reader.fetch(partition, position, 5.0 if self.world.is_healed else 0.5)
            if fetched is None:
                yield BACKOFF_S
                continue
            position, records = fetched
            if not records:
                continue
            self.ledger.check_seen(IN, records)
            transaction = self.ledger.begin()
            try:
                self.count += 1
                values = [copy_of(value, self.count) for _, value in records]
                self.ledger.sending(transaction, values)
                yield from producer.send(OUT, random.randrange(PARTITIONS), values)
                if random.random() < 0.2:
                    yield think_time_s(random)
                yield from producer.send_offsets(GROUP, IN, {partition: position})
                transaction.commit_requested = True
                yield from producer.end(commit=True)
                transaction.is_committed = True
            except Abortable:
                yield from producer.end(commit=False)
                return

    def read(self, process: Process) -> Steps[None]:
        """Read from the beginning, and check that only committed records are returned."""
        reader = Reader(process, OUT if process.random.random() < 0.5 else IN)
        positions = [0] * PARTITIONS
        while not self.world.is_healed:
            for partition in range(PARTITIONS):
                fetched = yield from reader.fetch(partition, positions[partition])
                if fetched is not None:
                    positions[partition], records = fetched
                    self.ledger.check_seen(reader.topic, records)
            yield 0.3
