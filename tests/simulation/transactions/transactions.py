"""Transactions: writers and exactly-once copiers of both generations, and what read_committed readers must see.

A transaction without a commit request is never visible; one whose commit was answered is visible completely and once;
one whose response was lost is visible completely or not at all (T4-T12). The copiers' output equals their input, even
when copiers are killed or run twice and the broker crashes. In the end no transaction is open.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from barnabas.coord.topic_names import TRANSACTION_STATE_TOPIC
from barnabas.coord.transactions import records
from barnabas.coord.transactions.states import IDLE
from barnabas.wire.batches.records import BatchBuilder
from barnabas.wire.messages.cluster import FeatureUpdateKey, UpdateFeaturesRequest
from tests.simulation.broker.log_checks import LogChecks
from tests.simulation.broker.setup import ask_directly, create_topic, visible_values
from tests.simulation.broker.world import ACTIVE_S, World
from tests.simulation.clients.process import Process
from tests.simulation.clients.producer import Producer
from tests.simulation.settings import COORDINATORS
from tests.simulation.transactions.clients import IN, OUT, PARTITIONS, TransactionClients

if TYPE_CHECKING:
    from tests.simulation.clients.process import Steps
    from tests.simulation.faults import Faults

LAST_EPOCHS = 32_760
BOTH = (1, 2, 2)
FEATURE, NEWEST = "transaction.version", 2
UPGRADE, DOWNGRADE = 1, 2


class Transactions(TransactionClients):
    """A run of this kind."""

    def __init__(
        self, name: str, *, faults: Faults | None = None, generation: int | None = None, is_verbose: bool = False
    ) -> None:
        """`generation`: the generation of all clients; then a late EndTxn may arrive."""
        world = self.world = World(name, COORDINATORS, faults, is_verbose=is_verbose)
        super().__init__(world)
        world.late_ends_of_generation_1 = generation is not None
        self._generations = (generation,) if generation is not None else BOTH
        self.checks = LogChecks(world)

    # ---- the run

    def run(self) -> None:
        """Run from the first start of the broker to the last check."""
        world = self.world
        random = world.random
        world.node.start()
        for topic in (IN, OUT):
            create_topic(world, topic, PARTITIONS)
        clients = [f"writer{n}" for n in range(random.choice((1, 2, 3)))]
        copiers = [f"copier{n}" for n in range(PARTITIONS)] if random.random() < 0.7 else []
        if self._generations == BOTH and random.random() < 0.2:
            self._lower_transaction_version()
        generations = {name: random.choice(self._generations) for name in (*clients, *copiers)}
        if random.random() < 0.2:
            self._use_up_epochs(list(generations))
        self.begin(generations, clients, copiers)
        world.plan_faults()
        world.run(ACTIVE_S, self.is_written)
        world.settle(self.check_end)

    def _lower_transaction_version(self) -> None:
        """Lower `transaction.version`; in half of the runs it is raised again during the run (KIP-1014)."""
        world = self.world
        random = world.random
        self._generations = (1,)
        lowered = _level(random.choice((0, 1)), DOWNGRADE)
        assert ask_directly(world, lowered, 1).error_code == 0

        def rise(process: Process) -> Steps[None]:
            yield random.uniform(0.0, 10.0)
            response = None
            while response is None:
                response = yield from process.ask(_level(NEWEST, UPGRADE), 1)

        if random.random() < 0.5:
            world.run_process("admin", lambda process: process.spawn(rise(process)))

    def _use_up_epochs(self, transactional_ids: list[str]) -> None:
        """Set the epochs of transactional ids close to the last one."""
        world = self.world
        process = Process(world, world.network, "setup")
        done: list[str] = []

        def task(name: str) -> Steps[None]:
            yield from Producer(process, name, 1, 10_000).init()
            done.append(name)

        for name in transactional_ids:
            process.spawn(task(name))
            world.run(300.0, lambda name=name: name in done)
            assert name in done, f"no epoch for {name}"
        broker = world.node.broker
        assert broker is not None
        (partition,) = broker.partitions.of_topic(TRANSACTION_STATE_TOPIC)
        builder = BatchBuilder()
        for name in transactional_ids:
            transaction = broker.transaction_coordinators.coordinator_of(name).transactions[name]
            old = transaction._replace(producer_epoch=LAST_EPOCHS + world.random.randrange(7))
            record = records.transaction_record(name, old, 1)
            builder.append(world.clock.now_ms, record.key, record.value)
        partition.append(memoryview(bytearray(builder.build())), world.clock.now, origin="coordinator")
        broker.transaction_coordinators.stop()
        broker.transaction_coordinators.load()
        world.run(1.0)

    def check_end(self) -> None:
        """Check what must hold some time after all faults have stopped."""
        world = self.world
        broker = world.node.broker
        assert broker is not None, "the broker is down"
        for coordinator in broker.transaction_coordinators:
            for transactional_id, transaction in coordinator.transactions.items():
                assert transaction.state in IDLE, f"{transactional_id} is not complete: {transaction}"
        for partition in broker.partitions:
            log = partition.log
            assert log.last_stable_offset == log.log_end_offset, f"{partition!r} has open transactions"
        self.check_visible()

    def visible(self, topic: str) -> Counter[bytes]:
        """All values of a topic under read_committed."""
        return visible_values(
            self.world, topic, PARTITIONS, lambda index, records: self.check_read(topic, index, records)
        )


def _level(level: int, kind: int) -> UpdateFeaturesRequest:
    update = FeatureUpdateKey(feature=FEATURE, max_version_level=level, upgrade_type=kind)
    return UpdateFeaturesRequest(feature_updates=[update])
