"""The clients of runs with groups: members of either protocol that process or copy records, and sources of records."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

from barnabas.coord.groups.classic.group import ClassicGroup
from barnabas.coord.groups.classic.states import GroupState
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.groups import offsets as o
from tests.simulation.clients.consumer import Reader, committed_offsets
from tests.simulation.clients.copies import copy_of, originals
from tests.simulation.clients.producer import BACKOFF_S, GROUP_KEY, Abortable, Fenced, Producer, find_coordinator
from tests.simulation.clients.source import BATCHES, Source
from tests.simulation.groups.classic_member import ClassicMember, InstanceFenced
from tests.simulation.groups.consumer_member import ConsumerMember
from tests.simulation.groups.ledger import ConsumerLedger, GroupLedger
from tests.simulation.settings import short_sessions

if TYPE_CHECKING:
    from barnabas.coord.groups.consumer.group import ConsumerGroup
    from barnabas.coord.groups.coordinator import GroupCoordinator
    from tests.simulation.clients.process import Process, Steps
    from tests.simulation.clients.processes import Processes

Member: TypeAlias = "ClassicMember | ConsumerMember"
IN, OUT, GROUP = "in", "out", "workers"
CLASSIC, CONSUMER, BOTH = "classic", "consumer", "both"
"""The protocols that the members of a run use."""
MEMBERSHIP_ERRORS = frozenset(
    {E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.REBALANCE_IN_PROGRESS, E.FENCED_INSTANCE_ID, E.STALE_MEMBER_EPOCH}
)
STILL_S = 10.0
"""Seconds at the end of a run without any change of the group; long enough for every session to expire."""


def group_settings(protocol: str) -> dict[str, str]:
    """Settings of brokers for runs with members of a protocol."""
    settings = {"group.initial.rebalance.delay.ms": "500"}
    if protocol != CLASSIC:
        settings |= short_sessions("consumer")
    if protocol == BOTH:
        settings["group.consumer.migration.policy"] = "bidirectional"
    return settings


class GroupClients:
    """The clients of one run, and the records that they must see."""

    batches = BATCHES
    """How many batches a source sends."""
    commits_may_be_late = False
    """Whether a commit without an answer may take effect later, as in Kafka."""

    def __init__(self, world: Processes, protocol: str) -> None:
        self.world = world
        self.protocol = protocol
        random = world.random
        self.partitions = random.choice((1, 2, 3))
        self.ledger = GroupLedger(GROUP) if protocol == CLASSIC else ConsumerLedger(GROUP, self._is_member)
        self.ledger.may_be_replaced = protocol == BOTH
        self.is_exactly_once = random.random() < 0.5
        self.sources = [Source(f"source{n}", IN, self.partitions, self.batches) for n in range(random.choice((1, 2)))]
        self.count = 0
        self.topic_ids: dict[str, bytes] = {}

    # ---- what runs differ in

    def coordinator(self) -> GroupCoordinator | None:
        """The coordinator of the group, None while there is none."""
        raise NotImplementedError

    def log_end(self, partition: int) -> int:
        """The end of a partition of the input."""
        raise NotImplementedError

    def visible(self, topic: str) -> Counter[bytes]:
        """All values of a topic under read_committed."""
        raise NotImplementedError

    # ---- the run

    def begin(self) -> None:
        """Start the clients."""
        world, random = self.world, self.world.random
        for n in range(random.choice((1, 2, 3, 4))):
            name = f"member{n}"
            instance_id = name if self.protocol != BOTH and random.random() < 0.4 else None
            if instance_id is None and n:
                world.expendable.add(name)
            world.run_process(name, lambda process, instance_id=instance_id: self.start_member(process, instance_id))
        for source in self.sources:
            world.run_process(source.name, lambda process, source=source: process.spawn(source.run(process)))

    def sources_are_done(self) -> bool:
        """Whether all records are written."""
        return all(source.is_done for source in self.sources)

    def check_records(self) -> None:
        """Check at the end of a run that the group is stable, and has processed every record."""
        self.check_group()
        assert all(source.is_done for source in self.sources), "a source is not done"
        acknowledged = Counter(value for source in self.sources for value in source.acknowledged)
        visible = self.visible(IN)
        assert not acknowledged - visible, f"acknowledged but not in the log: {acknowledged - visible}"
        assert max(visible.values(), default=1) == 1, f"in the log twice: {visible}"
        groups = self.coordinator()
        assert groups is not None, "the coordinator is down"
        for partition in range(self.partitions):
            end = self.log_end(partition)
            committed = groups.offsets.store.get(GROUP, IN, partition)
            assert end == (0 if committed is None else committed.offset), (
                f"the group has not reached the end of partition {partition}: {committed}"
            )
        if self.is_exactly_once:
            copies = self.visible(OUT)
            self.ledger.records.check_end(copies)
            copied = originals(copies)
            assert copied == visible, f"copies without input {copied - visible}, input without copy {visible - copied}"
        else:
            missing = [value for value in visible if value not in self.ledger.processed]
            assert not missing, f"not processed: {missing}"

    def check_group(self) -> None:
        """Check that the group is stable."""
        if self.protocol == CLASSIC:
            self._check_classic_group()
        else:
            self._check_consumer_group()

    def _check_classic_group(self) -> None:
        """Check that the group is stable, and that its members are the running processes."""
        group = self._group()
        assert group.state is GroupState.STABLE, f"{group} is not stable"
        members = [process.member for process in self._members()]
        assert all(member.is_stable and member.epoch == group.generation for member in members), (
            "a member is still joining"
        )
        living = {member.member_id for member in members}
        assert set(group.members) == living, f"the members are {list(group.members)}, the running ones {living}"

    def _group(self) -> ClassicGroup | ConsumerGroup:
        coordinator = self.coordinator()
        assert coordinator is not None, "the coordinator is down"
        group = coordinator.groups.get(GROUP)
        assert group is not None, "there is no group"
        return group

    def _is_member(self, member_id: str) -> bool | None:
        """Whether the group has this member now; None while the coordinator is down."""
        coordinator = self.coordinator()
        if coordinator is None:
            return None
        group = coordinator.groups.get(GROUP)
        return group is not None and member_id in group.members

    def _check_consumer_group(self) -> None:
        """Check that the group is stable, and that its members are the running processes and have all partitions."""
        group = self._group()
        epoch = group.generation if isinstance(group, ClassicGroup) else group.epoch
        assert str(group.state) == "Stable", f"the group is stuck: {vars(group)}"
        members = [
            process.member
            for process in self._members()
            if not (
                getattr(process.member, "is_kept_out", False) and process.member.instance_id in group.static_members
            )
        ]
        assert all(member.is_stable and member.epoch == epoch for member in members), (
            "a member has not reached the group epoch"
        )
        living = {member.member_id for member in members}
        assert set(group.members) == living, f"the members are {list(group.members)}, the running ones {living}"
        owned = sorted(index for process in self._members() for index in process.member.assigned)
        assert owned == list(range(self.partitions)), f"the members have partitions {owned}"

    def _members(self) -> list[Process]:
        return [process for process in self.world.all_processes if hasattr(process, "member") and process.is_alive]

    # ---- members

    def new_member(self, process: Process, instance_id: str | None) -> Member:
        """A member of the protocol, or of one of the two at random."""
        if self.protocol == CONSUMER or (self.protocol == BOTH and self.world.random.random() < 0.5):
            return ConsumerMember(process, self.ledger, IN, self.topic_ids[IN], instance_id)
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
        response = yield from process.ask(request, member.commit_version, lane="group", may_outlive=False)
        if self.commits_may_be_late and (response is None or response.topics[0].partitions[0].error_code):
            self.ledger.may_come_late(offsets)
        if response is None:
            return False
        errors = {E(result.error_code) for result in response.topics[0].partitions}
        for partition in response.topics[0].partitions:
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
                if self.world.is_healed:  # as applications do: processes with one transactional id fence each other
                    process.exit()
                return False
            except Abortable:
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
        """Run one transaction; `who` has the member's id and epoch at the time it got its partitions."""
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
