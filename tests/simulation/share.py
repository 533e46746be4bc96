"""Share groups: members that acquire records, acknowledge most of them, and are killed with some acquired (rule G5).

The checks during the run are in `share_ledger`. In the end every record is accepted, rejected, or archived after as
many deliveries as the limit, and none was skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.share_partitions.states import RecordState
from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.wire.messages import configs as c
from tests.simulation.ledger import Ledger
from tests.simulation.log_checks import LogChecks
from tests.simulation.producer import GROUP_KEY, find_coordinator
from tests.simulation.settings import COORDINATORS, short_sessions
from tests.simulation.setup import ask_directly, create_topic
from tests.simulation.share_ledger import ACCEPT, GAP, RENEW, Locked, ShareLedger
from tests.simulation.share_member import FREQUENT_TYPES, Delivered, ShareMember
from tests.simulation.source import Source
from tests.simulation.world import ACTIVE_S, World
from tests.simulation.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.faults import Faults
    from tests.simulation.process import Process, Steps
    from tests.simulation.share_member import Acknowledgements

QUEUE, GROUP = "queue", "workers"
GROUP_RESOURCE = 32
LOCK_S = 2.0
SETTINGS = {
    **COORDINATORS,
    **short_sessions("share"),
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "20",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": str(int(LOCK_S * 1000)),
}


class Share:
    """A run of this kind."""

    def __init__(self, name: str, *, faults: Faults | None = None, is_verbose: bool = False) -> None:
        world = self.world = World(name, SETTINGS, faults, is_verbose=is_verbose)
        random = world.random
        self.partitions = random.choice((1, 2))
        self.limit = random.choice((2, 3, 5))
        self.ledger = ShareLedger(world.clock, self.limit)
        world.network.observer = self.ledger
        world.node.at_crash.append(self.ledger.broker_crashes)
        world.node.after_turn.append(self._report_locks)
        self.checks = LogChecks(world)
        names = [f"source{n}" for n in range(random.choice((1, 2)))]
        self.is_read_committed = random.random() < 0.5
        self.records = Ledger()
        self.sources: list[Source | Writer] = [
            Writer(name, self.records, QUEUE, self.partitions)
            if random.random() < 0.5
            else Source(name, QUEUE, self.partitions)
            for name in names
        ]
        self.topic_id = b""

    def run(self) -> None:
        """Run from the first start of the broker to the last check."""
        world = self.world
        random = world.random
        world.node.start()
        self.topic_id = create_topic(world, QUEUE, self.partitions)
        self._set_config("share.auto.offset.reset", "earliest")
        self._set_config("share.delivery.count.limit", str(self.limit))
        if self.is_read_committed:
            self._set_config("share.isolation.level", "read_committed")
        for n in range(random.choice((1, 2, 3, 4))):
            if n:
                world.expendable.add(f"member{n}")
            world.run_process(f"member{n}", self.start_member)
        for source in self.sources:
            world.run_process(source.name, lambda process, source=source: self._start_source(process, source))
        world.plan_faults()
        world.run(ACTIVE_S, lambda: all(source.is_done for source in self.sources) and world.clock.now > 1012.0)
        world.settle(self.check_end, 3.0)

    def _start_source(self, process: Process, source: Source | Writer) -> None:
        if isinstance(source, Writer):
            process.spawn(source.run(process, 2))
        else:
            process.spawn(source.run(process))

    def _set_config(self, name: str, value: str) -> None:
        resource = c.IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=GROUP_RESOURCE,
            resource_name=GROUP,
            configs=[c.IncrementalAlterConfigsRequestAlterableConfig(name=name, config_operation=0, value=value)],
        )
        answer = ask_directly(self.world, c.IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert answer.responses[0].error_code == 0, answer

    def check_end(self) -> None:
        """Check what must hold some time after all faults have stopped."""
        assert all(source.is_done for source in self.sources), "a source is not done"
        self.checks.check_reloaded()
        unfinished = self._unfinished()
        assert not unfinished, f"not finished: {unfinished}"
        broker = self.world.node.broker
        assert broker is not None
        for partition in range(self.partitions):
            end = broker.partitions.get(QUEUE, partition).log.log_end_offset
            skipped = self.checks.skipped(QUEUE, partition, is_read_committed=self.is_read_committed)
            expected = set(range(end)) - skipped
            lost = [offset for offset in expected if not self.ledger.is_accounted_for((partition, offset))]
            assert not lost, f"archived without a reason: {lost} of partition {partition}"

    def _unfinished(self) -> list[str]:
        """Partitions with records that are not finished."""
        broker = self.world.node.broker
        if broker is None:
            return ["the broker is down"]
        found = []
        for partition in range(self.partitions):
            end = broker.partitions.get(QUEUE, partition).log.log_end_offset
            state = broker.share_partitions.find(SharePartitionKey(GROUP, self.topic_id, partition))
            if end and (state is None or state.state is None or state.state.start_offset < end):
                found.append(f"{partition}: {end} records, {state and state.state and state.state.runs()}")
        return found

    def _report_locks(self) -> None:
        """Report locked records to the ledger while responses are withheld: some of these are never sent."""
        if self.ledger.has_withheld:
            self.ledger.turn_ends(self._locked())

    def _locked(self) -> Iterator[Locked]:
        broker = self.world.node.broker
        assert broker is not None
        for partition in range(self.partitions):
            live = broker.share_partitions.find(SharePartitionKey(GROUP, self.topic_id, partition))
            for run in live.state.runs() if live is not None and live.state is not None else ():
                if run.state is RecordState.ACQUIRED:
                    for offset in range(run.first, run.last + 1):
                        yield Locked((partition, offset), run.member_id, run.delivery_count)

    # ---- members

    def start_member(self, process: Process) -> None:
        """Spawn the tasks of a member in a process."""
        member = ShareMember(process, GROUP, QUEUE, self.topic_id)
        process.spawn(self.work(process, member))
        process.spawn(member.send_heartbeats())

    def work(self, process: Process, member: ShareMember) -> Steps[None]:
        """Acquire and acknowledge records forever."""
        random = process.random
        yield from find_coordinator(process, GROUP, GROUP_KEY)
        pending: Acknowledgements = []
        while True:
            if not member.assigned:
                yield 0.2
                continue
            if not self.world.is_healed and random.random() < 0.02:
                yield from member.leave()
                pending = []
                continue
            acquired = yield from member.fetch(pending, 4.0 if self.world.is_healed else 0.5)
            pending = []
            if acquired is None:
                yield 0.05
                continue
            if not acquired:
                continue
            self._check_delivered(acquired)
            if self.world.is_healed:
                pending = [(one.partition, one.offset, ACCEPT if one.value is not None else GAP) for one in acquired]
            else:
                pending = yield from self._decide(process, member, acquired)
            if pending and random.random() < 0.5:
                if not (yield from member.acknowledge(pending)):
                    yield 0.05
                pending = []

    def _check_delivered(self, delivered: list[Delivered]) -> None:
        """Check that under read_committed only committed records are delivered."""
        if self.is_read_committed:
            found = [(one.offset, one.value) for one in delivered if one.value in self.records.of_value]
            self.records.check_seen(QUEUE, found)

    def _decide(self, process: Process, member: ShareMember, acquired: list[Delivered]) -> Steps[Acknowledgements]:
        """Process records for a random time; their acknowledgements."""
        random = process.random
        if random.random() < 0.1:
            renewed = [(one.partition, one.offset, RENEW) for one in acquired]
            yield LOCK_S * random.random()
            if not (yield from member.acknowledge(renewed)):
                return []
        yield random.choice((0.01, 0.01, 0.1, 0.5, 3.0))
        return [
            (one.partition, one.offset, random.choice(FREQUENT_TYPES) if one.value is not None else GAP)
            for one in acquired
            if random.random() < 0.95  # the locks of the others expire
        ]
