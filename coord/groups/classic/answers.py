"""The answers that joining and syncing members get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups.classic.member import NO_ASSIGNMENT
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups import JoinGroupResponse, JoinGroupResponseMember, SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.coord.groups.classic.group import ClassicGroup
    from barnabas.coord.groups.classic.member import ClassicMember

UNKNOWN_MEMBER_ID = ""
"""The member id of one that has none yet."""


def join_error(member_id: str, error: ErrorCode) -> JoinGroupResponse:
    """A JoinGroup that failed."""
    return JoinGroupResponse(member_id=member_id, error_code=int(error), protocol_name=None)


def joined(group: ClassicGroup, member_id: str) -> JoinGroupResponse:
    """The current generation, as `member_id` gets to see it: only the leader is told who else is there."""
    return JoinGroupResponse(
        members=members_for_leader(group) if member_id == group.leader else [],
        member_id=member_id,
        generation_id=group.generation,
        protocol_name=group.protocol,
        protocol_type=group.protocol_type,
        leader=group.leader or "",
    )


def members_for_leader(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    """Everybody's metadata for the chosen protocol: what the leader assigns by."""
    protocol = group.protocol or ""
    return [
        JoinGroupResponseMember(
            member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata(protocol)
        )
        for member in group.members.values()
    ]


def sync_error(error: ErrorCode) -> SyncGroupResponse:
    """A SyncGroup that failed: no assignment."""
    return SyncGroupResponse(error_code=int(error), assignment=NO_ASSIGNMENT)


def synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    """A member's assignment."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=bytes(assignment)
    )


def static_rejoined(
    group: ClassicGroup, member: ClassicMember, *, leader_before: str, knows_skip: bool
) -> JoinGroupResponse:
    """A static member that came back into a Stable group, under its new member id (KIP-345, KIP-814).

    From JoinGroup v9 on a leader is told so, with the members, and that it must not assign again. An older client would
    assign at once, so it is shown the member id that led before.
    """
    response = joined(group, member.member_id)
    if knows_skip:
        response.skip_assignment = group.leader == member.member_id
    else:
        response.members = []
        response.leader = leader_before
    return response
