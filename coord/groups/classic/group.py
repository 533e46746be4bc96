"""A classic group: its members, its generation and its leader (rule G1; KIP-62, KIP-345, KIP-394).

The group has the state; `Membership` handles the requests, and `Rebalance` the timers. Invariants:
`leader` is a member whenever there are members; `protocols` counts how many members support each protocol;
`static_members` maps each instance id to the one member id that owns it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, ClassVar

from barnabas.coord.groups import records
from barnabas.coord.groups.classic.member import NO_ASSIGNMENT, ClassicMember
from barnabas.coord.groups.classic.states import PREDECESSORS, GroupState
from barnabas.coord.groups.classic.subscription import CONSUMER, topics_in
from barnabas.coord.groups.group import CLASSIC
from barnabas.coord.machine import check_transition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.records.coordinator_records import GroupMetadataValue, MemberMetadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from barnabas.coord.machine import CoordinatorRecord, Moment, Ticket
    from barnabas.wire.messages.groups.offsets import OffsetCommitRequest


class ClassicGroup:
    """One group, in which the leader makes the assignment."""

    group_type: ClassVar[str] = CLASSIC

    def __init__(self, group_id: str, at: Moment | None = None) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.previous_state = GroupState.DEAD
        self.state_since_ms = at.now_ms if at is not None else -1
        """Wall clock of the last transition; -1 if an old record does not have it."""
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.has_to_rebalance = False
        """Its record has no leader: it was converted to a classic group and has not made an assignment since."""
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        self.protocols: Counter[str] = Counter()
        self.pending_joins: set[str] = set()
        """Member ids sent with MEMBER_ID_REQUIRED that have not been used to join yet."""
        self.pending_syncs: dict[str, None] = {}
        """Members of this generation that have not sent SyncGroup yet, in the order they joined."""
        self.subscribed: frozenset[str] | None = None
        """The topics the members subscribe to; None when their metadata does not contain them."""
        self.initial_delay_left_ms = 0
        """How much longer the first rebalance may be delayed while new members join."""
        self.member_came_during_delay = False

    # ---- members

    def add(self, member: ClassicMember, ticket: Ticket | None) -> None:
        """Add a member with its parked JoinGroup (at load: None). The first member is the leader."""
        if member.instance_id is not None:
            assert member.instance_id not in self.static_members, "an instance id has one owner"
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count(member, 1)
        member.join_ticket = ticket
        self.pending_joins.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member or pending member. The oldest of the others succeeds a leader."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member, -1)
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_joins.discard(member_id)
        self.pending_syncs.pop(member_id, None)

    def update(
        self,
        member: ClassicMember,
        protocols: Sequence[tuple[str, bytes]],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        """Update a member that joins again."""
        self._count(member, -1)
        member.protocols = list(protocols)
        self._count(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def replace_static(self, old_id: str, new_id: str) -> ClassicMember:
        """Change the member id of a static member, which stays leader and keeps its assignment."""
        member = self.members[old_id]
        assert member.instance_id is not None
        self.members = {new_id if key == old_id else key: value for key, value in self.members.items()}
        member.member_id = new_id
        self.static_members[member.instance_id] = new_id
        self.pending_syncs.pop(old_id, None)
        if self.leader == old_id:
            self.leader = new_id
        return member

    def validate(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """The member that sent a request. KafkaError UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID."""
        if instance_id is not None:
            owner = self.static_members.get(instance_id)
            if owner is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if owner != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def awaiting_join(self) -> Iterator[ClassicMember]:
        """Members whose JoinGroup is parked, in the order they joined the group."""
        return (member for member in self.members.values() if member.join_ticket is not None)

    @property
    def all_have_joined(self) -> bool:
        """Whether every member has a parked JoinGroup and no member id is pending."""
        return not self.pending_joins and all(member.join_ticket is not None for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The largest rebalance timeout of the members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # ---- protocol

    def supports(self, protocol_type: str, protocols: Iterable[tuple[str, bytes]]) -> bool:
        """Whether a member with these protocols may join: same type, and one protocol that every member has."""
        names = [name for name, _ in protocols]
        if self.state is GroupState.EMPTY:
            return bool(protocol_type and names)
        everyone = len(self.members)
        return self.protocol_type == protocol_type and any(self.protocols[name] == everyone for name in names)

    def select_protocol(self) -> str:
        """The protocol of the next generation: all members support it, and most of them prefer it."""
        everyone = len(self.members)
        candidates = {name for name, supporters in self.protocols.items() if supporters == everyone}
        if len(candidates) == 1:
            return candidates.pop()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def read_subscriptions(self) -> None:
        """Set `subscribed` from the members' metadata for the selected protocol."""
        self.subscribed = None
        if self.protocol_type != CONSUMER:
            return
        if not self.members:
            self.subscribed = frozenset()
        elif self.protocol is not None:
            self.subscribed = topics_in(member.metadata(self.protocol) for member in self.members.values())

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether members subscribe to `topic`; True for a consumer group whose subscriptions cannot be read."""
        if self.subscribed is not None:
            return topic in self.subscribed
        return self.protocol_type == CONSUMER

    # ---- the interface of every group type, see `coord.groups.group`

    @property
    def is_empty(self) -> bool:
        """Whether there are no members."""
        return self.state is GroupState.EMPTY

    def validate_commit(self, request: OffsetCommitRequest, api_version: int, *, is_transactional: bool) -> None:  # noqa: ARG002
        """KafkaError unless a member of this generation commits, or no member. Errors of each state: `states.py`."""
        generation = request.generation_id_or_member_epoch
        if self.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation < 0 and self.state is GroupState.EMPTY:
            return
        if is_transactional and generation < 0 and not (request.member_id or request.group_instance_id):
            return  # clients before KIP-447 send no member id
        self.validate(request.member_id, request.group_instance_id)
        if generation != self.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if self.state is GroupState.COMPLETING_REBALANCE and not is_transactional:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def validate_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Everyone may read the offsets of a classic group."""

    def validate_offset_delete(self) -> None:
        """KafkaError unless subscriptions are known by topic (protocol type `consumer`) or the group is empty."""
        if self.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        if not self.is_empty and self.protocol_type != CONSUMER:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def validate_delete(self) -> None:
        """KafkaError unless the group is empty."""
        if self.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        if not self.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def tombstones(self) -> list[CoordinatorRecord]:
        """The tombstone of its one record."""
        return [records.group_tombstone(self.group_id)]

    # ---- generations

    def elect_joined_leader(self) -> bool:
        """Make a member that has joined the leader, if the leader has not. False if no member has joined."""
        if self.leader is None:
            return False
        if self.members[self.leader].join_ticket is not None:
            return True
        joined = next(self.awaiting_join(), None)
        if joined is None:
            return False
        self.leader = joined.member_id
        return True

    def next_generation(self, at: Moment) -> None:
        """End the join phase: start a new generation with these members, or become empty."""
        self.generation += 1
        self.protocol = self.select_protocol() if self.members else None
        self.read_subscriptions()
        self.become(GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, at)
        self.pending_syncs.clear()

    def become(self, state: GroupState, at: Moment) -> None:
        """Change the state. AssertionError if the table of transitions does not allow it."""
        check_transition(PREDECESSORS, self.state, state)
        self.previous_state = self.state
        self.state = state
        self.state_since_ms = at.now_ms

    @property
    def can_rebalance(self) -> bool:
        """Whether the state may change to PreparingRebalance."""
        return self.state in PREDECESSORS[GroupState.PREPARING_REBALANCE]

    # ---- records

    def to_record(self, assignments: dict[str, bytes]) -> GroupMetadataValue:
        """The value of the group's record, with these assignments by member id."""
        protocol = self.protocol
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=protocol,
            leader=self.leader,
            current_state_timestamp=self.state_since_ms,
            members=[
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(protocol or ""),
                    assignment=assignments.get(member.member_id, NO_ASSIGNMENT),
                )
                for member in self.members.values()
            ],
        )

    def apply(self, value: GroupMetadataValue, at: Moment) -> None:
        """Apply a record of this group after loading: the generation that waits for it becomes Stable.

        A record of an earlier generation, after which another rebalance has begun, changes nothing.
        """
        if self.state is not GroupState.COMPLETING_REBALANCE or value.generation != self.generation:
            return
        for recorded in value.members:
            member = self.members.get(recorded.member_id)
            if member is not None:
                member.assignment = bytes(recorded.assignment)
        self.become(GroupState.STABLE, at)

    @classmethod
    def from_record(cls, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        """The group of a record: Stable with its members, or Empty."""
        group = cls(group_id)
        group.state = GroupState.STABLE if value.members else GroupState.EMPTY
        group.state_since_ms = value.current_state_timestamp
        group.generation = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol = value.protocol
        group.leader = value.leader
        for recorded in value.members:
            rebalance_timeout_ms = (
                recorded.rebalance_timeout if recorded.rebalance_timeout >= 0 else recorded.session_timeout
            )
            member = ClassicMember(
                recorded.member_id,
                recorded.group_instance_id,
                client_id=recorded.client_id,
                client_host=recorded.client_host,
                rebalance_timeout_ms=rebalance_timeout_ms,
                session_timeout_ms=recorded.session_timeout,
                protocols=[(value.protocol or "", bytes(recorded.subscription))],
            )
            member.assignment = bytes(recorded.assignment)
            group.add(member, None)
        if group.leader not in group.members:
            group.leader = next(iter(group.members), None)
        group.has_to_rebalance = value.leader is None and bool(group.members)
        group.read_subscriptions()
        return group

    def _count(self, member: ClassicMember, step: int) -> None:
        for name in member.protocol_names():
            self.protocols[name] += step
            if not self.protocols[name]:
                del self.protocols[name]

    def __repr__(self) -> str:
        return f"<ClassicGroup {self.group_id!r} {self.state} generation {self.generation} {len(self.members)} members>"
