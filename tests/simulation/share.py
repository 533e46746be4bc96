"""Share groups: members that take records from a queue, finish, refuse or forget them, and die with some in hand (G5).

What is watched is in `share_ledger`. In the end every record is settled: accepted, rejected, or given up after as many
deliveries as the limit allows, and none was passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.share_partitions.states import RecordState
from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.wire.messages import configs as c
from tests.simulation.ledger import Ledger
from tests.simulation.log_checks import LogChecks
from tests.simulation.producer import GROUP_KEY, find
from tests.simulation.setup import ask_directly, create_topic
from tests.simulation.share_ledger import ACCEPT, GAP, RENEW, Locked, ShareLedger
from tests.simulation.share_member import USUAL, Given, ShareMember
from tests.simulation.source import Source
from tests.simulation.world import ACTIVE_S, World
from tests.simulation.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.faults import Faults
    from tests.simulation.process import Process, Steps
    from tests.simulation.share_member import Said

QUEUE, GROUP = "queue", "workers"
GROUP_RESOURCE = 32
LOCK_S = 2.0
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "20",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": str(int(LOCK_S * 1000)),
    "group.share.min.session.timeout.ms": "6000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.heartbeat.interval.ms": "1000",
    "group.share.heartbeat.interval.ms": "2000",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.assignment.interval.ms": "0",
}


class Share:
    """A run of this kind."""

    def __init__(self, name: str, *, faults: Faults | None = None, is_told: bool = False) -> None:
        world = self.world = World(name, SETTINGS, faults, is_told=is_told)
        random = world.random
        self.partitions = random.choice((1, 2))
        self.limit = random.choice((2, 3, 5))
        self.ledger = ShareLedger(world.clock, self.limit)
        world.network.observer = self.ledger
        world.node.at_crash.append(self.ledger.broker_crashes)
        world.node.after_turn.append(self._look_at_locks)
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
        """From the first start of the broker to the last check."""
        world = self.world
        random = world.random
        world.node.start()
        self.topic_id = create_topic(world, QUEUE, self.partitions)
        self._set("share.auto.offset.reset", "earliest")
        self._set("share.delivery.count.limit", str(self.limit))
        if self.is_read_committed:
            self._set("share.isolation.level", "read_committed")
        for n in range(random.choice((1, 2, 3, 4))):
            if n:
                world.mortal.add(f"member{n}")
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

    def _set(self, name: str, value: str) -> None:
        resource = c.IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=GROUP_RESOURCE,
            resource_name=GROUP,
            configs=[c.IncrementalAlterConfigsRequestAlterableConfig(name=name, config_operation=0, value=value)],
        )
        answer = ask_directly(self.world, c.IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert answer.responses[0].error_code == 0, answer

    def check_end(self) -> None:
        """What must hold when all has healed and time has passed."""
        assert all(source.is_done for source in self.sources), "a source has not come to its end"
        self.checks.check_reloaded()
        unsettled = self._unsettled()
        assert not unsettled, f"not settled: {unsettled}"
        broker = self.world.node.broker
        assert broker is not None
        for partition in range(self.partitions):
            end = broker.partitions.get(QUEUE, partition).log.log_end_offset
            passed_over = self.checks.passed_over(QUEUE, partition, is_read_committed=self.is_read_committed)
            owed = set(range(end)) - passed_over
            lost = [offset for offset in owed if not self.ledger.is_accounted_for((partition, offset))]
            assert not lost, f"given up without a reason: {lost} of {partition}"

    def _unsettled(self) -> list[str]:
        """Partitions of the queue with records that are under way."""
        broker = self.world.node.broker
        if broker is None:
            return ["the broker is not there"]
        found = []
        for partition in range(self.partitions):
            end = broker.partitions.get(QUEUE, partition).log.log_end_offset
            state = broker.share_partitions.find(SharePartitionKey(GROUP, self.topic_id, partition))
            if end and (state is None or state.state is None or state.state.start_offset < end):
                found.append(f"{partition}: {end} records, {state and state.state and state.state.runs()}")
        return found

    def _look_at_locks(self) -> None:
        """Show the ledger what is locked while answers wait: of some the connection ends before they leave."""
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
        """Give a process the work of a member."""
        member = ShareMember(process, GROUP, QUEUE, self.topic_id)
        process.spawn(self.work(process, member))
        process.spawn(member.beat())

    def work(self, process: Process, member: ShareMember) -> Steps[None]:
        """Take records and say what became of them, for ever."""
        random = process.world.random
        yield from find(process, GROUP, GROUP_KEY)
        said: Said = []
        while True:
            if not member.assigned:
                yield 0.2
                continue
            if not self.world.is_healed and random.random() < 0.02:
                yield from member.leave()
                said = []
                continue
            acquired = yield from member.fetch(said, 4.0 if self.world.is_healed else 0.5)
            said = []
            if acquired is None:
                yield 0.05
                continue
            if not acquired:
                continue
            self._check_given(acquired)
            if self.world.is_healed:
                said = [(one.partition, one.offset, ACCEPT if one.value is not None else GAP) for one in acquired]
            else:
                said = yield from self._decide(process, member, acquired)
            if said and random.random() < 0.5:
                if not (yield from member.acknowledge(said)):
                    yield 0.05
                said = []

    def _check_given(self, given: list[Given]) -> None:
        """Under read_committed nobody gets records that were not committed."""
        if self.is_read_committed:
            found = [(one.offset, one.value) for one in given if one.value in self.records.of_value]
            self.records.check_seen(QUEUE, found)

    def _decide(self, process: Process, member: ShareMember, acquired: list[Given]) -> Steps[Said]:
        """Work on records, for as long as that takes."""
        random = process.world.random
        if random.random() < 0.1:
            renewed = [(one.partition, one.offset, RENEW) for one in acquired]
            yield LOCK_S * random.random()
            if not (yield from member.acknowledge(renewed)):
                return []
        yield random.choice((0.01, 0.01, 0.1, 0.5, 3.0))
        return [
            (one.partition, one.offset, random.choice(USUAL) if one.value is not None else GAP)
            for one in acquired
            if random.random() < 0.95  # of some it says nothing: their locks run out
        ]
