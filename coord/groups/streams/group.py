"""A streams group: its topology, its members, its epochs, and what each member shall have (KIP-1071).

It is exactly what its records say: only the replay methods change it, and `passing`, which holds what a new coordinator
learns again from heartbeats. Invariants: `epoch >= assignment_epoch`; a task has one runner, the member that has it
assigned or still gives it up; `static_members` maps each instance id to the one member id that owns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from coord.groups.group import STREAMS
from coord.groups.streams import records
from coord.groups.streams.states import StreamsGroupState
from wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from coord.groups.streams.internal_topics import ConfiguredTopology
    from coord.groups.streams.member import StreamsMember
    from coord.groups.streams.tasks import Task, Tasks
    from coord.groups.streams.topology import Topology
    from coord.machine import CoordinatorRecord
    from wire.messages.offsets import OffsetCommitRequest

FIRST_EPOCH = 1
"""Of a group without members, and of its target assignment: a member's first epoch is never the joining one, 0."""
NO_TOPOLOGY_EPOCH = -1
MEMBER_EPOCH_SINCE = 9
"""OffsetCommit versions from here on carry a member epoch."""
STALE_EPOCH_IN_TRANSACTION_SINCE = 6
"""TxnOffsetCommit versions from here on know STALE_MEMBER_EPOCH."""


class Configured(NamedTuple):
    """A topology as the topics of now let it be."""

    topology: Topology
    metadata_hash: int
    over_topics: ConfiguredTopology


class Passing:
    """What no record says of a group; a coordinator that has just loaded it begins with this."""

    def __init__(self) -> None:
        self.configured: Configured | None = None
        """None: topics may have changed, look again."""
        self.offsets: dict[str, tuple[dict[Task, int], dict[Task, int]]] = {}
        """By member: how far its copies of state are, and how far their changelogs go."""
        self.endpoint_epoch = 0
        """Grows whenever a process that answers queries has other tasks."""
        self.shutdown_requested_by: str | None = None
        """The member that asks the whole application to stop."""


class StreamsGroup:
    """One Kafka Streams application."""

    group_type: ClassVar[str] = STREAMS
    protocol_type: ClassVar[str] = STREAMS

    def __init__(self, group_id: str, passing: Passing | None = None) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        """Of the topics that the topology needs, as of `epoch`."""
        self.validated_topology_epoch = NO_TOPOLOGY_EPOCH
        """The topology that the topics fitted as of `epoch`; -1: they fitted none."""
        self.assignment_configs: Mapping[str, str] = {}
        """The configs that the assignment of `epoch` depends on."""
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        """When the target assignment was computed; 0: the next one need not wait."""
        self.topology: Topology | None = None
        self.members: dict[str, StreamsMember] = {}
        self.static_members: dict[str, str] = {}
        self.target: dict[str, Tasks] = {}
        """What each member shall have, as of `assignment_epoch`."""
        self.runners: dict[Task, str] = {}
        """Who runs a task, or has not given it up yet."""
        self.copies: dict[Task, set[str]] = {}
        """Who keeps the state of a task, or has not given it up yet."""
        self.is_dead = False
        self.passing = passing or Passing()

    # ---- what it is

    @property
    def state(self) -> StreamsGroupState:
        """Where the group stands."""
        if self.is_dead:
            return StreamsGroupState.DEAD
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    @property
    def is_empty(self) -> bool:
        """Whether nobody is in it."""
        return not self.members

    def member(self, member_id: str) -> StreamsMember:
        """The member of this id; KafkaError UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def static_member(self, instance_id: str) -> StreamsMember | None:
        """The member that owns this instance id."""
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    # ---- what the coordinator asks of a group of any type, see `coord.groups.group`

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether tasks read the topic."""
        return bool(self.members) and self.topology is not None and topic in self.topology.readers

    def validate_commit(self, request: OffsetCommitRequest, api_version: int, *, is_transactional: bool) -> None:
        """Of a member in its epoch, or of an earlier one for tasks it has had since (KIP-1251)."""
        epoch = request.generation_id_or_member_epoch
        tells_nobody = epoch == -1 and not request.member_id and request.group_instance_id is None
        if epoch < 0 and (not self.members or (is_transactional and tells_nobody)):
            return
        member = self.member(request.member_id)
        if not is_transactional and api_version < MEMBER_EPOCH_SINCE:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Members of the streams protocol commit with OffsetCommit {MEMBER_EPOCH_SINCE} or later.",
            )
        if epoch != member.epoch:
            knows = not is_transactional or api_version >= STALE_EPOCH_IN_TRANSACTION_SINCE
            error = ErrorCode.STALE_MEMBER_EPOCH if knows else ErrorCode.ILLEGAL_GENERATION
            self._validate_earlier_epoch(request, member, error)

    def _validate_earlier_epoch(self, request: OffsetCommitRequest, member: StreamsMember, error: ErrorCode) -> None:
        epoch = request.generation_id_or_member_epoch
        if epoch > member.epoch:
            raise KafkaError(error, f"Member epoch {epoch} is ahead of the member's, {member.epoch}.")
        readers = {} if self.topology is None else self.topology.readers
        since = {(task.subtopology, task.partition): first for task, first in member.revoking.active.items()}
        since.update(((task.subtopology, task.partition), first) for task, first in member.assigned.active.items())
        for topic in request.topics:
            for partition in topic.partitions:
                first = since.get((readers.get(topic.name, ""), partition.partition_index))
                if first is None or epoch < first:
                    raise KafkaError(
                        error,
                        f"In member epoch {epoch} the task of {topic.name}-{partition.partition_index} "
                        f"did not belong to {member.member_id}.",
                    )

    def validate_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """A member asks in its epoch; who tells no member sees all."""
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.epoch:
            raise KafkaError(
                ErrorCode.STALE_MEMBER_EPOCH, f"Member epoch {member_epoch} is not the member's, {member.epoch}."
            )

    def validate_offset_delete(self) -> None:
        """Always: what tasks read is known topic by topic."""

    def validate_delete(self) -> None:
        """Only an empty group."""
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that remove the group and whoever is in it."""
        removed: list[CoordinatorRecord] = []
        for member_id in self.members:
            removed += records.member_tombstones(self.group_id, member_id)
        return removed + records.group_tombstones(self.group_id)

    # ---- replay

    def put_member(self, member: StreamsMember) -> None:
        """What a member says of itself, or how far its assignment has come, is in the log."""
        before = self.members.get(member.member_id)
        if before is not None:
            self._forget(before)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        for held in (member.assigned, member.revoking):
            self.runners.update(dict.fromkeys(held.active, member.member_id))
            for task in held.tasks.copies:
                self.copies.setdefault(task, set()).add(member.member_id)

    def remove_member(self, member_id: str) -> None:
        """The tombstone of a member is in the log."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._forget(member)
        self.target.pop(member_id, None)
        self.passing.offsets.pop(member_id, None)
        if not self.members:
            self.passing.shutdown_requested_by = None

    def _forget(self, member: StreamsMember) -> None:
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member.member_id:
            del self.static_members[member.instance_id]
        for held in (member.assigned, member.revoking):
            for task in held.active:
                if self.runners.get(task) == member.member_id:
                    del self.runners[task]
            for task in held.tasks.copies:
                holders = self.copies.get(task, set())
                holders.discard(member.member_id)
                if not holders:
                    self.copies.pop(task, None)

    def __repr__(self) -> str:
        return f"<StreamsGroup {self.group_id!r} {self.state} epoch {self.epoch} {len(self.members)} members>"
