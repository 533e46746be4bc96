"""ConsumerGroupDescribe (KIP-848, KIP-1099)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.wire.messages.groups.consumer_groups import (
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseDescribedGroup,
    ConsumerGroupDescribeResponseMember,
    ConsumerGroupDescribeResponseTopicPartitions,
)

if TYPE_CHECKING:
    from barnabas.coord.groups.consumer.group import ConsumerGroup
    from barnabas.coord.groups.consumer.member import ConsumerMember
    from barnabas.coord.groups.topics import Topics
    from barnabas.wire.types import Uuid

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
"""Member types, by the member's protocol."""


def describe_group(
    group: ConsumerGroup, topics: Topics, default_assignor: str
) -> ConsumerGroupDescribeResponseDescribedGroup:
    """One group. Partitions of deleted topics are omitted."""
    return ConsumerGroupDescribeResponseDescribedGroup(
        group_id=group.group_id,
        group_state=str(group.state),
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor() or default_assignor,
        members=[_member(group, member, topics) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, topics: Topics) -> ConsumerGroupDescribeResponseMember:
    """A member with its assignment, including the partitions to revoke, and its target assignment."""
    has: dict[Uuid, set[int]] = {topic_id: set(owned) for topic_id, owned in member.assigned.items()}
    for topic_id, owned in member.revoking.items():
        has.setdefault(topic_id, set()).update(owned)
    return ConsumerGroupDescribeResponseMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topics),
        subscribed_topic_regex=member.subscribed_regex or "",
        assignment=_assignment(has, topics),
        target_assignment=_assignment(group.target.get(member.member_id, {}), topics),
        member_type=CLASSIC_MEMBER if member.speaks_classic else CONSUMER_MEMBER,
    )


def _assignment(partitions: Mapping[Uuid, Iterable[int]], topics: Topics) -> ConsumerGroupDescribeResponseAssignment:
    entries = []
    for topic_id, indexes in partitions.items():
        topic = topics.by_id(topic_id)
        if topic is not None:
            entries.append(
                ConsumerGroupDescribeResponseTopicPartitions(
                    topic_id=topic_id, topic_name=topic.name, partitions=sorted(indexes)
                )
            )
    return ConsumerGroupDescribeResponseAssignment(topic_partitions=entries)
