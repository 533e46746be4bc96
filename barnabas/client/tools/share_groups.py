"""Share groups as kafka-share-groups needs them: members and epochs (KIP-932)."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.errors import raise_for
from barnabas.client.offsets import TopicPartition
from barnabas.client.tools.groups import coordinator_text
from barnabas.wire.messages.share_groups import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


class ShareMember(NamedTuple):
    """A member of a share group."""

    member_id: str
    host: str
    client_id: str
    epoch: int
    assignment: list[TopicPartition]


class ShareGroup(NamedTuple):
    """A share group with its members."""

    state: str
    epoch: int
    assignment_epoch: int
    members: list[ShareMember]
    coordinator: str


def describe(cluster: Cluster, group: str) -> ShareGroup:
    """One share group; KafkaError(GROUP_ID_NOT_FOUND) with the broker's message."""

    def attempt(deadline: float) -> ShareGroup:
        node = cluster.coordinator(group, deadline)
        (found,) = node.call(ShareGroupDescribeRequest(group_ids=[group]), ShareGroupDescribeResponse, deadline).groups
        raise_for(found.error_code, f"group {group!r}", found.error_message)
        members = [
            ShareMember(
                one.member_id,
                one.client_host,
                one.client_id,
                one.member_epoch,
                [(topic.topic_name, index) for topic in one.assignment.topic_partitions for index in topic.partitions],
            )
            for one in found.members
        ]
        where = coordinator_text(cluster, node)
        return ShareGroup(found.group_state, found.group_epoch, found.assignment_epoch, members, where)

    return cluster.retry(attempt)
