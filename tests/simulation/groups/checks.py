"""Compares the live group coordinator with a replay of `__consumer_offsets` after every turn.

There are two replays: by a second coordinator that only loads, and by `GroupLog`, which is independent. Offsets of a
transaction are valid from its commit marker on, unless there is a later commit (T5, T11); a Stable classic group equals
its last record (G2); in a consumer group no partition has two members, not even while it is being revoked (G3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups import records
from barnabas.coord.groups.classic.group import ClassicGroup
from barnabas.coord.groups.classic.states import GroupState
from barnabas.coord.groups.consumer.records import CURRENT_ASSIGNMENT
from barnabas.coord.machine import Moment
from barnabas.wire.messages.records import coordinator_records as r
from barnabas.wire.messages.records.coordinator_records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey
from tests.simulation.broker.partition_model import Batch, Marker

if TYPE_CHECKING:
    from barnabas.coord.groups.coordinator import GroupCoordinator
    from barnabas.wire.batches.records import Record

OffsetKey = tuple[str, str, int]


class Replayed:
    """A coordinator that only replays the log."""

    def __init__(self, loaded: GroupCoordinator, batches: list[Batch | Marker]) -> None:
        """`loaded` has replayed `batches`, all of the log so far."""
        self.coordinator = loaded
        self._read = len(batches)

    def read(self, batches: list[Batch | Marker], at: Moment) -> bool:
        """Replay new batches; whether there are any."""
        new = batches[self._read :]
        for batch in new:
            if isinstance(batch, Marker):
                self.coordinator.replay_end(batch.producer_id, at, commit=batch.is_commit)
                continue
            for record in batch.records:
                if batch.is_transactional:
                    self.coordinator.replay_pending(
                        batch.producer_id, record.key or b"", record.value, at, record.offset
                    )
                else:
                    self.coordinator.replay(record.key or b"", record.value, at, record.offset)
        self._read = len(batches)
        return bool(new)


class GroupLog:
    """The groups and offsets in the records of one partition."""

    def __init__(self) -> None:
        self.offsets: dict[OffsetKey, tuple[int, int]] = {}
        """Offset of the record in the log, and the committed offset."""
        self.groups: dict[str, GroupMetadataValue] = {}
        self._pending: dict[int, list[tuple[int, OffsetKey, int | None]]] = {}
        self._members: dict[str, dict[str, r.ConsumerGroupCurrentMemberAssignmentValue]] = {}
        self._read = 0

    def read(self, batches: list[Batch | Marker]) -> None:
        """Read new batches."""
        for batch in batches[self._read :]:
            if isinstance(batch, Marker):
                held = self._pending.pop(batch.producer_id, [])
                for at, key, offset in held if batch.is_commit else ():
                    if at > self.offsets.get(key, (-1, 0))[0]:
                        self._put(at, key, offset)
            else:
                self._take(batch)
        self._read = len(batches)

    def _take(self, batch: Batch) -> None:
        for record in batch.records:
            kind = int.from_bytes((record.key or b"")[:2], "big")
            if kind == CURRENT_ASSIGNMENT:
                self._take_assignment(record)
            if kind > records.GROUP_METADATA:
                continue
            about = records.read_key(record.key or b"")
            if isinstance(about, OffsetCommitKey):
                key = (about.group, about.topic, about.partition)
                offset = None if record.value is None else records.read_offset(record.value).offset
                if batch.is_transactional:
                    self._pending.setdefault(batch.producer_id, []).append((record.offset, key, offset))
                else:
                    self._put(record.offset, key, offset)
            elif isinstance(about, GroupMetadataKey):
                if record.value is None:
                    self.groups.pop(about.group, None)
                else:
                    self.groups[about.group] = records.read_group(record.value)

    def _take_assignment(self, record: Record) -> None:
        """The current assignment of a member of a consumer group."""
        key = r.ConsumerGroupCurrentMemberAssignmentKey.decode((record.key or b"")[2:], 0)
        members = self._members.setdefault(key.group_id, {})
        if record.value is None:
            members.pop(key.member_id, None)
        else:
            members[key.member_id] = r.ConsumerGroupCurrentMemberAssignmentValue.decode(record.value[2:], 0)

    def check_owners(self) -> None:
        """Check that no partition of a consumer group has two members."""
        for group_id, members in self._members.items():
            owners: dict[tuple[bytes, int], str] = {}
            for member_id, has in members.items():
                for topic in (*has.assigned_partitions, *has.partitions_pending_revocation):
                    for partition in topic.partitions:
                        owner = owners.setdefault((bytes(topic.topic_id), partition), member_id)
                        assert owner == member_id, (
                            f"{group_id}: partition {partition} is assigned to {owner} and to {member_id}"
                        )

    def _put(self, at: int, key: OffsetKey, offset: int | None) -> None:
        if offset is None:
            self.offsets.pop(key, None)
        else:
            self.offsets[key] = (at, offset)

    def check(self, live: GroupCoordinator) -> None:
        """Check that the live coordinator has the same offsets and groups."""
        for (group, topic, partition), (_, offset) in self.offsets.items():
            stored = live.offsets.store.get(group, topic, partition)
            assert stored is not None, f"{group} has lost its offset of {topic}-{partition}"
            assert stored.offset == offset, f"{group} has {stored.offset} of {topic}-{partition}, its log has {offset}"
        pending = sum(len(held) for held in self._pending.values())
        assert len(live.offsets.pending) == pending, (
            f"{len(live.offsets.pending)} offsets are pending, {pending} in the log"
        )
        for group_id, value in self.groups.items():
            self._check_group(live, group_id, value)

    @staticmethod
    def _check_group(live: GroupCoordinator, group_id: str, value: GroupMetadataValue) -> None:
        group = live.groups.get(group_id)
        if group is None or getattr(group, "state", None) is not GroupState.STABLE:
            return
        assert (group.generation, group.protocol, group.leader) == (value.generation, value.protocol, value.leader), (
            group
        )
        members = {member.member_id: (member.group_instance_id, bytes(member.assignment)) for member in value.members}
        live_members = {name: (member.instance_id, bytes(member.assignment)) for name, member in group.members.items()}
        assert live_members == members, f"{group} differs from its record"


def same_groups(live: GroupCoordinator, loaded: GroupCoordinator) -> None:
    """Check that two group coordinators have equal offsets, and equal groups in all that survives a restart."""
    assert live.offsets.store == loaded.offsets.store, "the offsets differ from the log"
    assert len(live.offsets.pending) == len(loaded.offsets.pending), "the pending offsets differ from the log"
    for group_id, group in live.groups.items():
        loaded_group = loaded.groups.get(group_id)
        assert loaded_group is not None, f"{group_id} is not in the log"
        assert type(group) is type(loaded_group), f"{group_id} is {group}, but {loaded_group} in the log"
        if isinstance(group, ClassicGroup):
            if group.state is GroupState.STABLE:
                assert _classic(group) == _classic(loaded_group), f"{group} differs from the log"
        else:
            here, there = (_durable(group_of_side) for group_of_side in (group, loaded_group))
            differing = {name: (here[name], there[name]) for name in here if here[name] != there[name]}
            assert not differing, f"{group_id} differs from the log: {differing}"


NOT_DURABLE = {"is_metadata_stale", "is_stale"}


def _durable(group: object) -> dict[str, object]:
    """The attributes of a group of the newer types that come from records."""
    return {name: plain(value) for name, value in vars(group).items() if name not in NOT_DURABLE}


def plain(value: object) -> object:
    """A comparable value: an object without `__eq__` is replaced by its attributes."""
    if type(value).__eq__ is not object.__eq__:
        return value
    slots = getattr(value, "__slots__", None)
    return {name: plain(getattr(value, name)) for name in (vars(value) if slots is None else slots)}


def _classic(group: ClassicGroup) -> tuple[object, ...]:
    members = {
        name: (member.instance_id, bytes(member.assignment), member.session_timeout_ms)
        for name, member in group.members.items()
    }
    return group.state, group.generation, group.protocol, group.leader, group.static_members, members
