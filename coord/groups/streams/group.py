"""A streams group: its topology, its members, its epochs, and the target assignment (KIP-1071).

Its state follows from its records and only replay changes it, except `passing`, which a new coordinator learns again
from heartbeats. Invariants: `epoch >= assignment_epoch`; a task has one runner, the member that has it assigned or has
to revoke it; `static_members` maps each instance id to the one member id that owns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from barnabas.coord.groups.group import STREAMS
from barnabas.coord.groups.modern.group import ModernGroup
from barnabas.coord.groups.streams import records
from barnabas.coord.groups.streams.member import StreamsMember
from barnabas.coord.groups.streams.states import StreamsGroupState
from barnabas.coord.groups.streams.tasks import Task, Tasks
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.coord.groups.streams.internal_topics import ConfiguredTopology
    from barnabas.coord.groups.streams.topology import Topology
    from barnabas.coord.machine import CoordinatorRecord
    from barnabas.wire.messages.groups.offsets import OffsetCommitRequest

NO_TOPOLOGY_EPOCH = -1

TaskOffsets = tuple[dict[Task, int], dict[Task, int]]
"""Of one member: the offsets that the state of its tasks has reached, and the end offsets of their changelogs."""


class Configured(NamedTuple):
    """A topology configured over the present topics."""

    topology: Topology
    metadata_hash: int
    over_topics: ConfiguredTopology


@dataclass(slots=True, eq=False)
class Passing:
    """The part of a group's state that no record contains; it is empty after loading."""

    configured: Configured | None = None
    """None: topics may have changed, it has to be computed again."""
    offsets: dict[str, TaskOffsets] = field(default_factory=dict)
    """By member."""
    endpoint_epoch: int = 0
    """Incremented when the tasks of a process with an endpoint change."""
    shutdown_requested_by: str | None = None
    """The member that has requested a shutdown of the application."""


class StreamsGroup(ModernGroup[StreamsMember, Tasks]):
    """One Kafka Streams application."""

    group_type: ClassVar[str] = STREAMS
    protocol_type: ClassVar[str] = STREAMS

    def __init__(self, group_id: str, passing: Passing | None = None) -> None:
        super().__init__(group_id)
        self.validated_topology_epoch = NO_TOPOLOGY_EPOCH
        """The epoch of the topology that was ready with the topics as of `epoch`; -1: none."""
        self.assignment_configs: Mapping[str, str] = {}
        """The configs that the assignment of `epoch` depends on."""
        self.topology: Topology | None = None
        self.runners: dict[Task, str] = {}
        """By task: the member that has it as an active task or has to revoke it."""
        self.copies: dict[Task, set[str]] = {}
        """By task: the members that have it as a standby or warm-up task or have to revoke it."""
        self.passing = passing or Passing()

    # ---- state

    @property
    def state(self) -> StreamsGroupState:
        """The state, derived from topology, epochs and members."""
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

    # ---- the interface of every group type, see `coord.groups.group`

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether tasks read `topic`."""
        return bool(self.members) and self.topology is not None and topic in self.topology.readers

    def _validate_earlier_epoch(self, request: OffsetCommitRequest, member: StreamsMember, error: ErrorCode) -> None:
        epoch = request.generation_id_or_member_epoch
        readers = {} if self.topology is None else self.topology.readers
        since = {(task.subtopology, task.partition): first for task, first in member.revoking.active.items()}
        since.update(((task.subtopology, task.partition), first) for task, first in member.assigned.active.items())
        for topic in request.topics:
            for partition in topic.partitions:
                first = since.get((readers.get(topic.name, ""), partition.partition_index))
                if first is None or epoch < first:
                    raise KafkaError(
                        error,
                        f"The task of {topic.name}-{partition.partition_index} was not assigned to member "
                        f"{member.member_id} in member epoch {epoch}.",
                    )

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that remove the group and its members."""
        removed: list[CoordinatorRecord] = []
        for member_id in self.members:
            removed += records.member_tombstones(self.group_id, member_id)
        return removed + records.group_tombstones(self.group_id)

    # ---- replay

    def remove_member(self, member_id: str) -> None:
        """Apply the tombstone of a member."""
        super().remove_member(member_id)
        self.passing.offsets.pop(member_id, None)
        if not self.members:
            self.passing.shutdown_requested_by = None

    def _count(self, member: StreamsMember) -> None:
        for held in (member.assigned, member.revoking):
            self.runners.update(dict.fromkeys(held.active, member.member_id))
            for task in held.tasks.copies:
                self.copies.setdefault(task, set()).add(member.member_id)

    def _discount(self, member: StreamsMember) -> None:
        for held in (member.assigned, member.revoking):
            for task in held.active:
                if self.runners.get(task) == member.member_id:
                    del self.runners[task]
            for task in held.tasks.copies:
                holders = self.copies.get(task, set())
                holders.discard(member.member_id)
                if not holders:
                    self.copies.pop(task, None)
