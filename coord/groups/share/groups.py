"""The share groups of one coordinator: their requests, records and sessions (KIP-932).

A member sends its subscription and is sent its assignment; an assignment takes effect without any member's agreement,
so a member epoch only says which assignment the member has received. Partitions are assigned once the share coordinator
keeps state for them: a heartbeat that needs other partitions is handled up to the new group epoch, is parked until the
task `InitializeStates` has ended, and is then handled again. Source: Kafka 4.4 `GroupMetadataManager`, where a member
gets its first partitions with the heartbeat after the heartbeat that initialized them.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from barnabas.coord.groups.assignors.simple import NAME
from barnabas.coord.groups.modern.members import JOIN_EPOCH, LEAVE_EPOCH
from barnabas.coord.groups.modern.metadata_hash import group_hash
from barnabas.coord.groups.share import administration, records
from barnabas.coord.groups.share.group import ShareGroup
from barnabas.coord.groups.share.heartbeat import Heartbeat, check_heartbeat
from barnabas.coord.groups.share.member import ShareMember
from barnabas.coord.groups.share.registry import ShareGroupRegistry
from barnabas.coord.groups.share.replay import replay
from barnabas.coord.groups.share.result import ShareGroupResult
from barnabas.coord.groups.share.tasks import InitializeStates, ParkedHeartbeat, heartbeat_error
from barnabas.coord.machine import Moment, Result
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.share_groups import (
    ShareGroupDescribeResponseAssignment,
    ShareGroupDescribeResponseDescribedGroup,
    ShareGroupDescribeResponseMember,
    ShareGroupDescribeResponseTopicPartitions,
    ShareGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.coordinator_parts import CoordinatorParts
    from barnabas.coord.groups.modern.partitions import Partitions
    from barnabas.coord.groups.share.tasks import Failures, Initialization
    from barnabas.coord.groups.topics import Topics
    from barnabas.coord.machine import Ticket
    from barnabas.wire.messages.groups.share_groups import (
        AlterShareGroupOffsetsRequest,
        DeleteShareGroupOffsetsRequest,
        ShareGroupHeartbeatRequest,
    )

logger = logging.getLogger("kafka.coordinator.group.ShareGroups")

FROM_RESET = -1
"""Start offset of a partition of a topic that is new to the group: `share.auto.offset.reset` decides at first read."""
FROM_START = 0
"""Start offset of a partition that was added to a topic of the group: all of its records are read."""


class ShareTimerKey(NamedTuple):
    """A timer of a member: its session timeout."""

    kind: str
    group_id: str
    member_id: str


class ShareGroups:
    """All share groups of one coordinator."""

    timer_key: ClassVar[type] = ShareTimerKey

    def __init__(self, parts: CoordinatorParts) -> None:
        self._registry = ShareGroupRegistry(parts.groups, parts.topics)
        self._topics = parts.topics
        self._timers = parts.timers
        self._configs = parts.group_configs
        self._max_size = parts.config.share_max_size

    def group(self, group_id: str) -> ShareGroup:
        """The share group of this id. KafkaError GROUP_ID_NOT_FOUND."""
        return self._registry.group(group_id)

    # ---- load and replay

    def replay(self, record_type: int, key: bytes, value: bytes | None, at: Moment) -> None:  # noqa: ARG002 - as every group type
        """Apply a record of a share group that is in the log."""
        replay(self._registry.groups, record_type, key, value)

    def loaded(self, at: Moment, result: Result) -> None:  # noqa: ARG002 - nothing to write
        """The whole log has been replayed: start the sessions of all members."""
        for group in self._registry:
            group.is_stale = True
            for member_id in group.members:
                self._renew_session(group.group_id, member_id, at)

    def forget(self, group_id: str) -> None:
        """Cancel the sessions of the members of a group that is removed."""
        group = self._registry.find(group_id)
        for member_id in () if group is None else group.members:
            self._timers.cancel(ShareTimerKey("share-session", group_id, member_id))

    def metadata_changed(self, topics: Collection[str], at: Moment, result: Result) -> None:  # noqa: ARG002
        """Topics were created, deleted or changed: mark their readers stale, and drop the state of deleted topics."""
        for group in self._registry:
            if group.is_subscribed_to_one_of(topics):
                group.is_stale = True
            deleted = {
                topic_id for topic_id in group.state_partitions.topic_ids if self._topics.by_id(topic_id) is None
            }
            if deleted:
                self._registry.write_states(group, group.state_partitions.without_topics(deleted), result)

    def _renew_session(self, group_id: str, member_id: str, at: Moment) -> None:
        timeout_ms = self._configs(group_id).share_session_timeout_ms
        self._timers.set(ShareTimerKey("share-session", group_id, member_id), at.now + timeout_ms / 1000)

    # ---- ShareGroupHeartbeat

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, ticket: Ticket, context: ClientContext, at: Moment
    ) -> ShareGroupResult:
        """ShareGroupHeartbeat: join, stay, or leave. The reply is in this result, or in a later event's."""
        result = ShareGroupResult()
        try:
            check_heartbeat(request)
            if request.member_epoch == LEAVE_EPOCH:
                response: ShareGroupHeartbeatResponse | None = self._leave(request, result)
            else:
                response = self._heartbeat(ParkedHeartbeat(request, ticket, context), at, result)
        except KafkaError as refused:
            response = heartbeat_error(refused.code, refused.message)
        if response is not None:
            result.reply(ticket, response, heartbeat_error)
        return result

    def _heartbeat(
        self, parked: ParkedHeartbeat, at: Moment, result: ShareGroupResult
    ) -> ShareGroupHeartbeatResponse | None:
        """The response, or None when the heartbeat is parked."""
        request = parked.request
        find = self._registry.group_or_new if request.member_epoch == JOIN_EPOCH else self._registry.group
        group = find(request.group_id)
        known = self._known_member(group, request)
        settings = self._configs(group.group_id)
        heartbeat = Heartbeat(group, known, request, parked.context, self._topics, settings, at)
        heartbeat.update()
        if heartbeat.has_fresh_metadata:
            group.is_stale = False
        self._renew_session(group.group_id, request.member_id, at)
        missing = group.missing(heartbeat.subscribed_names(), self._topics)
        response = None if missing else heartbeat.finish()
        result.records += heartbeat.records
        if missing:
            self._park(group, heartbeat.epoch, missing, parked, at, result)
        return response

    def _known_member(self, group: ShareGroup, request: ShareGroupHeartbeatRequest) -> ShareMember:
        member = group.members.get(request.member_id)
        if member is not None:
            member.check_epoch(request.member_epoch)
            return member
        if request.member_epoch != JOIN_EPOCH:
            raise _unknown_member(group, request.member_id)
        if len(group.members) >= self._max_size:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The share group has reached its maximum capacity of {self._max_size} members.",
            )
        return ShareMember(request.member_id)

    # ---- initializing the state of partitions

    def _park(
        self,
        group: ShareGroup,
        epoch: int,
        missing: Partitions,
        parked: ParkedHeartbeat,
        at: Moment,
        result: ShareGroupResult,
    ) -> None:
        """Let the heartbeat wait for the state of the `missing` partitions; start a task for those without one."""
        remaining = self._registry.without_task(group.group_id, missing, at)
        if remaining:
            initialization = self._registry.begin(group, remaining, at, result)
            known = group.state_partitions.initialized
            result.task = InitializeStates(
                group.group_id,
                epoch,
                {
                    topic_id: dict.fromkeys(sorted(indexes), FROM_START if topic_id in known else FROM_RESET)
                    for topic_id, indexes in remaining.items()
                },
            )
            result.then = partial(_initialized, initialization=initialization)
            result.parked = initialization.waiting
        else:
            initialization = self._registry.under_way(group.group_id, at)[-1]
            result.parked = (parked,)

            def undo(_: Moment) -> Result:
                initialization.waiting.remove(parked)
                return Result()

            result.on_failure(undo)
        initialization.waiting.append(parked)

    # ---- leaving

    def _leave(self, request: ShareGroupHeartbeatRequest, result: Result) -> ShareGroupHeartbeatResponse:
        group = self.group(request.group_id)
        if request.member_id not in group.members:
            raise _unknown_member(group, request.member_id)
        logger.info("[GroupId %s] Member %s left the share group", group.group_id, request.member_id)
        self._remove(group, request.member_id, result)
        return ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=LEAVE_EPOCH)

    def _remove(self, group: ShareGroup, member_id: str, result: Result) -> None:
        new_records = result.records
        new_records += records.member_tombstones(group.group_id, member_id)
        metadata_hash = group_hash(group.subscribed_names(leaving=member_id), self._topics)
        epoch = group.epoch + 1
        new_records.append(records.group_record(group.group_id, epoch, metadata_hash))
        if len(group.members) == 1:
            new_records.append(records.target_epoch_record(group.group_id, epoch, 0))
        self._timers.cancel(ShareTimerKey("share-session", group.group_id, member_id))

    def due(self, key: ShareTimerKey, at: Moment, result: Result) -> None:  # noqa: ARG002 - as every group type
        """A member's session has expired."""
        group = self._registry.find(key.group_id)
        if group is None or key.member_id not in group.members:
            return
        logger.info(
            "[GroupId %s] Member %s fenced from the group because the member session expired",
            key.group_id,
            key.member_id,
        )
        self._remove(group, key.member_id, result)

    # ---- the share coordinator

    def task_ended(self, ended: ShareGroupResult, failures: Failures, at: Moment) -> ShareGroupResult:
        """The task of `ended` is done, but for the partitions in `failures`."""
        assert ended.then is not None, "every task has a handler of its outcome"
        return ended.then(self._registry, failures, at)

    # ---- administration

    def alter_offsets(self, request: AlterShareGroupOffsetsRequest, ticket: Ticket, at: Moment) -> ShareGroupResult:
        """AlterShareGroupOffsets: set the start offsets of an empty group."""
        return administration.alter(self._registry, request, ticket, at)

    def delete_offsets(self, request: DeleteShareGroupOffsetsRequest, ticket: Ticket) -> ShareGroupResult:
        """DeleteShareGroupOffsets: delete the offsets of topics of an empty group."""
        return administration.delete(self._registry, request, ticket)

    def delete(self, group_id: str, ticket: Ticket) -> ShareGroupResult:
        """DeleteGroups of one share group. KafkaError GROUP_ID_NOT_FOUND."""
        return administration.delete_group(self._registry, self.group(group_id), ticket)

    def describe(self, group_id: str) -> ShareGroupDescribeResponseDescribedGroup:
        """ShareGroupDescribe of one group. KafkaError GROUP_ID_NOT_FOUND."""
        return described(self.group(group_id), self._topics)


def _initialized(
    registry: ShareGroupRegistry, failures: Failures, _at: Moment, *, initialization: Initialization
) -> ShareGroupResult:
    """An initialization has ended: handle the heartbeats that wait for it again, or answer them with its error."""
    result = ShareGroupResult()
    registry.end(initialization, failures, result)
    error = next((code for by_partition in failures.values() for code in by_partition.values()), None)
    if error is None:
        result.resumed = initialization.waiting
        return result
    logger.error("[GroupId %s] The state of partitions cannot be initialized: %s", initialization.group_id, error.name)
    for parked in initialization.waiting:
        result.reply(parked.ticket, heartbeat_error(error), heartbeat_error)
    return result


def _unknown_member(group: ShareGroup, member_id: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")


def described(group: ShareGroup, topics: Topics) -> ShareGroupDescribeResponseDescribedGroup:
    """One group with its members."""
    return ShareGroupDescribeResponseDescribedGroup(
        group_id=group.group_id,
        group_state=str(group.state),
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=NAME,
        members=[_member(member, topics) for member in group.members.values()],
    )


def _member(member: ShareMember, topics: Topics) -> ShareGroupDescribeResponseMember:
    return ShareGroupDescribeResponseMember(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed),
        assignment=ShareGroupDescribeResponseAssignment(topic_partitions=_partitions(member.assigned, topics)),
    )


def _partitions(assigned: Partitions, topics: Topics) -> list[ShareGroupDescribeResponseTopicPartitions]:
    """Deleted topics are omitted."""
    return [
        ShareGroupDescribeResponseTopicPartitions(
            topic_id=topic_id, topic_name=topic.name, partitions=sorted(partitions)
        )
        for topic_id, partitions in assigned.items()
        if (topic := topics.by_id(topic_id)) is not None
    ]
