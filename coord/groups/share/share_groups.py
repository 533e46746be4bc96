"""All share groups of one coordinator: heartbeats, assignment, and the life of members (KIP-932).

A member says what it subscribes to and is told what it has; an assignment needs nobody's agreement, so epochs only tell
whether a member has heard of the last one. Partitions are assigned once the share coordinator keeps state for them: a
heartbeat that brings in new ones is handled up to the group's new epoch, waits for the task `InitializeStates`, and is
then handled again. What `replay` builds is all there is to know. Source: Kafka 4.4 `GroupMetadataManager`, where a
member gets its first partitions with the heartbeat after the one that had them initialized.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from barnabas.coord.groups.modern.members import JOIN_EPOCH, LEAVE_EPOCH
from barnabas.coord.groups.modern.metadata_hash import group_hash
from barnabas.coord.groups.modern.partitions import as_list
from barnabas.coord.groups.share import records
from barnabas.coord.groups.share.describe import described
from barnabas.coord.groups.share.group import ShareGroup
from barnabas.coord.groups.share.member import ShareMember
from barnabas.coord.groups.share.replay import replay
from barnabas.coord.groups.share.state_partitions import without
from barnabas.coord.groups.share.tasks import InitializeStates, ParkedHeartbeat, ShareGroupResult
from barnabas.coord.machine import Moment, Reply, Result
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.share_groups import (
    ShareGroupHeartbeatResponse,
    ShareGroupHeartbeatResponseAssignment,
    ShareGroupHeartbeatResponseTopicPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.group import Group
    from barnabas.coord.groups.modern.partitions import Partitions
    from barnabas.coord.groups.settings import GroupConfigs
    from barnabas.coord.groups.share.tasks import Failures
    from barnabas.coord.groups.topics import Topics
    from barnabas.coord.machine import CoordinatorRecord, Ticket
    from barnabas.coord.timers import Timers
    from barnabas.wire.messages.share_groups import (
        AlterShareGroupOffsetsRequest,
        DeleteShareGroupOffsetsRequest,
        ShareGroupDescribeResponseDescribedGroup,
        ShareGroupHeartbeatRequest,
    )

logger = logging.getLogger("kafka.coordinator.group.ShareGroups")

FROM_RESET = -1
"""Start offset of a partition that the group has never heard of: its first reader looks at share.auto.offset.reset."""
FROM_START = 0
"""Start offset of a partition that was added to a topic which the group reads already: nothing of it is missed."""


class ShareTimerKey(NamedTuple):
    """What comes due: the end of a member's session."""

    kind: str
    group_id: str
    member_id: str


def heartbeat_error(error: ErrorCode, message: str | None = None) -> ShareGroupHeartbeatResponse:
    """A heartbeat that had no effect."""
    return ShareGroupHeartbeatResponse(error_code=int(error), error_message=message)


class ShareGroups:
    """All share groups of one coordinator."""

    timer_key: ClassVar[type] = ShareTimerKey

    def __init__(
        self, groups: dict[str, Group], timers: Timers, topics: Topics, configs: GroupConfigs, max_size: int
    ) -> None:
        """`groups` are the coordinator's, of every type; `max_size` is `group.share.max.size`."""
        self.groups = groups
        self.topics = topics
        self._timers = timers
        self._configs = configs
        self._max_size = max_size

    def group(self, group_id: str) -> ShareGroup:
        """The share group of this id; GROUP_ID_NOT_FOUND when there is none."""
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if not isinstance(group, ShareGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
        return group

    def group_or_new(self, group_id: str) -> ShareGroup:
        """The share group of this id, or one that its first records will create."""
        return self.group(group_id) if group_id in self.groups else ShareGroup(group_id)

    # ---- load and replay

    def replay(self, record_type: int, key: bytes, value: bytes | None, at: Moment) -> None:  # noqa: ARG002 - sessions begin with `loaded`
        """A record of a share group is in the log."""
        replay(self.groups, record_type, key, value)

    def loaded(self, at: Moment, result: Result) -> None:  # noqa: ARG002 - nothing to write
        """The whole log has been replayed: sessions start now."""
        for group in self.groups.values():
            if isinstance(group, ShareGroup):
                group.is_stale = True
                for member_id in group.members:
                    self._renew_session(group.group_id, member_id, at)

    def forget(self, group_id: str) -> None:
        """A group goes away: so do the sessions of its members."""
        group = self.groups.get(group_id)
        if isinstance(group, ShareGroup):
            for member_id in group.members:
                self._timers.cancel(ShareTimerKey("share-session", group_id, member_id))

    def metadata_changed(self, topics: Collection[str], at: Moment, result: Result) -> None:  # noqa: ARG002
        """Topics came, went or grew: groups that read them look again; state of topics that are gone is forgotten."""
        for group in self.groups.values():
            if not isinstance(group, ShareGroup):
                continue
            if any(group.is_subscribed_to(topic) for topic in topics):
                group.is_stale = True
            known = group.state_partitions.topic_ids
            gone = {topic_id for topic_id in known if self.topics.by_id(topic_id) is None}
            if gone:
                left = group.state_partitions.forgotten(gone)
                value = left.as_value(self.topics)
                result.records.append(records.state_partitions_record(group.group_id, value))

    def _renew_session(self, group_id: str, member_id: str, at: Moment) -> None:
        timeout_ms = self._configs(group_id).share_session_timeout_ms
        self._timers.set(ShareTimerKey("share-session", group_id, member_id), at.now + timeout_ms / 1000)

    # ---- ShareGroupHeartbeat

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, ticket: Ticket, context: ClientContext, at: Moment
    ) -> ShareGroupResult:
        """ShareGroupHeartbeat: join, go on, or leave. Replied to now, or by an event that this leads to."""
        result = ShareGroupResult()
        try:
            _check(request)
            if request.member_epoch == LEAVE_EPOCH:
                answer: ShareGroupHeartbeatResponse | None = self._leave(request, result)
            else:
                answer = self._go_on(ParkedHeartbeat(request, ticket, context), at, result)
        except KafkaError as refused:
            answer = heartbeat_error(refused.code, refused.message)
        if answer is not None:
            result.reply(ticket, answer, heartbeat_error)
        return result

    def _go_on(
        self, parked: ParkedHeartbeat, at: Moment, result: ShareGroupResult
    ) -> ShareGroupHeartbeatResponse | None:
        request = parked.request
        group = (
            self.group_or_new(request.group_id) if request.member_epoch == JOIN_EPOCH else self.group(request.group_id)
        )
        known = self._known_member(group, request)
        member = known.with_request(request.rack_id, request.subscribed_topic_names, parked.context)
        epoch, is_subscription_new = self._update_epoch(group, member, result.records)
        self._renew_session(group.group_id, member.member_id, at)
        missing = group.missing(group.subscribed_names(instead=member), self.topics)
        if missing:
            self._initialize(group, epoch, missing, parked, result)
            return None
        target_epoch, target = self._target(group, member, epoch, at, result.records)
        updated = self._reconcile(group, member, target_epoch, target, is_subscription_new, result.records)
        answer = ShareGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=updated.epoch,
            heartbeat_interval_ms=self._next_heartbeat_ms(group, is_late=target_epoch < epoch, at=at),
        )
        is_full = request.member_epoch == JOIN_EPOCH or request.subscribed_topic_names is not None
        if is_full or updated.assigned != known.assigned:
            listed = as_list(updated.assigned, ShareGroupHeartbeatResponseTopicPartitions)
            answer.assignment = ShareGroupHeartbeatResponseAssignment(topic_partitions=listed)
        return answer

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

    def _update_epoch(self, group: ShareGroup, member: ShareMember, made: list[CoordinatorRecord]) -> tuple[int, bool]:
        """The group's epoch with the member as it is now, and whether the member's subscription is another one."""
        old = group.members.get(member.member_id)
        if old is None or not member.describes_like(old):
            made.append(records.member_record(group.group_id, member))
        is_subscription_new = member.subscribed != (ShareMember(member.member_id) if old is None else old).subscribed
        bumps = is_subscription_new
        if group.target_epoch >= group.epoch and group.lacks_initialized(self.topics):
            bumps = True
        if not bumps and not group.is_stale:
            return group.epoch, is_subscription_new
        metadata_hash = group_hash(group.subscribed_names(instead=member), self.topics)
        if not bumps and metadata_hash == group.metadata_hash:
            group.is_stale = False
            return group.epoch, is_subscription_new
        epoch = group.epoch + 1
        made.append(records.group_record(group.group_id, epoch, metadata_hash))
        logger.info("[GroupId %s] Bumped group epoch to %d", group.group_id, epoch)
        return epoch, is_subscription_new

    # ---- initializing the state of partitions

    def _initialize(
        self, group: ShareGroup, epoch: int, missing: Partitions, parked: ParkedHeartbeat, result: ShareGroupResult
    ) -> None:
        known = group.state_partitions.initialized
        value = group.state_partitions.begun(missing).as_value(self.topics)
        result.records.append(records.state_partitions_record(group.group_id, value))
        result.task = InitializeStates(
            group.group_id,
            epoch,
            {
                topic_id: dict.fromkeys(sorted(indexes), FROM_START if topic_id in known else FROM_RESET)
                for topic_id, indexes in missing.items()
            },
        )
        result.then = partial(_heartbeat_initialized, group_id=group.group_id, asked=missing, parked=parked)
        result.awaiting = Reply(parked.ticket, heartbeat_error(ErrorCode.UNKNOWN_SERVER_ERROR), heartbeat_error)

    def states_ended(self, group_id: str, asked: Partitions, failures: Failures, result: ShareGroupResult) -> None:
        """Write down for which of the partitions asked for the share coordinator keeps state now."""
        group = self.groups.get(group_id)
        if not isinstance(group, ShareGroup):
            return  # deleted meanwhile
        gone = {topic_id for topic_id in asked if self.topics.by_id(topic_id) is None}
        failed = {topic_id: frozenset(failures.get(topic_id, ())) for topic_id in asked}
        done = {topic_id: indexes - failed[topic_id] for topic_id, indexes in asked.items()}
        done = {topic_id: indexes for topic_id, indexes in without(done, gone).items() if indexes}
        value = group.state_partitions.ended(done, failed).forgotten(gone).as_value(self.topics)
        result.records.append(records.state_partitions_record(group_id, value))

    # ---- assignment

    def _target(
        self, group: ShareGroup, member: ShareMember, epoch: int, at: Moment, made: list[CoordinatorRecord]
    ) -> tuple[int, Partitions]:
        """The target assignment to follow, computed anew when the group has a new epoch and it is time."""
        if group.target_epoch >= epoch or self._wait_ms(group, at):
            return group.target_epoch, group.target.get(member.member_id, {})
        from barnabas.coord.groups.assignors import simple
        from barnabas.coord.groups.assignors.spec import MemberSpec

        sizes = {topic_id: group.state_partitions.whole(topic_id) for topic_id in group.state_partitions.initialized}
        specs = {
            each.member_id: MemberSpec(self._topic_ids(each), group.target.get(each.member_id, {}))
            for each in {**group.members, member.member_id: member}.values()
        }
        target = simple.assign(specs, {topic_id: size for topic_id, size in sizes.items() if size})
        made += [
            records.target_record(group.group_id, member_id, target[member_id])
            for member_id in sorted(target)
            if target[member_id] != group.target.get(member_id)
        ]
        made.append(records.target_epoch_record(group.group_id, epoch, at.now_ms))
        return epoch, target[member.member_id]

    def _topic_ids(self, member: ShareMember) -> frozenset[bytes]:
        found = map(self.topics.by_name, member.subscribed)
        return frozenset(topic.topic_id for topic in found if topic is not None)

    def _wait_ms(self, group: ShareGroup, at: Moment) -> int:
        """How long the next assignment has to wait, so that a crowd of members does not cost one for each."""
        interval_ms = self._configs(group.group_id).share_assignment_interval_ms
        since_ms = at.now_ms - group.target_timestamp_ms
        if group.target_timestamp_ms <= 0 or not 0 <= since_ms < interval_ms:
            return 0
        return interval_ms - since_ms

    def _next_heartbeat_ms(self, group: ShareGroup, *, is_late: bool, at: Moment) -> int:
        """When to come again; sooner for a member whose assignment had to wait."""
        interval_ms = self._configs(group.group_id).share_heartbeat_interval_ms
        return min(interval_ms, max(1, self._wait_ms(group, at))) if is_late else interval_ms

    def _reconcile(
        self,
        group: ShareGroup,
        member: ShareMember,
        target_epoch: int,
        target: Partitions,
        is_subscription_new: bool,
        made: list[CoordinatorRecord],
    ) -> ShareMember:
        """The member with what it has from now on: of its target what it still subscribes to."""
        if member.epoch == target_epoch and not is_subscription_new:
            return member
        subscribed = self._topic_ids(member)
        updated = member._replace(assigned={topic: target[topic] for topic in target if topic in subscribed})
        if member.epoch != target_epoch:
            updated = updated._replace(epoch=target_epoch, previous_epoch=member.epoch)
        if updated != member:
            made.append(records.assignment_record(group.group_id, updated))
        return updated

    # ---- leaving

    def _leave(self, request: ShareGroupHeartbeatRequest, result: Result) -> ShareGroupHeartbeatResponse:
        group = self.group(request.group_id)
        if request.member_id not in group.members:
            raise _unknown_member(group, request.member_id)
        logger.info("[GroupId %s] Member %s left the share group", group.group_id, request.member_id)
        self._remove(group, request.member_id, result)
        return ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=LEAVE_EPOCH)

    def _remove(self, group: ShareGroup, member_id: str, result: Result) -> None:
        made = result.records
        made += records.member_tombstones(group.group_id, member_id)
        metadata_hash = group_hash(group.subscribed_names(leaving=member_id), self.topics)
        epoch = group.epoch + 1
        made.append(records.group_record(group.group_id, epoch, metadata_hash))
        if len(group.members) == 1:
            made.append(records.target_epoch_record(group.group_id, epoch, 0))
        self._timers.cancel(ShareTimerKey("share-session", group.group_id, member_id))

    def due(self, key: ShareTimerKey, at: Moment, result: Result) -> None:  # noqa: ARG002 - as every group type
        """A member's session is over."""
        group = self.groups.get(key.group_id)
        if not isinstance(group, ShareGroup) or key.member_id not in group.members:
            return
        logger.info(
            "[GroupId %s] Member %s fenced from the group because the member session expired",
            key.group_id,
            key.member_id,
        )
        self._remove(group, key.member_id, result)

    # ---- administration

    def alter_offsets(self, request: AlterShareGroupOffsetsRequest, ticket: Ticket) -> ShareGroupResult:
        """AlterShareGroupOffsets: an empty group begins anew at given offsets."""
        from barnabas.coord.groups.share import positions

        return positions.alter(self, request, ticket)

    def delete_offsets(self, request: DeleteShareGroupOffsetsRequest, ticket: Ticket) -> ShareGroupResult:
        """DeleteShareGroupOffsets: an empty group forgets topics."""
        from barnabas.coord.groups.share import positions

        return positions.delete(self, request, ticket)

    def delete(self, group_id: str, ticket: Ticket) -> ShareGroupResult:
        """DeleteGroups of one share group, which is there."""
        from barnabas.coord.groups.share import positions

        return positions.delete_group(self, self.group(group_id), ticket)

    def describe(self, group_id: str) -> ShareGroupDescribeResponseDescribedGroup:
        """ShareGroupDescribe of one group. KafkaError GROUP_ID_NOT_FOUND."""
        return described(self.group(group_id), self.topics)


def _heartbeat_initialized(
    groups: ShareGroups, failures: Failures, _at: Moment, *, group_id: str, asked: Partitions, parked: ParkedHeartbeat
) -> ShareGroupResult:
    """The state that a heartbeat waits for is there, or not: the heartbeat goes on, or fails."""
    result = ShareGroupResult()
    groups.states_ended(group_id, asked, failures, result)
    error = next((code for by_partition in failures.values() for code in by_partition.values()), None)
    if error is None:
        result.resumed = parked
        result.awaiting = Reply(parked.ticket, heartbeat_error(ErrorCode.UNKNOWN_SERVER_ERROR), heartbeat_error)
    else:
        logger.error("[GroupId %s] The state of partitions cannot be initialized: %s", group_id, error.name)
        result.reply(parked.ticket, heartbeat_error(error), heartbeat_error)
    return result


def _check(request: ShareGroupHeartbeatRequest) -> None:
    if not request.member_id.strip():
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")
    if not request.group_id.strip():
        raise KafkaError(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        raise KafkaError(ErrorCode.INVALID_REQUEST, "RackId can't be empty.")
    if request.member_epoch == JOIN_EPOCH and not request.subscribed_topic_names:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVE_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")


def _unknown_member(group: ShareGroup, member_id: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")
