"""ConsumerGroupHeartbeat: the steps of one request through a group (rule G3; KIP-848).

The steps: identify the member (fencing, static members); update its subscription and compare the topics with the topics
of the last heartbeat, which may bump the group epoch; compute a new target assignment if one is due; reconcile the
member with its target. The group is only read: each step adds its records, later steps work on the members and
assignments as they are with these records, and `Outcome` has whatever else the caller must do.
Source: Kafka 4.4 `GroupMetadataManager.consumerGroupHeartbeat`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.coord.groups.assignors import range as range_assignor
from barnabas.coord.groups.assignors import uniform
from barnabas.coord.groups.consumer import records
from barnabas.coord.groups.consumer.group import ConsumerGroup, most_preferred
from barnabas.coord.groups.consumer.member import ConsumerMember
from barnabas.coord.groups.consumer.reconciliation import reconciled
from barnabas.coord.groups.consumer.regex import compiled
from barnabas.coord.groups.consumer.target import Subscriptions, assign
from barnabas.coord.groups.modern.joining import Joining
from barnabas.coord.groups.modern.metadata_hash import group_hash
from barnabas.coord.groups.modern.partitions import Partitions, as_partitions
from barnabas.coord.groups.modern.records import target_records
from barnabas.coord.groups.modern.states import MEMBER_PREDECESSORS
from barnabas.coord.machine import check_transition

if TYPE_CHECKING:
    from barnabas.coord.groups.assignors.spec import Assignor
    from barnabas.coord.groups.consumer.records import ResolvedRegex
    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.settings import GroupSettings
    from barnabas.coord.groups.topics import Topics
    from barnabas.coord.machine import CoordinatorRecord, Moment
    from barnabas.wire.messages.groups.consumer_groups import ConsumerGroupHeartbeatRequest
    from barnabas.wire.messages.records.coordinator_records import ClassicMemberMetadata


CONSUMER_ASSIGNORS: dict[str, Assignor] = {uniform.NAME: uniform.assign, range_assignor.NAME: range_assignor.assign}
"""The assignors of consumer groups."""


@dataclass(slots=True, eq=False)
class Outcome:
    """The result of one heartbeat."""

    before: ConsumerMember
    """The member before the heartbeat."""
    member: ConsumerMember
    epoch: int = 0
    """The group epoch after the heartbeat."""
    is_assignment_delayed: bool = False
    """A new target assignment is due and is delayed by the assignment interval."""
    needs_resolving: bool = False
    """Members subscribe to regular expressions that are not resolved."""
    has_fresh_metadata: bool = False
    """The topics were compared with the group's metadata hash, and it still holds."""
    records: list[CoordinatorRecord] = field(default_factory=list)


class Heartbeat(Joining[ConsumerMember, Partitions]):
    """One heartbeat of a member that is in the group or joins it."""

    assigned_things = "partitions"

    def __init__(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        topics: Topics,
        settings: GroupSettings,
        default_assignor: str,
        at: Moment,
        classic: ClassicMemberMetadata | None = None,
    ) -> None:
        """`classic` is set for a member of the classic protocol, whose JoinGroup `request` stands for."""
        super().__init__(group, request, records, {})
        self._group = group
        self._request = request
        self._topics = topics
        self._settings = settings
        self._default_assignor = default_assignor
        self._at = at
        self._classic = classic
        self._owned = None if request.topic_partitions is None else as_partitions(request.topic_partitions)
        self._regexes: Mapping[str, ResolvedRegex] = group.regexes
        """The resolved regular expressions of the members."""

    def run(self, member_id: str, context: ClientContext) -> Outcome:
        """All steps. `member_id` is the request's, or a new one. KafkaError when the request is refused."""
        group = self._group
        before = self._known(member_id)
        outcome = Outcome(before, before)
        member = self._updated(before, context)
        is_new = before.member_id not in self._members
        has_other_topics = self._record_member(before, member)
        expressions = update_expressions(group, before, member)
        self.records += expressions.records
        self._regexes = expressions.regexes
        outcome.needs_resolving = expressions.needs_resolving
        if member != before or is_new:
            self._members = {**self._members, member.member_id: member}
            is_new |= most_preferred(self._members.values()) != group.preferred_assignor()
        self._bump_epoch(outcome, has_bump=is_new or has_other_topics or expressions.has_bump)
        target_epoch = self._target_assignment(outcome)
        has_new_subscription = has_other_topics or expressions.has_changed
        outcome.member = self._reconciled(member, target_epoch, changed=has_new_subscription)
        outcome.records = self.records
        return outcome

    # ---- identity

    def _owns_only_assigned(self, member: ConsumerMember) -> bool:
        return self._owned is not None and all(
            partitions.issubset(member.assigned.get(topic_id, ())) for topic_id, partitions in self._owned.items()
        )

    def _may_take_over(self, owner: ConsumerMember) -> bool:
        """The classic protocol lets a static member join again without having left."""
        return owner.speaks_classic or self._classic is not None

    # ---- subscription

    def _updated(self, member: ConsumerMember, context: ClientContext) -> ConsumerMember:
        """The member with what the request says; null means no change."""
        request = self._request
        topics = request.subscribed_topic_names
        fields: dict[str, Any] = {
            "instance_id": request.instance_id,
            "rack_id": request.rack_id,
            "rebalance_timeout_ms": None if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
            "subscribed_topics": None if topics is None else frozenset(topics),
            "assignor": request.server_assignor,
        }
        changes = {name: value for name, value in fields.items() if value is not None}
        if request.subscribed_topic_regex is not None:
            changes["subscribed_regex"] = request.subscribed_topic_regex or None
        return member._replace(
            **changes, client_id=context.client_id, client_host=context.client_host, classic=self._classic
        )

    def _record_member(self, before: ConsumerMember, member: ConsumerMember) -> bool:
        """Add the member's record if it has changed; whether it subscribes to other topic names."""
        if not member.has_metadata_of(before):
            self.records.append(records.member_metadata(self._group.group_id, member))
        return member.subscribed_topics != before.subscribed_topics

    # ---- epochs

    def _bump_epoch(self, outcome: Outcome, *, has_bump: bool) -> None:
        """Bump the group epoch when members, subscriptions or topics have changed."""
        group = self._group
        outcome.epoch = group.epoch
        if not (has_bump or group.is_metadata_stale):
            return
        if group.has_partition_metadata:
            self.records.append(records.partition_metadata_tombstone(group.group_id))
        names: set[str] = set().union(*(member.subscribed_topics for member in self._members.values()))
        names.update(*(resolved.topics for resolved in self._regexes.values()))
        metadata_hash = group_hash(names, self._topics)
        if not has_bump and metadata_hash == group.metadata_hash:
            outcome.has_fresh_metadata = True
            return
        outcome.epoch = group.epoch + 1
        self.records.append(records.group_epoch(group.group_id, outcome.epoch, metadata_hash))

    def _target_assignment(self, outcome: Outcome) -> int:
        """Compute a new target assignment if it is due and not delayed; the epoch of the target assignment."""
        group, epoch = self._group, outcome.epoch
        if epoch <= group.assignment_epoch:
            return group.assignment_epoch
        interval_ms = self._settings.consumer_assignment_interval_ms
        since_ms = group.assignment_timestamp_ms
        if since_ms and interval_ms and since_ms <= self._at.now_ms < since_ms + interval_ms:
            outcome.is_assignment_delayed = True
            return group.assignment_epoch
        assignor = most_preferred(self._members.values())
        if assignor not in CONSUMER_ASSIGNORS:  # no member prefers one, or a record names one that is not here
            assignor = self._default_assignor
        subscriptions = Subscriptions(self._topics, self._regexes)
        target = assign(self._members.values(), self._target, subscriptions, CONSUMER_ASSIGNORS[assignor])
        self.records += target_records(records, group.group_id, self._target, target, epoch, self._at)
        self._target = target
        return epoch

    # ---- reconciliation

    def _reconciled(self, member: ConsumerMember, epoch: int, *, changed: bool) -> ConsumerMember:
        if not changed and member.is_reconciled_to(epoch):
            return member
        group = self._group
        free_too = {member.member_id, self._replaced}

        def is_free(topic_id: bytes, partition: int) -> bool:
            owner = group.owners.get(topic_id, {}).get(partition)
            return owner is None or owner in free_too

        updated = reconciled(
            member,
            epoch,
            self._target.get(member.member_id, {}),
            is_free,
            subscribed=Subscriptions(self._topics, self._regexes).ids(member),
            owned=self._owned,
        )
        if updated.state is not member.state:
            check_transition(MEMBER_PREDECESSORS, member.state, updated.state)
        if updated != member:
            self.records.append(records.current_assignment(group.group_id, updated))
        return updated


class ExpressionUpdate(NamedTuple):
    """The group's regular expressions after a heartbeat."""

    regexes: Mapping[str, ResolvedRegex]
    """The expressions that are resolved."""
    has_changed: bool = False
    """Whether the member subscribes to another expression."""
    has_bump: bool = False
    """Whether the member's topics have changed with it: the new expression is resolved, or there is none."""
    needs_resolving: bool = False
    """Whether expressions are not resolved yet."""
    records: tuple[CoordinatorRecord, ...] = ()


def update_expressions(group: ConsumerGroup, before: ConsumerMember, member: ConsumerMember) -> ExpressionUpdate:
    """Update the expressions when a member changes its own. KafkaError INVALID_REGULAR_EXPRESSION.

    For a static member that has joined with a new id, `before` has the metadata of the member that it replaces.
    """
    old, new = before.subscribed_regex, member.subscribed_regex
    if new == old:
        return ExpressionUpdate(group.regexes, needs_resolving=bool(group.unresolved_regexes))
    if new and new not in group.regex_counts:
        compiled(new)
    given_up = {old} if old and group.regex_counts[old] <= 1 else set()
    dropped = (group.unused_regexes | given_up) - {new}
    regexes: Mapping[str, ResolvedRegex] = group.regexes
    tombstones: list[CoordinatorRecord] = []
    if dropped:
        regexes = {regex: resolved for regex, resolved in group.regexes.items() if regex not in dropped}
        tombstones = [records.regex_tombstone(group.group_id, regex) for regex in group.regexes if regex in dropped]
    is_resolved = not new or new in group.regexes
    return ExpressionUpdate(
        regexes,
        has_changed=True,
        has_bump=is_resolved,
        needs_resolving=not (is_resolved and group.unresolved_regexes <= given_up),
        records=tuple(tombstones),
    )
