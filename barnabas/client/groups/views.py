"""Groups of any type in one form: state, members, and their partitions.

The coordinator is asked for the type first, because each type has its own describe request. Errors: `KafkaError` from
the broker, `NotFound`, `TimedOut`, `Unreachable`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.connection import NodeConnection
from barnabas.client.errors import NotFound, error_for, no_such, raise_for
from barnabas.client.groups.consumer_groups import assigned_partitions, describe_group, list_groups
from barnabas.client.offsets import TopicPartition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.classic_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeGroupsResponseDescribedGroup,
)
from barnabas.wire.messages.groups.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseDescribedGroup,
)
from barnabas.wire.messages.groups.share_groups import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupDescribeResponseAssignment,
    ShareGroupDescribeResponseDescribedGroup,
)
from barnabas.wire.messages.groups.streams_groups import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupDescribeResponseDescribedGroup,
    StreamsGroupDescribeResponseMember,
)

CLASSIC_MEMBER = 0
"""ConsumerGroupDescribe's member type of a member that uses the classic protocol."""


class MemberView(NamedTuple):
    """A member and its partitions. Classic members have no epoch; only members of consumer groups have a target."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    partitions: list[TopicPartition]
    epoch: int | None = None
    target: Sequence[TopicPartition] = ()
    is_upgraded: bool | None = None
    """Whether it uses the consumer protocol; None if the broker does not say."""


class GroupView(NamedTuple):
    """One group."""

    group_id: str
    group_type: str
    """classic, consumer, share or streams."""
    state: str
    protocol_type: str
    assignor: str
    members: list[MemberView]
    epoch: int | None = None
    assignment_epoch: int | None = None


def group_type(cluster: Cluster, group: str) -> str:
    """The type of a group; classic if the broker does not say. `NotFound` if there is no such group."""
    return group_types(cluster, [group])[group]


def group_types(cluster: Cluster, groups: Collection[str]) -> dict[str, str]:
    """The type of each group, in the order given. `NotFound` for the first that does not exist."""
    known = {group.group_id: group.group_type.lower() or "classic" for group in list_groups(cluster)}
    for group in groups:
        if group not in known:
            raise no_such("group", group)
    return {group: known[group] for group in groups}


def is_share_group(cluster: Cluster, group: str) -> bool:
    """True for a share group that exists."""
    try:
        return group_type(cluster, group) == "share"
    except NotFound:
        return False


def has_members(cluster: Cluster, group: str) -> bool:
    """True for a group that exists and has members."""
    try:
        return bool(view_group(cluster, group).members)
    except NotFound:
        return False


def groups_reading(cluster: Cluster, topics: Collection[str]) -> dict[str, list[str]]:
    """The groups with a member that reads each of these topics; without the groups that may not be described."""
    reading: dict[str, list[str]] = {}
    try:
        live = [group.group_id for group in list_groups(cluster) if group.group_state not in {"Empty", "Dead"}]
        for view in view_groups(cluster, live):
            for topic in sorted({name for member in view.members for name, _ in member.partitions} & set(topics)):
                reading.setdefault(topic, []).append(view.group_id)
    except (KafkaError, NotFound):  # not allowed, or a group has ended meanwhile
        pass
    return reading


def view_group(cluster: Cluster, group: str, kind: str | None = None) -> GroupView:
    """One group, with its members. With its `kind`, if that is known, the cluster need not list all its groups."""
    (view,) = [_view(cluster, group, kind)] if kind is not None else view_groups(cluster, [group])
    return view


def view_groups(cluster: Cluster, groups: Collection[str]) -> Iterator[GroupView]:
    """Groups of any type, each with its members. `NotFound` if one does not exist."""
    for group, kind in group_types(cluster, groups).items():
        yield _view(cluster, group, kind)


def _view(cluster: Cluster, group: str, kind: str) -> GroupView:
    if kind not in _DESCRIBED_BY:
        return _classic(describe_group(cluster, group))
    return cluster.retry(partial(_described, cluster, _DESCRIBED_BY[kind], group))


def _described(
    cluster: Cluster, describe: Callable[[NodeConnection, str, float], GroupView], group: str, deadline: float
) -> GroupView:
    return describe(cluster.coordinator(group, deadline), group, deadline)


def consumer_group_for_tools(cluster: Cluster, group: str) -> tuple[GroupView, str]:
    """A group of the consumer or the classic protocol, and its coordinator as Kafka's tools print it.

    A classic group that does not exist has the state Dead on older brokers.
    """

    def attempt(deadline: float) -> tuple[GroupView, str]:
        node = cluster.coordinator(group, deadline)
        try:
            view = _consumer(node, group, deadline)
        except NotFound:
            described = node.call(DescribeGroupsRequest(groups=[group]), DescribeGroupsResponse, deadline).groups[0]
            raise_for(described.error_code, f"group {group!r}", described.error_message)
            view = _classic(described)
        return view, _coordinator_text(cluster, node)

    return cluster.retry(attempt)


def share_group_for_tools(cluster: Cluster, group: str) -> tuple[GroupView, str]:
    """A share group, and its coordinator as Kafka's tools print it."""

    def attempt(deadline: float) -> tuple[GroupView, str]:
        node = cluster.coordinator(group, deadline)
        return _share(node, group, deadline), _coordinator_text(cluster, node)

    return cluster.retry(attempt)


def _coordinator_text(cluster: Cluster, node: NodeConnection) -> str:
    ids = [str(other.node_id) for other in cluster.nodes.values() if (other.host, other.port) == (node.host, node.port)]
    return f"{node.host}:{node.port}  ({ids[0] if ids else '-'})"


def _classic(described: DescribeGroupsResponseDescribedGroup) -> GroupView:
    members = [
        MemberView(
            *(member.member_id, member.group_instance_id, member.client_id, member.client_host),
            list(assigned_partitions(member)),
        )
        for member in described.members
    ]
    return GroupView(
        described.group_id, "classic", described.group_state, described.protocol_type, described.protocol_data, members
    )


def _consumer(node: NodeConnection, group: str, deadline: float) -> GroupView:
    request = ConsumerGroupDescribeRequest(group_ids=[group])
    described = node.call(request, ConsumerGroupDescribeResponse, deadline).groups[0]
    _check(described.error_code, group, described.error_message)
    members = [
        MemberView(
            *(member.member_id, member.instance_id, member.client_id, member.client_host),
            _partitions(member.assignment),
            member.member_epoch,
            _partitions(member.target_assignment),
            None if member.member_type < 0 else member.member_type != CLASSIC_MEMBER,
        )
        for member in described.members
    ]
    return _modern(described, "consumer", described.assignor_name, members)


def _share(node: NodeConnection, group: str, deadline: float) -> GroupView:
    described = node.call(ShareGroupDescribeRequest(group_ids=[group]), ShareGroupDescribeResponse, deadline).groups[0]
    _check(described.error_code, group, described.error_message)
    members = [
        MemberView(
            *(member.member_id, None, member.client_id, member.client_host),
            _partitions(member.assignment),
            member.member_epoch,
        )
        for member in described.members
    ]
    return _modern(described, "share", described.assignor_name, members)


def _partitions(
    assignment: ConsumerGroupDescribeResponseAssignment | ShareGroupDescribeResponseAssignment,
) -> list[TopicPartition]:
    return [(topic.topic_name, index) for topic in assignment.topic_partitions for index in topic.partitions]


def _streams(node: NodeConnection, group: str, deadline: float) -> GroupView:
    request = StreamsGroupDescribeRequest(group_ids=[group])
    described = node.call(request, StreamsGroupDescribeResponse, deadline).groups[0]
    _check(described.error_code, group, described.error_message)
    subtopologies = (described.topology.subtopologies or []) if described.topology is not None else []
    topics = {
        subtopology.subtopology_id: [
            *subtopology.source_topics,
            *(topic.name for topic in subtopology.repartition_source_topics),
        ]
        for subtopology in subtopologies
    }
    members = [
        MemberView(
            member.member_id, member.instance_id, member.client_id, member.client_host, _task_partitions(member, topics)
        )
        for member in described.members
    ]
    return _modern(described, "streams", described.assignor_name or "", members)


def _task_partitions(member: StreamsGroupDescribeResponseMember, topics: dict[str, list[str]]) -> list[TopicPartition]:
    """The partitions of a member's active tasks: partition n of every source topic of task n's subtopology."""
    return [
        (topic, index)
        for tasks in member.assignment.active_tasks
        for topic in topics.get(tasks.subtopology_id, ())
        for index in tasks.partitions
    ]


def _modern(
    described: ConsumerGroupDescribeResponseDescribedGroup
    | ShareGroupDescribeResponseDescribedGroup
    | StreamsGroupDescribeResponseDescribedGroup,
    kind: str,
    assignor: str,
    members: list[MemberView],
) -> GroupView:
    epochs = (described.group_epoch, described.assignment_epoch)
    return GroupView(described.group_id, kind, described.group_state, kind, assignor, members, *epochs)


def _check(code: int, group: str, message: str | None) -> None:
    error = error_for(code, f"group {group!r}", message)
    if error is not None:
        raise no_such("group", group, error) if error.code == ErrorCode.GROUP_ID_NOT_FOUND else error


_DESCRIBED_BY: dict[str, Callable[[NodeConnection, str, float], GroupView]] = {
    "consumer": _consumer,
    "share": _share,
    "streams": _streams,
}
