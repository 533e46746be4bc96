"""The streams groups of one coordinator: their requests, records and timers (KIP-1071).

The steps of a heartbeat are in `heartbeat.py`. A member has a session timeout and, when it has to revoke tasks, its
rebalance timeout to do so; the first assignment of a group is delayed so that more members can join. Members send a
heartbeat every `streams.heartbeat.interval.ms`, and more often while their group is moving. Source: Kafka 4.4
`GroupMetadataManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from barnabas.coord.groups.modern.group import FIRST_EPOCH
from barnabas.coord.groups.modern.groups import ModernGroups
from barnabas.coord.groups.modern.members import LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from barnabas.coord.groups.modern.records import target_records
from barnabas.coord.groups.modern.replay import Replay
from barnabas.coord.groups.modern.states import MemberState
from barnabas.coord.groups.modern.timers import MemberTimers
from barnabas.coord.groups.streams import records
from barnabas.coord.groups.streams.describe import describe_group, endpoints
from barnabas.coord.groups.streams.group import Passing, StreamsGroup
from barnabas.coord.groups.streams.heartbeat import Heartbeat, Outcome
from barnabas.coord.groups.streams.internal_topics import InternalTopic
from barnabas.coord.groups.streams.member import StreamsMember
from barnabas.coord.groups.streams.requests import check_heartbeat, owned_tasks
from barnabas.coord.groups.streams.target import assign
from barnabas.coord.groups.streams.tasks import write_tasks
from barnabas.coord.groups.streams.topology import Topology
from barnabas.coord.machine import Moment, Result
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups import streams_groups as s

if TYPE_CHECKING:
    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.coordinator_parts import CoordinatorParts
    from barnabas.coord.machine import CoordinatorRecord, Ticket
    from barnabas.wire.messages.records import coordinator_records as r

logger = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")


def _put_epoch(group: StreamsGroup, _: str, value: r.StreamsGroupMetadataValue) -> None:
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash
    group.validated_topology_epoch = value.validated_topology_epoch
    group.assignment_configs = records.read_configs(value)


def _put_topology(group: StreamsGroup, _: str, value: r.StreamsGroupTopologyValue) -> None:
    group.topology = Topology(value)


def _remove_target_epoch(group: StreamsGroup, _: str) -> None:
    group.assignment_epoch = FIRST_EPOCH


def _remove_topology(group: StreamsGroup, _: str) -> None:
    group.topology = None


REPLAY: Replay[StreamsGroup] = Replay(
    records,
    put={records.GROUP_METADATA: _put_epoch, records.TOPOLOGY: _put_topology},
    remove={records.TARGET_ASSIGNMENT_METADATA: _remove_target_epoch, records.TOPOLOGY: _remove_topology},
)


TASK_OFFSET_INTERVAL_MS = 60_000
"""How often members report the offsets of their tasks; the default of an internal key of Kafka's."""
ACCEPTABLE_RECOVERY_LAG = 10_000
"""Lag in records up to which a warm-up task has caught up; the default of an internal key of Kafka's."""


class StreamsTimer(NamedTuple):
    """The key of a timer: a member's session, its time to revoke tasks, or a group's initial rebalance delay."""

    kind: Literal["streams-session", "streams-rebalance", "streams-initial"]
    group_id: str
    member_id: str = ""


class StreamsGroups(ModernGroups[StreamsGroup, StreamsMember]):
    """All streams groups of one coordinator."""

    timer_key: ClassVar[type] = StreamsTimer

    def __init__(self, parts: CoordinatorParts) -> None:
        group_configs = parts.group_configs
        member_timers: MemberTimers[StreamsMember] = MemberTimers(
            parts.timers,
            partial(StreamsTimer, "streams-session"),
            partial(StreamsTimer, "streams-rebalance"),
            lambda group_id, _: group_configs(group_id).streams_session_timeout_ms,
        )
        super().__init__(parts.groups, StreamsGroup, records.TYPES, REPLAY, member_timers)
        self._all_timers = parts.timers
        self._topics = parts.topics
        self._config = parts.config
        self._settings = group_configs
        self._passing: dict[str, Passing] = {}

    # ---- requests

    def heartbeat(
        self, request: s.StreamsGroupHeartbeatRequest, ticket: Ticket, context: ClientContext, at: Moment
    ) -> Result:
        """StreamsGroupHeartbeat; the reply is in the result. Missing topics are in `missing_topics` too."""

        def handle(result: Result) -> s.StreamsGroupHeartbeatResponse:
            check_heartbeat(request)
            if request.member_epoch not in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
                return self._heartbeat(request, context, at, result)
            self._leave(request, at, result)
            if request.shutdown_application:
                self._request_shutdown(self._existing(request.group_id), request.member_id)
            return s.StreamsGroupHeartbeatResponse(
                member_id=request.member_id, member_epoch=request.member_epoch, status=[]
            )

        return self._result_of(ticket, handle, _refusal)

    def _heartbeat(
        self, request: s.StreamsGroupHeartbeatRequest, context: ClientContext, at: Moment, result: Result
    ) -> s.StreamsGroupHeartbeatResponse:
        group = self._joined_group(request, result)
        group.check_room(request.instance_id, request.member_id, self._config.streams_max_size)
        settings = self._settings(request.group_id)
        is_gathering = self._all_timers.deadline(StreamsTimer("streams-initial", group.group_id)) is not None
        heartbeat = Heartbeat(group, request, self._topics, settings, at, is_gathering=is_gathering)
        outcome = heartbeat.run(context)
        result.records += outcome.records
        self._keep(group, outcome)
        self._time(group, outcome, at)
        if request.shutdown_application:
            self._request_shutdown(group, outcome.member.member_id)
        return self._response(group, request, outcome, at)

    def _keep(self, group: StreamsGroup, outcome: Outcome) -> None:
        """Keep the part of the outcome that no record contains."""
        passing = self._passing[group.group_id] = group.passing
        passing.configured = outcome.configured
        member_id = outcome.member.member_id
        if any(outcome.offsets) or member_id in passing.offsets:
            passing.offsets[member_id] = outcome.offsets

    def _response(
        self, group: StreamsGroup, request: s.StreamsGroupHeartbeatRequest, outcome: Outcome, at: Moment
    ) -> s.StreamsGroupHeartbeatResponse:
        member = outcome.member
        response = s.StreamsGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._interval_ms(group, outcome, at),
            task_offset_interval_ms=TASK_OFFSET_INTERVAL_MS,
            acceptable_recovery_lag=ACCEPTABLE_RECOVERY_LAG,
            status=[s.Status(status_code=int(status), status_detail=detail) for status, detail in outcome.statuses],
        )
        if _needs_assignment(request, outcome):
            tasks = member.assigned.tasks
            response.active_tasks = write_tasks(tasks.active, s.StreamsGroupHeartbeatResponseTaskIds)
            response.standby_tasks = write_tasks(tasks.standby, s.StreamsGroupHeartbeatResponseTaskIds)
            response.warmup_tasks = write_tasks(tasks.warmup, s.StreamsGroupHeartbeatResponseTaskIds)
        self._add_endpoints(group, request, outcome, response)
        return response

    @staticmethod
    def _add_endpoints(
        group: StreamsGroup,
        request: s.StreamsGroupHeartbeatRequest,
        outcome: Outcome,
        response: s.StreamsGroupHeartbeatResponse,
    ) -> None:
        """Add the endpoints of all processes for a member that does not have their last change."""
        before, member, passing = outcome.before, outcome.member, group.passing
        has_other_tasks = member.user_endpoint is not None and member.assigned.tasks != before.assigned.tasks
        if member.user_endpoint != before.user_endpoint or has_other_tasks:
            passing.endpoint_epoch += 1
        response.endpoint_information_epoch = passing.endpoint_epoch
        if request.endpoint_information_epoch != passing.endpoint_epoch:
            members = {**group.members, member.member_id: member}
            if before.member_id != member.member_id:
                members.pop(before.member_id, None)
            response.partitions_by_user_endpoint = endpoints(
                members.values(), outcome.configured.over_topics.subtopologies
            )

    def missing_topics(self, group_id: str) -> tuple[InternalTopic, ...]:
        """The internal topics that the group's topology needs and that do not exist, as of its last heartbeat."""
        group = self._groups.get(group_id)
        if not isinstance(group, StreamsGroup) or group.passing.configured is None:
            return ()
        return group.passing.configured.over_topics.missing

    def _interval_ms(self, group: StreamsGroup, outcome: Outcome, at: Moment) -> int:
        is_moving = outcome.is_delayed or outcome.member.state is not MemberState.STABLE
        usual_ms = self._settings(group.group_id).streams_heartbeat_interval_ms
        return self._pace.interval_ms(group.group_id, len(group.members), usual_ms, at, is_moving=is_moving)

    def _assignment_record(self, group_id: str, member: StreamsMember) -> CoordinatorRecord:
        return records.current_assignment(group_id, member)

    @staticmethod
    def _request_shutdown(group: StreamsGroup, member_id: str) -> None:
        if group.passing.shutdown_requested_by is None:
            logger.info("[GroupId %s][MemberId %s] Shutdown of the application requested", group.group_id, member_id)
            group.passing.shutdown_requested_by = member_id

    def describe(self, group_id: str, *, wants_description: bool) -> s.StreamsGroupDescribeResponseDescribedGroup:
        """StreamsGroupDescribe of one group. KafkaError GROUP_ID_NOT_FOUND, also for groups of other types."""
        return describe_group(self._existing(group_id), wants_description=wants_description)

    # ---- removing members

    def _remove_member(self, group: StreamsGroup, member: StreamsMember, at: Moment, result: Result) -> None:  # noqa: ARG002
        """Remove a member: its tasks are free, and the group gets a new epoch."""
        group_id = group.group_id
        result.records += records.member_tombstones(group_id, member.member_id)
        result.records.append(
            records.group_epoch(
                group_id,
                group.epoch + 1,
                group.metadata_hash,
                group.validated_topology_epoch,
                group.assignment_configs,
            )
        )
        if len(group.members) == 1:  # the next member need not wait for the assignment interval
            result.records.append(records.target_epoch(group_id, group.epoch + 1, 0))
        self._timers.cancel(group_id, member.member_id)

    def _fence(self, group: StreamsGroup, member: StreamsMember, reason: str, at: Moment, result: Result) -> None:
        logger.info(
            "[GroupId %s][MemberId %s] Member fenced from the group because %s",
            group.group_id,
            member.member_id,
            reason,
        )
        self._remove_member(group, member, at, result)
        self._pace.moved(group.group_id, at)

    # ---- time

    def _time(self, group: StreamsGroup, outcome: Outcome, at: Moment) -> None:
        """Start, renew and cancel timers after a heartbeat."""
        group_id, member_id = group.group_id, outcome.member.member_id
        if outcome.before.member_id != member_id:
            self._timers.cancel(group_id, outcome.before.member_id)
        self._timers.renew_session(group_id, outcome.member, at)
        self._timers.time_revocation(group_id, outcome.before, outcome.member, at)
        if outcome.begins_gathering:
            delay_ms = self._settings(group_id).streams_initial_rebalance_delay_ms
            self._all_timers.set(StreamsTimer("streams-initial", group_id), at.now + delay_ms / 1000)
        if outcome.epoch != group.epoch:
            self._pace.moved(group_id, at)

    def loaded(self, at: Moment, result: Result) -> None:  # noqa: ARG002 - the shape of every group type
        """The log has been replayed: start the timers of all members, but no initial rebalance delay.

        The endpoint epoch starts from the wall clock, so that it differs from the epoch that members have.
        """
        for group in self._mine():
            group.passing.endpoint_epoch = at.now_ms // 1000 % (1 << 31)
            self._timers.start(group, at)

    def due(self, key: StreamsTimer, at: Moment, result: Result) -> None:
        """A timer has expired: remove the member, or end the initial rebalance delay."""
        group = self._groups.get(key.group_id)
        if not isinstance(group, StreamsGroup):
            return
        if key.kind == "streams-initial":
            self._assign_first(group, at, result)
            return
        member = group.members.get(key.member_id)
        if member is None:
            return
        if key.kind == "streams-session":
            self._fence(group, member, "its session expired", at, result)
        elif member.state is MemberState.UNREVOKED:
            reason = f"it did not revoke its tasks within {member.rebalance_timeout_ms} ms"
            self._fence(group, member, reason, at, result)

    def _assign_first(self, group: StreamsGroup, at: Moment, result: Result) -> None:
        """The initial rebalance delay is over: make the first assignment."""
        configured = group.passing.configured
        if group.is_empty or group.epoch <= group.assignment_epoch or configured is None:
            return  # the next heartbeat makes the assignment
        settings = self._settings(group.group_id)
        target = assign(group.members, group.target, configured.over_topics, group.passing.offsets, settings)
        result.records += target_records(records, group.group_id, group.target, target, group.epoch, at)
        self._pace.moved(group.group_id, at)

    def forget(self, group_id: str) -> None:
        """Cancel every timer of a group that is removed, and drop what no record contains of it."""
        self._pace.forget(group_id)
        self._passing.pop(group_id, None)
        self._all_timers.cancel(StreamsTimer("streams-initial", group_id))
        group = self._find(group_id)
        if group is not None:
            self._timers.cancel_group(group)

    # ---- topics

    def metadata_changed(self, topics: Collection[str], at: Moment, result: Result) -> None:  # noqa: ARG002
        """Topics have changed: configure the topologies that need them again with the next heartbeat."""
        for group in self._mine():
            if group.topology is not None and not group.topology.required_topics.isdisjoint(topics):
                group.passing.configured = None

    # ---- replay

    def _new_group(self, group_id: str) -> StreamsGroup:
        group = StreamsGroup(group_id, self._passing.get(group_id))
        self._passing[group_id] = group.passing
        return group


def _refusal(error: ErrorCode, message: str | None = None) -> s.StreamsGroupHeartbeatResponse:
    return s.StreamsGroupHeartbeatResponse(error_code=int(error), error_message=message)


def _needs_assignment(request: s.StreamsGroupHeartbeatRequest, outcome: Outcome) -> bool:
    """Whether the response has the assignment: it has changed, or the member may not have received the last change.

    The latter is a member that joins, that sends an earlier epoch since the response was lost, or other tasks.
    """
    if request.member_epoch != outcome.member.epoch:
        return True
    tasks = outcome.member.assigned.tasks
    return tasks != outcome.before.assigned.tasks or owned_tasks(request) not in (None, tasks)
