"""The responses to JoinGroup and SyncGroup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups.classic.member import NO_ASSIGNMENT
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups import JoinGroupResponse, JoinGroupResponseMember, SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.coord.groups.classic.group import ClassicGroup
    from barnabas.coord.groups.classic.member import ClassicMember

UNKNOWN_MEMBER_ID = ""
"""The member id in requests of members that have none yet."""


def join_error(member_id: str, error: ErrorCode) -> JoinGroupResponse:
    """The response to a JoinGroup that failed."""
    return JoinGroupResponse(member_id=member_id, error_code=int(error), protocol_name=None)


def joined(group: ClassicGroup, member_id: str) -> JoinGroupResponse:
    """The response with the current generation; only the leader gets the list of members."""
    return JoinGroupResponse(
        members=members_for_leader(group) if member_id == group.leader else [],
        member_id=member_id,
        generation_id=group.generation,
        protocol_name=group.protocol,
        protocol_type=group.protocol_type,
        leader=group.leader or "",
    )


def members_for_leader(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    """The metadata of all members for the selected protocol, from which the leader makes the assignment."""
    protocol = group.protocol or ""
    return [
        JoinGroupResponseMember(
            member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata(protocol)
        )
        for member in group.members.values()
    ]


def sync_error(error: ErrorCode) -> SyncGroupResponse:
    """The response to a SyncGroup that failed, without an assignment."""
    return SyncGroupResponse(error_code=int(error), assignment=NO_ASSIGNMENT)


def synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    """The response with a member's assignment."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=bytes(assignment)
    )


def static_rejoined(
    group: ClassicGroup, member: ClassicMember, *, leader_before: str, knows_skip: bool
) -> JoinGroupResponse:
    """The response to a static member that joins a Stable group again, with its new member id (KIP-345, KIP-814).

    From JoinGroup v9 on a leader gets the members and `skip_assignment`. An older client would make a new assignment if
    it were the leader, so it gets the leader's previous member id.
    """
    response = joined(group, member.member_id)
    if knows_skip:
        response.skip_assignment = group.leader == member.member_id
    else:
        response.members = []
        response.leader = leader_before
    return response
