"""ShareGroupHeartbeat: the steps of one request through a group (KIP-932).

The member is updated by what the request says, which may bump the group epoch; a new target assignment is computed
when one is due; the member is given its part of it. The steps add records and leave the group's durable state as it is;
only `replay` changes that. Source: Kafka 4.4 `GroupMetadataManager.shareGroupHeartbeat`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.coord.groups.modern.members import JOIN_EPOCH, LEAVE_EPOCH
from barnabas.coord.groups.modern.metadata_hash import group_hash
from barnabas.coord.groups.modern.partitions import as_list
from barnabas.coord.groups.share import records
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.share_groups import (
    ShareGroupHeartbeatResponse,
    ShareGroupHeartbeatResponseAssignment,
    ShareGroupHeartbeatResponseTopicPartitions,
)

if TYPE_CHECKING:
    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.modern.partitions import Partitions
    from barnabas.coord.groups.settings import GroupSettings
    from barnabas.coord.groups.share.group import ShareGroup
    from barnabas.coord.groups.share.member import ShareMember
    from barnabas.coord.groups.topics import Topics
    from barnabas.coord.machine import CoordinatorRecord, Moment
    from barnabas.wire.messages.groups.share_groups import ShareGroupHeartbeatRequest

logger = logging.getLogger("kafka.coordinator.group.ShareGroups")


def check_heartbeat(request: ShareGroupHeartbeatRequest) -> None:
    """KafkaError INVALID_REQUEST for a malformed request."""
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


class Heartbeat:
    """One heartbeat of a member that is in the group or joins it."""

    def __init__(
        self,
        group: ShareGroup,
        known: ShareMember,
        request: ShareGroupHeartbeatRequest,
        context: ClientContext,
        topics: Topics,
        settings: GroupSettings,
        at: Moment,
    ) -> None:
        """`known` is the member before the request; of a new member only the id is known."""
        self._group = group
        self._known = known
        self._request = request
        self._topics = topics
        self._settings = settings
        self._at = at
        self.member = known.with_request(request.rack_id, request.subscribed_topic_names, context)
        self.records: list[CoordinatorRecord] = []
        self.epoch = group.epoch
        """The group epoch after `update`."""
        self.has_fresh_metadata = False
        """After `update`: the topics were compared with `metadata_hash`, and it still holds."""

    @property
    def _has_new_subscription(self) -> bool:
        return self.member.subscribed != self._known.subscribed

    def update(self) -> None:
        """Record the member if it has changed, and bump the group epoch if the assignment has to change."""
        group, member = self._group, self.member
        old = group.members.get(member.member_id)
        if old is None or not member.has_metadata_of(old):
            self.records.append(records.member_record(group.group_id, member))
        lacks_initialized = group.target_epoch >= group.epoch and group.lacks_initialized(self._topics)
        has_bump = self._has_new_subscription or lacks_initialized
        if not has_bump and not group.is_stale:
            return
        metadata_hash = group_hash(self.subscribed_names(), self._topics)
        if not has_bump and metadata_hash == group.metadata_hash:
            self.has_fresh_metadata = True
            return
        self.epoch = group.epoch + 1
        self.records.append(records.group_record(group.group_id, self.epoch, metadata_hash))
        logger.info("[GroupId %s] Bumped group epoch to %d", group.group_id, self.epoch)

    def subscribed_names(self) -> set[str]:
        """The topics that the group's members subscribe to."""
        return self._group.subscribed_names(instead=self.member)

    def finish(self) -> ShareGroupHeartbeatResponse:
        """Assign partitions if that is due, reconcile the member with its target, and make the response."""
        target_epoch, target = self._target()
        updated = self._reconciled(target_epoch, target)
        response = ShareGroupHeartbeatResponse(
            member_id=updated.member_id,
            member_epoch=updated.epoch,
            heartbeat_interval_ms=self._interval_ms(is_late=target_epoch < self.epoch),
        )
        is_full = self._request.member_epoch == JOIN_EPOCH or self._request.subscribed_topic_names is not None
        if is_full or updated.assigned != self._known.assigned:
            listed = as_list(updated.assigned, ShareGroupHeartbeatResponseTopicPartitions)
            response.assignment = ShareGroupHeartbeatResponseAssignment(topic_partitions=listed)
        return response

    def _target(self) -> tuple[int, Partitions]:
        """Epoch and partitions of the member's target assignment, which is computed if it is due."""
        group, member = self._group, self.member
        if group.target_epoch >= self.epoch or self._wait_ms():
            return group.target_epoch, group.target.get(member.member_id, {})
        from barnabas.coord.groups.assignors import simple
        from barnabas.coord.groups.assignors.spec import MemberSpec

        sizes = {topic_id: group.state_partitions.whole(topic_id) for topic_id in group.state_partitions.initialized}
        specs = {
            each.member_id: MemberSpec(self._topic_ids(each), group.target.get(each.member_id, {}))
            for each in {**group.members, member.member_id: member}.values()
        }
        target = simple.assign(specs, {topic_id: size for topic_id, size in sizes.items() if size})
        self.records += [
            records.target_record(group.group_id, member_id, target[member_id])
            for member_id in sorted(target)
            if target[member_id] != group.target.get(member_id)
        ]
        self.records.append(records.target_epoch_record(group.group_id, self.epoch, self._at.now_ms))
        return self.epoch, target[member.member_id]

    def _reconciled(self, target_epoch: int, target: Partitions) -> ShareMember:
        """The member with the part of its target that it still subscribes to."""
        member = self.member
        if member.epoch == target_epoch and not self._has_new_subscription:
            return member
        subscribed = self._topic_ids(member)
        updated = member._replace(assigned={topic: target[topic] for topic in target if topic in subscribed})
        if member.epoch != target_epoch:
            updated = updated._replace(epoch=target_epoch, previous_epoch=member.epoch)
        if updated != member:
            self.records.append(records.assignment_record(self._group.group_id, updated))
        return updated

    def _topic_ids(self, member: ShareMember) -> frozenset[bytes]:
        topics = map(self._topics.by_name, member.subscribed)
        return frozenset(topic.topic_id for topic in topics if topic is not None)

    def _wait_ms(self) -> int:
        """Time until `share.assignment.interval.ms` allows another target assignment; 0: now."""
        interval_ms = self._settings.share_assignment_interval_ms
        since_ms = self._at.now_ms - self._group.target_timestamp_ms
        if self._group.target_timestamp_ms <= 0 or not 0 <= since_ms < interval_ms:
            return 0
        return interval_ms - since_ms

    def _interval_ms(self, *, is_late: bool) -> int:
        """Time until the member's next heartbeat; shorter while the assignment interval delays its assignment."""
        interval_ms = self._settings.share_heartbeat_interval_ms
        return min(interval_ms, max(1, self._wait_ms())) if is_late else interval_ms
