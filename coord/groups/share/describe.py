"""ShareGroupDescribe (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups.assignors.simple import NAME
from barnabas.wire.messages.share_groups import (
    ShareGroupDescribeResponseAssignment,
    ShareGroupDescribeResponseDescribedGroup,
    ShareGroupDescribeResponseMember,
    ShareGroupDescribeResponseTopicPartitions,
)

if TYPE_CHECKING:
    from barnabas.coord.groups.modern.partitions import Partitions
    from barnabas.coord.groups.share.group import ShareGroup
    from barnabas.coord.groups.share.member import ShareMember
    from barnabas.coord.groups.topics import Topics


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
