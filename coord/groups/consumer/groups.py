"""All consumer groups of one coordinator: their requests, records and timers (rules G3, G4; KIP-848).

A heartbeat's way is in `heartbeat.py`. Every member has a session; one that has been told to give up partitions has its
rebalance timeout too. Members come back after `consumer.heartbeat.interval.ms`, and sooner while their group is moving:
a group that forms settles in a second or two and not after several intervals. Source: Kafka 4.4 `GroupMetadataManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, ClassVar

from barnabas.coord.groups.classic.group import ClassicGroup
from barnabas.coord.groups.consumer import records
from barnabas.coord.groups.consumer.classic_members import ClassicMembers
from barnabas.coord.groups.consumer.describe import describe_group
from barnabas.coord.groups.consumer.group import ConsumerGroup
from barnabas.coord.groups.consumer.heartbeat import Heartbeat, Outcome
from barnabas.coord.groups.consumer.member import ConsumerMember
from barnabas.coord.groups.consumer.migration import Migration
from barnabas.coord.groups.consumer.regular_expressions import RegularExpressions
from barnabas.coord.groups.consumer.replay import put, remove
from barnabas.coord.groups.consumer.requests import check_heartbeat
from barnabas.coord.groups.consumer.states import MemberState
from barnabas.coord.groups.consumer.timers import KINDS, ConsumerTimer
from barnabas.coord.groups.modern.groups import ModernGroups, is_simple
from barnabas.coord.groups.modern.members import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from barnabas.coord.groups.modern.metadata_hash import group_hash
from barnabas.coord.groups.modern.partitions import as_list
from barnabas.coord.machine import Moment, Result
from barnabas.coord.timers import Timers
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_groups import (
    ConsumerGroupDescribeResponseDescribedGroup,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

if TYPE_CHECKING:
    from barnabas.coord.groups.classic.rebalance import Rebalance
    from barnabas.coord.groups.config import GroupConfig
    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.group import Group
    from barnabas.coord.groups.settings import GroupConfigs
    from barnabas.coord.groups.topics import Topics
    from barnabas.coord.machine import Ticket
    from barnabas.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest
    from barnabas.wire.messages.coordinator_records import ClassicMemberMetadata

logger = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")

_OWED = {"consumer-rebalance": "give up partitions", "consumer-join": "join again", "consumer-sync": "sync"}
"""What a member that is late has not done."""


class ConsumerGroups(ModernGroups[ConsumerGroup]):
    """The consumer protocol's side of one coordinator."""

    timer_key: ClassVar[type] = ConsumerTimer

    def __init__(
        self,
        groups: dict[str, Group],
        timers: Timers,
        topics: Topics,
        config: GroupConfig,
        group_configs: GroupConfigs,
        new_id: Callable[[], str],
        rebalance: Rebalance,
    ) -> None:
        """`rebalance` is what goes on with groups that become classic ones."""
        super().__init__(groups, ConsumerGroup)
        self._timers = timers
        self._topics = topics
        self._config = config
        self._settings = group_configs
        self._new_id = new_id
        self._expressions = RegularExpressions(topics)
        self._migration = Migration(groups, topics, config, rebalance, self._start_timers, self.forget)
        self.classic_members = ClassicMembers(self, self._migration, timers, topics, config, new_id)
        """What members of the classic protocol ask of consumer groups."""

    # ---- requests

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, ticket: Ticket, context: ClientContext, at: Moment
    ) -> Result:
        """ConsumerGroupHeartbeat: always answered now."""
        result = Result()
        try:
            check_heartbeat(request, context.api_version, self._config.consumer_assignors)
            if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
                answer = self._leave(request, at, result)
            else:
                answer = self._heartbeat(request, context, at, result)
        except KafkaError as refused:
            result = Result()
            answer = _refusal(refused.code, refused.message)
        result.reply(ticket, answer, _refusal)
        return result

    def _heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, context: ClientContext, at: Moment, result: Result
    ) -> ConsumerGroupHeartbeatResponse:
        group = self._joined_group(request, result)
        self.check_room(group, request.instance_id, request.member_id)
        member_id = request.member_id or self._new_id()
        outcome = self.advance(group, request, member_id, None, context, at, result)
        before = self._groups.get(group.group_id)
        if isinstance(before, ClassicGroup) and not before.is_empty:
            self._migration.finish_upgrade(before, group, at, result)
        member = outcome.member
        return ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._interval_ms(group, outcome, at),
            assignment=_assignment(member) if _is_owed(request, outcome) else None,
        )

    def advance(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        member_id: str,
        classic: ClassicMemberMetadata | None,
        context: ClientContext,
        at: Moment,
        result: Result,
    ) -> Outcome:
        """Let a member say what it has to say and take a step towards its target; `member_id` may be a new one."""
        settings = self._settings(group.group_id)
        default_assignor = self._config.consumer_assignors[0]
        heartbeat = Heartbeat(group, request, self._topics, settings, default_assignor, at, classic)
        outcome = heartbeat.run(member_id, context, self._expressions)
        result.records += outcome.records
        self.renew_session(group.group_id, outcome.member, at)
        self._time_revocation(group.group_id, outcome, at)
        if outcome.epoch != group.epoch:
            self._moved_at[group.group_id] = at.now
        return outcome

    def _converted(self, group: Group, result: Result) -> ConsumerGroup:
        if isinstance(group, ClassicGroup):
            return self._migration.upgraded(group, result)
        return super()._converted(group, result)

    def check_room(self, group: ConsumerGroup, instance_id: str | None, member_id: str) -> None:
        """KafkaError GROUP_MAX_SIZE_REACHED when a member would be one too many."""
        self._check_room(group, instance_id, member_id, self._config.consumer_max_size)

    def _interval_ms(self, group: ConsumerGroup, outcome: Outcome, at: Moment) -> int:
        is_moving = outcome.is_assignment_due or outcome.member.state is not MemberState.STABLE
        usual_ms = self._settings(group.group_id).consumer_heartbeat_interval_ms
        return self._next_heartbeat_ms(group, usual_ms, at, is_moving=is_moving)

    def _leave(
        self, request: ConsumerGroupHeartbeatRequest, at: Moment, result: Result
    ) -> ConsumerGroupHeartbeatResponse:
        """A member says goodbye: for good, or, a static one, for a while."""
        group = self._existing(request.group_id)
        member_id = request.member_id
        member: ConsumerMember = self._leaving(group, request)
        if request.instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH:
            logger.info("[GroupId %s] Static member %s left for a while", group.group_id, member_id)
            result.records.append(records.current_assignment(group.group_id, away(member)))
            self._timers.cancel(ConsumerTimer("consumer-rebalance", group.group_id, member_id))
        else:
            logger.info("[GroupId %s] Member %s left the consumer group", group.group_id, member_id)
            self.remove(group, [member], at, result)
        return ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)

    def describe(self, group_id: str) -> ConsumerGroupDescribeResponseDescribedGroup:
        """ConsumerGroupDescribe of one group. KafkaError GROUP_ID_NOT_FOUND, also for groups of other types."""
        return describe_group(self._existing(group_id), self._topics, self._config.consumer_assignors[0])

    # ---- members go

    def remove(self, group: ConsumerGroup, leaving: Sequence[ConsumerMember], at: Moment, result: Result) -> None:
        """Take members out: what they had is free, and the group gets a new epoch, or becomes a classic one."""
        group_id = group.group_id
        gone = {member.member_id for member in leaving}
        left = {member_id: member for member_id, member in group.members.items() if member_id not in gone}
        if self._migration.may_downgrade(group, left):
            self._migration.downgrade(group, left, group.target, at, result, has_to_rebalance=True)
            return
        for member in leaving:
            result.records += records.member_tombstones(group_id, member.member_id)
            self._cancel(group_id, member.member_id)
        wanted = {member.subscribed_regex for member in left.values()}
        regexes = {regex: resolved for regex, resolved in group.regexes.items() if regex in wanted}
        result.records += [records.regex_tombstone(group_id, regex) for regex in group.regexes if regex not in wanted]
        names: set[str] = set().union(*(other.subscribed_topics for other in left.values()))
        names.update(*(resolved.topics for resolved in regexes.values()))
        metadata_hash = group_hash(names, self._topics)
        result.records.append(records.group_epoch(group_id, group.epoch + 1, metadata_hash))
        if not left:  # who comes next need not wait for the assignment interval
            result.records.append(records.target_epoch(group_id, group.epoch + 1, 0))

        def still_there(later: Moment) -> Result:
            for member in leaving:
                self.renew_session(group_id, member, later)
            return Result()

        result.on_failure(still_there)

    def _fence(self, group: ConsumerGroup, member: ConsumerMember, reason: str, at: Moment, result: Result) -> None:
        logger.info("[GroupId %s] Member %s fenced from the group because %s", group.group_id, member.member_id, reason)
        self.remove(group, [member], at, result)
        self._moved_at[group.group_id] = at.now

    # ---- time

    def renew_session(self, group_id: str, member: ConsumerMember, at: Moment) -> None:
        """The member was heard of. Who speaks classic has chosen its session timeout itself."""
        if member.classic is None:
            timeout_ms = self._settings(group_id).consumer_session_timeout_ms
        else:
            timeout_ms = member.classic.session_timeout_ms
        self._timers.set(ConsumerTimer("consumer-session", group_id, member.member_id), at.now + timeout_ms / 1000)

    def _time_revocation(self, group_id: str, outcome: Outcome, at: Moment) -> None:
        """A member that has just been told to give up partitions has its rebalance timeout to do so."""
        member = outcome.member
        key = ConsumerTimer("consumer-rebalance", group_id, member.member_id)
        if member.state is not MemberState.UNREVOKED_PARTITIONS or member.speaks_classic:
            self._timers.cancel(key)
        elif member.revoking != outcome.before.revoking or self._timers.deadline(key) is None:
            self._timers.set(key, at.now + member.rebalance_timeout_ms / 1000)

    def _cancel(self, group_id: str, member_id: str) -> None:
        for kind in KINDS:
            self._timers.cancel(ConsumerTimer(kind, group_id, member_id))

    def _start_timers(self, group: ConsumerGroup, at: Moment) -> None:
        for member in group.members.values():
            self.renew_session(group.group_id, member, at)
            self._time_revocation(group.group_id, Outcome(member, member, group.epoch, is_due=False), at)

    def loaded(self, at: Moment, result: Result) -> None:  # noqa: ARG002 - the shape of every group type
        """Sessions and the time to give up partitions start anew."""
        for group in self._mine():
            self._start_timers(group, at)

    def due(self, key: ConsumerTimer, at: Moment, result: Result) -> None:
        """A member has not done in time what it had to do: it is out."""
        group = self._groups.get(key.group_id)
        member = group.members.get(key.member_id) if isinstance(group, ConsumerGroup) else None
        if member is None or not isinstance(group, ConsumerGroup):
            return
        if key.kind == "consumer-session":
            self._fence(group, member, "its session expired", at, result)
        elif key.kind != "consumer-rebalance" or member.state is MemberState.UNREVOKED_PARTITIONS:
            reason = f"it did not {_OWED[key.kind]} within {member.rebalance_timeout_ms} ms"
            self._fence(group, member, reason, at, result)

    def forget(self, group_id: str) -> None:
        """Cancel every timer of a group that goes away."""
        self._moved_at.pop(group_id, None)
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            for member_id in group.members:
                self._cancel(group_id, member_id)

    # ---- topics

    def metadata_changed(self, topics: Collection[str], at: Moment, result: Result) -> None:  # noqa: ARG002
        """Topics have changed: the next heartbeat of a group that may read one of them looks again."""
        for group in self._mine():
            if group.changed_topics is not None:
                if group.regex_counts:
                    group.changed_topics.update(topics)
                else:
                    group.changed_topics.update(topic for topic in topics if topic in group.topic_counts)

    # ---- replay

    def replay(self, record_type: int, key: bytes, value: bytes | None, at: Moment) -> None:  # noqa: ARG002
        """A record of a consumer group is in the log. Any may be the first of its group in a log that was compacted."""
        group_id, about = records.read_key(record_type, key)
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            if value is None or (group is not None and not is_simple(group)):
                return
            group = self._groups[group_id] = ConsumerGroup(group_id)
        if value is not None:
            put(group, record_type, about, records.read_value(record_type, value))
            return
        remove(group, record_type, about)
        if group.is_dead:
            self.forget(group_id)
            del self._groups[group_id]


def away(member: ConsumerMember) -> ConsumerMember:
    """A static member that has left for a while: what it had waits for it, from the beginning of time (KIP-1251)."""
    kept = {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.assigned.items()}
    return member._replace(epoch=STATIC_LEAVE_EPOCH, assigned=kept, revoking={})


def _refusal(error: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=int(error), error_message=message)


def _is_owed(request: ConsumerGroupHeartbeatRequest, outcome: Outcome) -> bool:
    """Whether the answer tells the assignment: to who joins or tells all of itself, and when it has changed."""
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    tells_all = request.rebalance_timeout_ms != -1 and subscribes and request.topic_partitions is not None
    is_full = request.member_epoch == JOIN_EPOCH or tells_all
    return is_full or outcome.member.assigned != outcome.before.assigned


def _assignment(member: ConsumerMember) -> ConsumerGroupHeartbeatResponseAssignment:
    entries = as_list(member.assigned, ConsumerGroupHeartbeatResponseTopicPartitions)
    return ConsumerGroupHeartbeatResponseAssignment(topic_partitions=entries)
