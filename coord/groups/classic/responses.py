"""The responses to JoinGroup and SyncGroup, and entries of DescribeGroups and ListGroups (KIP-518, KIP-848, KIP-1043).

The responses to all members of a generation are made one by one, when each is sent, from the group's state when the
generation began.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from barnabas.coord.groups.classic.group import ClassicGroup
from barnabas.coord.groups.classic.member import NO_ASSIGNMENT
from barnabas.coord.groups.classic.states import GroupState
from barnabas.wire.errors import ErrorCode, error_text
from barnabas.wire.messages.groups.classic_groups import (
    DescribedGroupMember,
    DescribeGroupsResponseDescribedGroup,
    JoinGroupResponse,
    JoinGroupResponseMember,
    ListedGroup,
    MemberResponse,
    SyncGroupResponse,
)

if TYPE_CHECKING:
    from barnabas.coord.groups.classic.member import ClassicMember
    from barnabas.coord.groups.group import Group
    from barnabas.wire.messages.groups.classic_groups import MemberIdentity

R = TypeVar("R")
Response: TypeAlias = R | Callable[[], R]
"""A response, or what makes it when it is sent."""

NOT_FOUND_SINCE = 6
"""DescribeGroups versions from here on have GROUP_ID_NOT_FOUND; in older ones such a group is Dead."""
UNKNOWN_MEMBER_ID = ""
"""The member id in requests of members that have none yet."""


def join_error(member_id: str, error: ErrorCode) -> JoinGroupResponse:
    """The response to a JoinGroup that failed."""
    return JoinGroupResponse(member_id=member_id, error_code=int(error), protocol_name=None)


def joined(group: ClassicGroup, member_id: str) -> JoinGroupResponse:
    """The response with the current generation; only the leader gets the list of members."""
    return joined_responses(group)(member_id)()


def joined_responses(group: ClassicGroup) -> Callable[[str], Callable[[], JoinGroupResponse]]:
    """As `joined`, for each member by its id: what the group is now goes into responses that are made later."""
    generation, protocol, protocol_type = group.generation, group.protocol, group.protocol_type
    leader = group.leader or ""

    def response(member_id: str) -> JoinGroupResponse:
        return JoinGroupResponse(
            member_id=member_id,
            generation_id=generation,
            protocol_name=protocol,
            protocol_type=protocol_type,
            leader=leader,
        )

    def leader_response(members: list[tuple[str, str | None, bytes]]) -> JoinGroupResponse:
        with_members = response(leader)
        with_members.members = [
            JoinGroupResponseMember(member_id=member_id, group_instance_id=instance_id, metadata=metadata)
            for member_id, instance_id, metadata in members
        ]
        return with_members

    def maker_for(member_id: str) -> Callable[[], JoinGroupResponse]:
        return partial(response, member_id) if member_id != leader else partial(leader_response, for_leader(group))

    return maker_for


def for_leader(group: ClassicGroup) -> list[tuple[str, str | None, bytes]]:
    """Id, instance id and metadata for the selected protocol of all members: the leader makes the assignment of it."""
    protocol = group.protocol or ""
    return [(member.member_id, member.instance_id, member.metadata(protocol)) for member in group.members.values()]


def sync_error(error: ErrorCode) -> SyncGroupResponse:
    """The response to a SyncGroup that failed, without an assignment."""
    return SyncGroupResponse(error_code=int(error), assignment=NO_ASSIGNMENT)


def member_response(identity: MemberIdentity, error: ErrorCode) -> MemberResponse:
    """The response's entry for one member."""
    return MemberResponse(
        member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=int(error)
    )


def synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    """The response with a member's assignment."""
    return synced_responses(group)(assignment)()


def synced_responses(group: ClassicGroup) -> Callable[[bytes], Callable[[], SyncGroupResponse]]:
    """As `synced`, for each assignment: what the group is now goes into responses that are made later."""
    protocol, protocol_type = group.protocol, group.protocol_type

    def response(assignment: bytes) -> SyncGroupResponse:
        return SyncGroupResponse(protocol_type=protocol_type, protocol_name=protocol, assignment=bytes(assignment))

    return lambda assignment: partial(response, assignment)


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


def describe_group(group: Group | None, group_id: str, api_version: int) -> DescribeGroupsResponseDescribedGroup:
    """DescribeGroups of one group. Only a Stable group has a protocol and metadata."""
    if not isinstance(group, ClassicGroup):
        dead_group = DescribeGroupsResponseDescribedGroup(group_id=group_id, group_state=str(GroupState.DEAD))
        if api_version >= NOT_FOUND_SINCE:
            dead_group.error_code = int(ErrorCode.GROUP_ID_NOT_FOUND)
            dead_group.error_message = error_text(
                f"Group {group_id} {'not found' if group is None else 'is not a classic group'}."
            )
        return dead_group
    protocol = group.protocol if group.state is GroupState.STABLE else None
    return DescribeGroupsResponseDescribedGroup(
        group_id=group_id,
        group_state=str(group.state),
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(protocol) if protocol is not None else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def listed_group(group: Group) -> ListedGroup:
    """ListGroups of one group."""
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=str(group.state),
        group_type=group.group_type,
    )
