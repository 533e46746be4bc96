"""The consumer groups of one coordinator: their requests, records and timers (rules G3, G4; KIP-848).

The steps of a heartbeat are in `heartbeat.py`, the removal of members is in `membership.py`. Members send a heartbeat
every `consumer.heartbeat.interval.ms`, and more often while their group is moving, so that a new group is stable after
a second or two and not after several intervals. Source: Kafka 4.4 `GroupMetadataManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, ClassVar

from barnabas.coord.groups.classic.group import ClassicGroup
from barnabas.coord.groups.consumer import records
from barnabas.coord.groups.consumer.classic_members import ClassicMembers
from barnabas.coord.groups.consumer.describe import describe_group
from barnabas.coord.groups.consumer.group import ConsumerGroup
from barnabas.coord.groups.consumer.heartbeat import Outcome
from barnabas.coord.groups.consumer.member import ConsumerMember
from barnabas.coord.groups.consumer.membership import Membership
from barnabas.coord.groups.consumer.migration import Migration
from barnabas.coord.groups.consumer.records import ResolvedRegex
from barnabas.coord.groups.consumer.regex_resolution import RegexResolver
from barnabas.coord.groups.consumer.timers import ConsumerTimer, ConsumerTimers
from barnabas.coord.groups.modern.group import NO_EPOCH
from barnabas.coord.groups.modern.groups import ModernGroups
from barnabas.coord.groups.modern.members import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from barnabas.coord.groups.modern.partitions import as_list
from barnabas.coord.groups.modern.replay import Replay
from barnabas.coord.groups.modern.states import MemberState
from barnabas.coord.machine import Moment, Result
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.consumer_groups import (
    ConsumerGroupDescribeResponseDescribedGroup,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

if TYPE_CHECKING:
    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.coordinator_parts import CoordinatorParts
    from barnabas.coord.groups.group import Group
    from barnabas.coord.machine import CoordinatorRecord, Ticket
    from barnabas.wire.messages.groups.consumer_groups import ConsumerGroupHeartbeatRequest
    from barnabas.wire.messages.records import coordinator_records as r

logger = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")


def _put_epoch(group: ConsumerGroup, _: str, value: r.ConsumerGroupMetadataValue) -> None:
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash
    group.is_metadata_stale = False


def _put_partition_metadata(group: ConsumerGroup, _: str, _value: r.ConsumerGroupPartitionMetadataValue) -> None:
    group.has_partition_metadata = True


def _put_regex(group: ConsumerGroup, regex: str, value: r.ConsumerGroupRegularExpressionValue) -> None:
    group.put_regex(regex, ResolvedRegex(frozenset(value.topics), value.version, value.timestamp))


def _remove_target_epoch(group: ConsumerGroup, _: str) -> None:
    group.assignment_epoch = NO_EPOCH


def _remove_partition_metadata(group: ConsumerGroup, _: str) -> None:
    group.has_partition_metadata = False


REPLAY: Replay[ConsumerGroup] = Replay(
    records,
    put={
        records.GROUP_METADATA: _put_epoch,
        records.PARTITION_METADATA: _put_partition_metadata,
        records.REGULAR_EXPRESSION: _put_regex,
    },
    remove={
        records.TARGET_ASSIGNMENT_METADATA: _remove_target_epoch,
        records.PARTITION_METADATA: _remove_partition_metadata,
        records.REGULAR_EXPRESSION: ConsumerGroup.remove_regex,
    },
)


class ConsumerGroups(ModernGroups[ConsumerGroup, ConsumerMember]):
    """All consumer groups of one coordinator."""

    timer_key: ClassVar[type] = ConsumerTimer

    def __init__(self, parts: CoordinatorParts) -> None:
        groups, timers, topics, config, group_configs, new_id, rebalance = parts
        member_timers = ConsumerTimers(timers, group_configs)
        super().__init__(groups, ConsumerGroup, records.TYPES, REPLAY, member_timers)
        self._topics = topics
        self._config = config
        self._settings = group_configs
        self._new_id = new_id
        self._resolver = RegexResolver(topics, timers, hides_topics=config.hides_topics)
        self._migration = Migration(groups, topics, config, rebalance, member_timers, self.forget)
        self._membership = Membership(
            topics, config, group_configs, member_timers, self._resolver, self._migration, self._pace
        )
        self.classic_members = ClassicMembers(self._membership, self._migration, member_timers, topics, config, new_id)
        """Serves the members of the classic protocol in consumer groups."""

    # ---- requests

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, ticket: Ticket, context: ClientContext, at: Moment
    ) -> Result:
        """ConsumerGroupHeartbeat; the reply is in the result."""

        def handle(result: Result) -> ConsumerGroupHeartbeatResponse:
            check_heartbeat(request, context.api_version, self._config.consumer_assignors)
            if request.member_epoch not in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
                return self._heartbeat(request, context, at, result)
            self._leave(request, at, result)
            return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)

        return self._result_of(ticket, handle, _refusal)

    def _heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, context: ClientContext, at: Moment, result: Result
    ) -> ConsumerGroupHeartbeatResponse:
        group = self._joined_group(request, result)
        self._membership.check_room(group, request.instance_id, request.member_id)
        member_id = request.member_id or self._new_id()
        outcome = self._membership.advance(group, request, member_id, None, context, at, result)
        before = self._groups.get(group.group_id)
        if isinstance(before, ClassicGroup) and not before.is_empty:
            self._migration.finish_upgrade(before, group, at, result)
        member = outcome.member
        return ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._interval_ms(group, outcome, at),
            assignment=_assignment(member) if _needs_assignment(request, outcome) else None,
        )

    def _converted(self, group: Group, result: Result) -> ConsumerGroup:
        if isinstance(group, ClassicGroup):
            return self._migration.upgraded(group, result)
        return super()._converted(group, result)

    def _interval_ms(self, group: ConsumerGroup, outcome: Outcome, at: Moment) -> int:
        is_waiting = outcome.is_assignment_delayed or outcome.needs_resolving
        is_moving = is_waiting or outcome.member.state is not MemberState.STABLE
        usual_ms = self._settings(group.group_id).consumer_heartbeat_interval_ms
        return self._pace.interval_ms(group.group_id, len(group.members), usual_ms, at, is_moving=is_moving)

    def _assignment_record(self, group_id: str, member: ConsumerMember) -> CoordinatorRecord:
        return records.current_assignment(group_id, member)

    def _remove_member(self, group: ConsumerGroup, member: ConsumerMember, at: Moment, result: Result) -> None:
        self._membership.remove(group, [member], at, result)

    def describe(self, group_id: str) -> ConsumerGroupDescribeResponseDescribedGroup:
        """ConsumerGroupDescribe of one group. KafkaError GROUP_ID_NOT_FOUND, also for groups of other types."""
        return describe_group(self._existing(group_id), self._topics, self._config.consumer_assignors[0])

    # ---- time

    def loaded(self, at: Moment, result: Result) -> None:  # noqa: ARG002 - as every group type
        """The log has been replayed: start all timers, and compare topics with the next heartbeats."""
        for group in self._mine():
            group.is_metadata_stale = True
            self._timers.start(group, at)
            self._resolver.loaded(group, at)

    def due(self, key: ConsumerTimer, at: Moment, result: Result) -> None:
        """A timer has expired."""
        if key.kind == "consumer-regex":
            self._resolver.refresh_due(key.group_id, at)
        elif key.kind == "consumer-regex-step":
            moved = self._resolver.step(self._find, at, result)
            if moved is not None:
                self._pace.moved(moved.group_id, at)
        else:
            group = self._find(key.group_id)
            if group is not None:
                self._membership.due(key, group, at, result)

    def forget(self, group_id: str) -> None:
        """Cancel every timer of a group that is removed."""
        self._pace.forget(group_id)
        self._resolver.forget(group_id)
        group = self._find(group_id)
        if group is not None:
            self._timers.cancel_group(group)

    # ---- topics

    def metadata_changed(self, topics: Collection[str], at: Moment, result: Result) -> None:  # noqa: ARG002
        """Topics were created, deleted or changed: the groups that read them compare with the next heartbeat."""
        for group in self._mine():
            self._resolver.topics_changed(group, topics, at)
            if group.is_subscribed_to_one_of(topics):
                group.is_metadata_stale = True


def _refusal(error: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=int(error), error_message=message)


def _needs_assignment(request: ConsumerGroupHeartbeatRequest, outcome: Outcome) -> bool:
    """Whether the response has the assignment: it has changed, or the member joins or sends all of its fields."""
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    sends_all = request.rebalance_timeout_ms != -1 and subscribes and request.topic_partitions is not None
    is_full = request.member_epoch == JOIN_EPOCH or sends_all
    return is_full or outcome.member.assigned != outcome.before.assigned


def _assignment(member: ConsumerMember) -> ConsumerGroupHeartbeatResponseAssignment:
    entries = as_list(member.assigned, ConsumerGroupHeartbeatResponseTopicPartitions)
    return ConsumerGroupHeartbeatResponseAssignment(topic_partitions=entries)


CLIENTS_MEMBER_ID_SINCE = 1
"""From this version on members generate their ids, so that a lost response to a join leaves no extra member."""


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: Collection[str]) -> None:
    """KafkaError INVALID_REQUEST or UNSUPPORTED_ASSIGNOR."""
    epoch = request.member_epoch
    if api_version >= CLIENTS_MEMBER_ID_SINCE or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH:
        _check_not_blank(request.member_id, "MemberId")
    _check_not_blank(request.group_id, "GroupId")
    _check_not_blank(request.instance_id, "InstanceId")
    _check_not_blank(request.rack_id, "RackId")
    if epoch == JOIN_EPOCH:
        _check_join(request)
    elif epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def _check_not_blank(text: str | None, name: str) -> None:
    if text is not None and not text.strip():
        raise _invalid(f"{name} can't be empty.")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
