"""Entries of DescribeGroups and ListGroups responses (KIP-518, KIP-848, KIP-1043)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups.classic.group import ClassicGroup
from barnabas.coord.groups.classic.states import GroupState
from barnabas.wire.errors import ErrorCode, error_text
from barnabas.wire.messages.groups import DescribedGroupMember, DescribeGroupsResponseDescribedGroup, ListedGroup

if TYPE_CHECKING:
    from barnabas.coord.groups.group import Group

NOT_FOUND_SINCE = 6
"""DescribeGroups versions from here on have GROUP_ID_NOT_FOUND; in older ones such a group is Dead."""


def describe_group(group: Group | None, group_id: str, api_version: int) -> DescribeGroupsResponseDescribedGroup:
    """DescribeGroups of one group. Only a Stable group has a protocol and metadata."""
    if not isinstance(group, ClassicGroup):
        gone = DescribeGroupsResponseDescribedGroup(group_id=group_id, group_state=str(GroupState.DEAD))
        if api_version >= NOT_FOUND_SINCE:
            gone.error_code = int(ErrorCode.GROUP_ID_NOT_FOUND)
            gone.error_message = error_text(
                f"Group {group_id} {'not found' if group is None else 'is not a classic group'}."
            )
        return gone
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
