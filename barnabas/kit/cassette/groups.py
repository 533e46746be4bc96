"""The groups of a session. Requests that members send by their clock differ from run to run, so they are not compared.

Heartbeats and leave requests that the session does not have get the answer of a coordinator without news. The
leader of a classic group gets the assignment that it sent: it joins again or not, as its metadata comes, and the
assignment of another join may be empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.messages.groups.classic_groups import HeartbeatResponse, LeaveGroupResponse, MemberResponse
from barnabas.wire.messages.groups.consumer_groups import ConsumerGroupHeartbeatResponse
from barnabas.wire.messages.groups.offsets import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from barnabas.wire.schema import Message


class Groups:
    """The ids, member ids and assignments of a session's groups."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self.given_ids: set[str] = set()
        """The ids of members that a coordinator gave; others are made by clients, anew in each run."""
        self._interval_ms: dict[str, int] = {}
        self._assigned: dict[tuple[str, str], bytes] = {}
        """The assignments of this run's leaders, by group and member."""

    def add(self, api: ApiKey, request: Any, response: Any) -> None:
        """Store the groups and member ids in a request of the session and its response."""
        named = getattr(request, "groups", None) or ()
        self._known.update([getattr(request, "group_id", ""), *[getattr(group, "group_id", group) for group in named]])
        if api == ApiKey.JOIN_GROUP and response is not None:
            self.given_ids.add(response.member_id)
        elif api == ApiKey.CONSUMER_GROUP_HEARTBEAT and response is not None and response.heartbeat_interval_ms:
            self._interval_ms[request.group_id] = response.heartbeat_interval_ms

    def names(self) -> str:
        """The groups, for a sentence."""
        return ", ".join(sorted(self._known - {""})) or "none"

    def knows(self, request: Any) -> bool:
        """Whether the session has the group of a request."""
        return request.group_id in self._known

    def commit(self, request: Any) -> OffsetCommitResponse:
        """The answer to any commit: which partitions it has, and when it is made, is a matter of time."""
        response = OffsetCommitResponse()
        for topic in request.topics:
            indexes = [partition.partition_index for partition in topic.partitions]
            partitions = [OffsetCommitResponsePartition(partition_index=index) for index in indexes]
            committed = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)
            response.topics.append(committed)
        return response

    def unrecorded(self, api: ApiKey, request: Any) -> Message | None:
        """The answer to a heartbeat or leave request that the session does not have; None for other requests."""
        if api == ApiKey.HEARTBEAT and self.knows(request):
            return HeartbeatResponse()
        if api == ApiKey.LEAVE_GROUP and self.knows(request):
            members = [
                MemberResponse(member_id=member.member_id, group_instance_id=member.group_instance_id)
                for member in request.members
            ]
            return LeaveGroupResponse(members=members)
        if api == ApiKey.CONSUMER_GROUP_HEARTBEAT and request.member_epoch != 0:
            interval = self._interval_ms.get(request.group_id)
            if interval is not None:
                return ConsumerGroupHeartbeatResponse(
                    member_id=request.member_id, member_epoch=request.member_epoch, heartbeat_interval_ms=interval
                )
        return None

    def adapt(self, api: ApiKey, request: Any, response: Any) -> None:
        """Replace values of the session in a response by the values of this run."""
        member = getattr(request, "member_id", "")
        if member and getattr(response, "member_id", None):
            response.member_id = member  # a client that makes its id itself makes another one in each run
        if api == ApiKey.SYNC_GROUP and response.error_code == 0:
            for assigned in request.assignments:
                self._assigned[request.group_id, assigned.member_id] = bytes(assigned.assignment)
            response.assignment = self._assigned.get((request.group_id, member), response.assignment)
