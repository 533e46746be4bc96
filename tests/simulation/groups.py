"""Classic groups: members that join, process records, commit, are killed or paused and join again.

In no generation has a partition two owners, or the group two leaders; offsets are never below acknowledged ones; a
commit of an old generation is refused. In half of the runs the members copy records exactly once, each with its own
transactional id, so that a new owner may only read offsets that no open transaction of the old one can change
(KIP-447). After all faults every record is processed, and the group does not rebalance any more (G1, G2, T11, T12).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

from barnabas.coord.groups.classic.states import GroupState
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages import offsets as o
from tests.simulation.classic_member import ClassicMember, InstanceFenced
from tests.simulation.consumer import Reader, committed_offsets
from tests.simulation.copies import copy_of, originals
from tests.simulation.group_ledger import GroupLedger
from tests.simulation.log_checks import LogChecks
from tests.simulation.producer import BACKOFF_S, GROUP_KEY, Abortable, Fenced, Producer, find_coordinator
from tests.simulation.settings import COORDINATORS
from tests.simulation.setup import create_topic, visible_values
from tests.simulation.source import Source
from tests.simulation.world import ACTIVE_S, World

if TYPE_CHECKING:
    from tests.simulation.consumer_member import ConsumerMember
    from tests.simulation.faults import Faults
    from tests.simulation.process import Process, Steps

Member: TypeAlias = "ClassicMember | ConsumerMember"
IN, OUT, GROUP = "in", "out", "workers"
MEMBERSHIP_ERRORS = frozenset(
    {E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.REBALANCE_IN_PROGRESS, E.FENCED_INSTANCE_ID, E.STALE_MEMBER_EPOCH}
)
STILL_S = 10.0
"""Seconds at the end of a run without any change of the group; long enough for every session to expire."""


class Groups:
    """A run of this kind."""

    has_static_members = True

    def __init__(self, name: str, *, faults: Faults | None = None, is_verbose: bool = False) -> None:
        world = self.world = World(name, self._settings(), faults, is_verbose=is_verbose)
        random = world.random
        self.partitions = random.choice((1, 2, 3))
        self.ledger = GroupLedger(GROUP)
        self.is_exactly_once = random.random() < 0.5
        self.checks = LogChecks(world)
        self.sources = [Source(f"source{n}", IN, self.partitions) for n in range(random.choice((1, 2)))]
        self.count = 0
        self.topic_ids: dict[str, bytes] = {}

    def _settings(self) -> dict[str, str]:
        return {**COORDINATORS, "group.initial.rebalance.delay.ms": "500"}

    # ---- the run

    def run(self) -> None:
        """Run from the first start of the broker to the last check."""
        world = self.world
        random = world.random
        world.node.start()
        for topic in (IN, OUT):
            self.topic_ids[topic] = create_topic(world, topic, self.partitions)
        for n in range(random.choice((1, 2, 3, 4))):
            name = f"member{n}"
            instance_id = name if self.has_static_members and random.random() < 0.4 else None
            if instance_id is None and n:
                world.expendable.add(name)
            world.run_process(name, lambda process, instance_id=instance_id: self.start_member(process, instance_id))
        for source in self.sources:
            world.run_process(source.name, lambda process, source=source: process.spawn(source.run(process)))
        world.plan_faults()
        world.run(ACTIVE_S, lambda: all(source.is_done for source in self.sources) and world.clock.now > 1015.0)
        world.settle(self.check_end)
        epoch = self.ledger.newest_epoch
        world.run(STILL_S)
        assert self.ledger.newest_epoch == epoch, "the group does not become stable"
        self.check_end()

    def check_end(self) -> None:
        """Check what must hold some time after all faults have stopped."""
        world = self.world
        broker = world.node.broker
        assert broker is not None, "the broker is down"
        self.checks.check_reloaded()
        self.check_group()
        assert all(source.is_done for source in self.sources), "a source is not done"
        acknowledged = Counter(value for source in self.sources for value in source.acknowledged)
        visible = self._visible(IN)
        assert not acknowledged - visible, f"acknowledged but not in the log: {acknowledged - visible}"
        assert max(visible.values(), default=1) == 1, f"in the log twice: {visible}"
        groups = broker.group_coordinators.coordinator_of(GROUP)
        for partition in range(self.partitions):
            end = broker.partitions.get(IN, partition).log.log_end_offset
            found = groups.offsets.store.get(GROUP, IN, partition)
            assert end == (0 if found is None else found.offset), (
                f"the group has not reached the end of partition {partition}: {found}"
            )
        if self.is_exactly_once:
            copies = self._visible(OUT)
            self.ledger.records.check_end(copies)
            copied = originals(copies)
            assert copied == visible, f"copies without input {copied - visible}, input without copy {visible - copied}"
        else:
            missing = [value for value in visible if value not in self.ledger.processed]
            assert not missing, f"not processed: {missing}"

    def check_group(self) -> None:
        """Check that the group is stable, and that its members are the running processes."""
        assert self.world.node.broker is not None
        group = self.world.node.broker.group_coordinators.coordinator_of(GROUP).groups.get(GROUP)
        assert group is not None, "there is no group"
        assert group.state is GroupState.STABLE, f"{group} is not stable"
        members = [process.member for process in self._members()]
        assert all(one.is_stable and one.epoch == group.generation for one in members), "a member is still joining"
        living = {one.member_id for one in members}
        assert set(group.members) == living, f"the members are {list(group.members)}, the running ones {living}"

    def _members(self) -> list[Process]:
        return [one for one in self.world.all_processes if hasattr(one, "member") and one.is_alive]

    def _visible(self, topic: str) -> Counter[bytes]:
        return visible_values(self.world, topic, self.partitions, lambda _: None)

    # ---- members

    def new_member(self, process: Process, instance_id: str | None) -> Member:
        """A member of the classic protocol."""
        return ClassicMember(process, self.ledger, IN, self.partitions, instance_id)

    def start_member(self, process: Process, instance_id: str | None) -> None:
        """Spawn the tasks of a member in a process."""
        member = self.new_member(process, instance_id)
        process.member = member  # type: ignore[attr-defined]  # for the checks
        process.spawn(self.work(process, member))
        process.spawn(member.send_heartbeats())

    def work(self, process: Process, member: Member) -> Steps[None]:
        """Join and process records, again and again; sometimes leave."""
        random = process.random
        try:
            yield from find_coordinator(process, GROUP, GROUP_KEY)
            producer = None
            while True:
                yield from member.ensure_joined()
                if self.is_exactly_once:
                    producer = producer or (yield from self._producer(process))
                    if not (yield from self._copy(process, member, producer)):
                        producer = None
                else:
                    yield from self._consume(process, member)
                if not self.world.is_healed and member.is_stable and random.random() < 0.1:
                    yield from member.leave()
                    yield random.choice((0.0, 1.0))
        except InstanceFenced:
            process.exit()

    def _producer(self, process: Process) -> Steps[Producer]:
        while True:
            producer = Producer(process, process.name, 2, process.random.choice((3_000, 20_000)))
            try:
                yield from producer.init()
            except (Fenced, Abortable):
                yield BACKOFF_S
            else:
                return producer

    def _positions(self, process: Process, member: Member) -> Steps[dict[int, int] | None]:
        """The committed offsets of the member's partitions."""
        at_least = {partition: self.ledger.acknowledged(partition) for partition in member.assigned}
        offsets = yield from committed_offsets(process, GROUP, IN, member.assigned)
        for partition, offset in (offsets or {}).items():
            self.ledger.found(partition, offset, at_least[partition])
        return offsets

    def _consume(self, process: Process, member: Member) -> Steps[None]:
        """Process records and commit offsets while the member has its partitions."""
        random = process.random
        epoch = member.epoch
        positions = yield from self._positions(process, member)
        if positions is None:
            yield BACKOFF_S
            return
        reader = Reader(process, IN)
        while member.is_stable and member.epoch == epoch:
            offsets, values = yield from reader.fetch_all(positions)
            self.ledger.processed.update(values)
            if (
                offsets
                and member.is_stable
                and member.epoch == epoch
                and not (yield from self._commit(process, member, offsets))
            ):
                return
            yield 4.0 if self.world.is_healed and not offsets else random.choice((0.2, 0.5))
            if not self.world.is_healed and random.random() < 0.02:
                return

    def _commit(self, process: Process, member: Member, offsets: dict[int, int]) -> Steps[bool]:
        when_sent, epoch, identity = self.ledger.when_sent(offsets), member.epoch, member.identity
        partitions = [
            o.OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
            for partition, offset in offsets.items()
        ]
        request = o.OffsetCommitRequest(
            group_id=GROUP,
            topics=[o.OffsetCommitRequestTopic(name=IN, partitions=partitions)],
            **member.for_commit(),
        )
        answer = yield from process.ask(request, member.commit_version, lane="group", may_outlive=False)
        if answer is None:
            return False
        errors = {E(one.error_code) for one in answer.topics[0].partitions}
        for partition in answer.topics[0].partitions:
            index = partition.partition_index
            if not partition.error_code:
                self.ledger.committed(index, offsets[index], identity=identity, epoch=epoch, when_sent=when_sent)
        errors.discard(E.NONE)
        for error in errors:
            if epoch == member.epoch:
                member.failed(error)
        return not errors

    def _copy(self, process: Process, member: Member, producer: Producer) -> Steps[bool]:
        """Copy records in transactions while the member has its partitions; False when the producer is fenced."""
        random = process.random
        epoch, who = member.epoch, member.for_commit()
        positions = yield from self._positions(process, member)
        if positions is None:
            yield BACKOFF_S
            return True
        reader = Reader(process, IN)
        while member.is_stable and member.epoch == epoch:
            offsets, values = yield from reader.fetch_all(positions)
            if not offsets:
                yield 4.0 if self.world.is_healed else random.choice((0.2, 0.5))
                continue
            try:
                if not (yield from self._copy_once(process, member, who, producer, offsets, values)):
                    return True
            except Fenced:
                return False
        return True

    def _copy_once(
        self,
        process: Process,
        member: Member,
        who: dict[str, Any],
        producer: Producer,
        offsets: dict[int, int],
        values: list[bytes],
    ) -> Steps[bool]:
        """Run one transaction; `who` has the member id and epoch of when it got its partitions."""
        random = process.random
        epoch, identity = who["generation_id_or_member_epoch"], member.identity
        transaction = self.ledger.records.begin()
        self.count += 1
        copies = [copy_of(value, self.count) for value in values]
        try:
            self.ledger.records.sending(transaction, copies)
            yield from producer.send(OUT, random.randrange(self.partitions), copies)
            if random.random() < 0.1:
                yield random.choice((0.5, 4.0))
            when_sent = self.ledger.when_sent(offsets)
            yield from producer.send_offsets(GROUP, IN, offsets, who)
            if random.random() < 0.1:  # a new owner of the partitions must wait for the end
                yield random.choice((0.5, 4.0, 8.0))
            transaction.commit_requested = True
            yield from producer.end(commit=True)
            transaction.is_committed = True
        except Abortable as aborted:
            yield from producer.end(commit=False)
            if epoch == member.epoch and aborted.error in MEMBERSHIP_ERRORS:
                member.failed(aborted.error)
            return False
        for partition, offset in offsets.items():
            self.ledger.committed(partition, offset, identity=identity, epoch=epoch, when_sent=when_sent)
        return True
