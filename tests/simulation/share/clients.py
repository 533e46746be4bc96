"""The clients of runs with a share group: members that acquire records and acknowledge most of them, and sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.wire.messages import configs as c
from tests.simulation.clients.ledger import Ledger
from tests.simulation.clients.producer import GROUP_KEY, find_coordinator
from tests.simulation.clients.source import BATCHES, Source
from tests.simulation.clients.writer import TRANSACTIONS, Writer
from tests.simulation.settings import short_sessions
from tests.simulation.share.ledger import ACCEPT, GAP, RENEW
from tests.simulation.share.member import FREQUENT_TYPES, Delivered, ShareMember, ShareSession

if TYPE_CHECKING:
    from tests.simulation.clients.process import Process, Steps
    from tests.simulation.clients.processes import Processes
    from tests.simulation.share.member import Acknowledgements, SessionObserver

QUEUE, GROUP = "queue", "workers"
GROUP_RESOURCE = 32
LOCK_S = 2.0
SETTINGS = {
    **short_sessions("share"),
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "20",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": str(int(LOCK_S * 1000)),
}


def group_config(name: str, value: str) -> c.IncrementalAlterConfigsRequest:
    """The request that sets a config of the group."""
    resource = c.IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=GROUP_RESOURCE,
        resource_name=GROUP,
        configs=[c.IncrementalAlterConfigsRequestAlterableConfig(name=name, config_operation=0, value=value)],
    )
    return c.IncrementalAlterConfigsRequest(resources=[resource])


class ShareClients:
    """The clients of one run."""

    batches = BATCHES
    transactions = TRANSACTIONS
    """How many a source has of them."""

    def __init__(self, world: Processes) -> None:
        self.world = world
        random = world.random
        self.partitions = random.choice((1, 2))
        self.limit = random.choice((2, 3, 5))
        self.topic_id = b""
        self.observer: SessionObserver | None = None
        names = [f"source{n}" for n in range(random.choice((1, 2)))]
        self.is_read_committed = random.random() < 0.5
        self.records = Ledger()
        self.sources: list[Source | Writer] = [
            Writer(name, self.records, QUEUE, self.partitions, self.transactions)
            if random.random() < 0.5
            else Source(name, QUEUE, self.partitions, self.batches)
            for name in names
        ]

    def configs(self) -> dict[str, str]:
        """The configs of the group."""
        isolation = {"share.isolation.level": "read_committed"} if self.is_read_committed else {}
        limit = str(self.limit)
        return {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": limit, **isolation}

    def begin(self) -> None:
        """Start the clients."""
        world, random = self.world, self.world.random
        for n in range(random.choice((1, 2, 3, 4))):
            if n:
                world.expendable.add(f"member{n}")
            world.run_process(f"member{n}", self.start_member)
        for source in self.sources:
            world.run_process(source.name, lambda process, source=source: self._start_source(process, source))

    def sources_are_done(self) -> bool:
        """Whether all records are written."""
        return all(source.is_done for source in self.sources)

    def _start_source(self, process: Process, source: Source | Writer) -> None:
        if isinstance(source, Writer):
            process.spawn(source.run(process, 2))
        else:
            process.spawn(source.run(process))

    def start_member(self, process: Process) -> None:
        """Spawn the tasks of a member in a process."""
        member = ShareMember(process, GROUP, QUEUE, self.topic_id)
        member.observer = self.observer
        process.spawn(self.work(process, member))
        process.spawn(member.send_heartbeats())

    def work(self, process: Process, member: ShareMember) -> Steps[None]:
        """Acquire and acknowledge records forever."""
        random = process.random
        yield from find_coordinator(process, GROUP, GROUP_KEY)
        pending: Acknowledgements = []
        session, partitions = member.session(), set[int]()
        while True:
            if not pending and member.assigned:
                session, partitions = yield from self.next_session(process, member)
            if not member.assigned or not partitions:
                yield 0.2
                continue
            if not self.world.is_healed and random.random() < 0.02:
                yield from member.leave()
                pending = []
                continue
            acquired = yield from session.fetch(partitions, pending, self.wait_s())
            pending = []
            if acquired is None:
                yield 0.05
                continue
            self._check_delivered(acquired)
            pending = yield from self._decide(process, session, acquired)
            if pending and random.random() < 0.5:
                if not (yield from session.acknowledge(pending)):
                    yield 0.05
                pending = []

    def next_session(self, process: Process, member: ShareMember) -> Steps[tuple[ShareSession, set[int]]]:
        """Where a member fetches next, and which partitions."""
        yield from ()
        return member.session(), set(member.assigned)

    def wait_s(self) -> float:
        """How long a fetch waits for records."""
        return 4.0 if self.world.is_healed else 0.5

    def _check_delivered(self, delivered: list[Delivered]) -> None:
        """Check that under read_committed only committed records are delivered."""
        if self.is_read_committed:
            values = [(record.offset, record.value) for record in delivered if record.value in self.records.of_value]
            self.records.check_seen(QUEUE, values)

    def _decide(self, process: Process, session: ShareSession, acquired: list[Delivered]) -> Steps[Acknowledgements]:
        """Process records for a random time; their acknowledgements."""
        random = process.random
        if self.world.is_healed or not acquired:
            return [
                (record.partition, record.offset, ACCEPT if record.value is not None else GAP) for record in acquired
            ]
        if random.random() < 0.1:
            renewed = [(record.partition, record.offset, RENEW) for record in acquired]
            yield LOCK_S * random.random()
            if not (yield from session.acknowledge(renewed)):
                return []
        yield random.choice((0.01, 0.01, 0.1, 0.5, 3.0))
        return [
            (record.partition, record.offset, random.choice(FREQUENT_TYPES) if record.value is not None else GAP)
            for record in acquired
            if random.random() < 0.95  # the locks of the others expire
        ]
