"""Operations on groups of every type: state, members with their assignments, committed offsets with their lag.

A request that waits is woken by the records of the group's coordinator. Each change of a group is a record, but for the
states of a classic group between two generations, which are in memory only: these are polled.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf
from typing import TYPE_CHECKING, Any, Final

import trio

from barnabas.coord.groups.consumer.embedded_protocol import read_assignment
from barnabas.kit.clusters.local_client import LocalClient
from barnabas.kit.errors import ControlError
from barnabas.kit.operations.records import TopicReader
from barnabas.kit.operations.registry import operation
from barnabas.wire.errors import ErrorCode, ProtocolError
from barnabas.wire.messages.groups.classic_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from barnabas.wire.messages.groups.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from barnabas.wire.messages.groups.offsets import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from barnabas.wire.messages.groups.share_groups import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)

if TYPE_CHECKING:
    from barnabas.kit.clusters.virtual_cluster import VirtualCluster
    from barnabas.kit.values import Values

OFFSETS_TOPIC: Final = "__consumer_offsets"
NAMES_VERSION: Final = 9
"""The last version of OffsetFetch that has topics by name."""
Members = list[dict[str, Any]]
DEAD: Final = "Dead"
LOADED_S: Final = 5.0
"""How long a coordinator that is being loaded is waited for, seconds."""
LOOK_S: Final = 0.005
LOOK_AGAIN_S: Final = 0.02


@operation("groups")
async def groups(cluster: VirtualCluster, _: Values) -> object:
    """The groups that there are, with type and state."""
    responses = [await client.ask(ListGroupsRequest(), ListGroupsResponse) for client in cluster.clients()]
    return {
        "groups": [
            {"group": group.group_id, "type": group.group_type, "state": group.group_state}
            for response in responses
            for group in response.groups
        ]
    }


@operation("group", "group")
async def group(cluster: VirtualCluster, values: Values) -> object:
    """A group as it is now; type "" and state Dead if there is none."""
    return await described(cluster, values.text("group"))


@operation("wait_for_group", "group", "members", "partitions", "offsets", "state", "timeout_s")
async def wait_for_group(cluster: VirtualCluster, values: Values) -> object:
    """A group once it meets the conditions, or when the time is up: "enough" says which.

    `members` that have an assignment, `partitions` that are assigned in all, `state`, `offsets`: [topic, partition,
    committed offset at least].
    """
    name = values.text("group")
    look_again_s = LOOK_AGAIN_S if values.has("state") else inf
    group: dict[str, Any] = {}
    with trio.move_on_after(values.number("timeout_s", 10.0)):
        while True:
            waiter = TopicReader(cluster, OFFSETS_TOPIC, {}, committed=False)
            waiter.skip_to_ends()
            group = await described(cluster, name)
            if _meets(group, values):
                return group | {"enough": True}
            with trio.move_on_after(look_again_s):
                await waiter.wait()
    return (group or await described(cluster, name)) | {"enough": False}


def _meets(group: dict[str, Any], values: Values) -> bool:
    """Whether a group meets the conditions of a request."""
    assigned = [sum(map(len, member["assignment"].values())) for member in group["members"]]
    if sum(map(bool, assigned)) < values.integer("members", 0) or sum(assigned) < values.integer("partitions", 0):
        return False
    state = values.text("state", None)
    if state is not None and state != group["state"]:
        return False
    committed = {(row["topic"], row["partition"]): row["offset"] for row in group["offsets"]}
    return all(committed.get((topic, index), -1) >= offset for topic, index, offset in values.list_of("offsets"))


async def described(cluster: VirtualCluster, name: str) -> dict[str, Any]:
    """A group as it is now; type "" and state Dead if there is none. ControlError while its coordinator is loaded."""
    client, kind = await _coordinator_and_type(cluster, name)
    describe = _DESCRIBERS.get(kind.lower())
    state, members = (DEAD, []) if describe is None else await describe(client, name)
    offsets = await (_share_offsets if kind == "share" else _committed)(client, name)
    return {"group": name, "type": kind, "state": state, "members": members, "offsets": _with_lag(cluster, offsets)}


async def _coordinator_and_type(cluster: VirtualCluster, name: str) -> tuple[LocalClient, str]:
    """A client of the broker that coordinates a group, and the group's type; "" if there is none."""
    listed = ListGroupsResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    with trio.move_on_after(LOADED_S):
        while True:
            client = LocalClient(await cluster.coordinator(name))
            listed = await client.ask(ListGroupsRequest(), ListGroupsResponse)
            if not listed.error_code:
                return client, next((group.group_type for group in listed.groups if group.group_id == name), "")
            await trio.sleep(LOOK_S)  # no event says when a coordinator has been loaded
    raise ControlError(f"Group {name!r}: {ErrorCode(listed.error_code).name}")


async def _classic(client: LocalClient, name: str) -> tuple[str, Members]:
    group = (await client.ask(DescribeGroupsRequest(groups=[name]), DescribeGroupsResponse)).groups[0]
    return group.group_state, [
        _member(member, member.group_instance_id, _assigned(member.member_assignment)) for member in group.members
    ]


def _assigned(data: bytes | memoryview) -> dict[str, list[int]]:
    """The assignment of a member of a classic group; empty if it is not in the consumer protocol's format."""
    try:
        assignment = read_assignment(bytes(data))
    except ProtocolError:
        return {}
    return {assigned.topic: sorted(assigned.partitions) for assigned in assignment.assigned_partitions}


async def _consumer(client: LocalClient, name: str) -> tuple[str, Members]:
    request = ConsumerGroupDescribeRequest(group_ids=[name])
    group = (await client.ask(request, ConsumerGroupDescribeResponse)).groups[0]
    return group.group_state, [_member(member, member.instance_id, _by_topic(member)) for member in group.members]


async def _share(client: LocalClient, name: str) -> tuple[str, Members]:
    request = ShareGroupDescribeRequest(group_ids=[name])
    group = (await client.ask(request, ShareGroupDescribeResponse)).groups[0]
    return group.group_state, [_member(member, None, _by_topic(member)) for member in group.members]


def _by_topic(member: Any) -> dict[str, list[int]]:
    return {assigned.topic_name: sorted(assigned.partitions) for assigned in member.assignment.topic_partitions}


def _member(member: Any, instance_id: str | None, assignment: dict[str, list[int]]) -> dict[str, Any]:
    return {
        "id": member.member_id,
        "instance_id": instance_id,
        "client_id": member.client_id,
        "assignment": assignment,
    }


_DESCRIBERS: Final[dict[str, Callable[[Any, str], Awaitable[tuple[str, Members]]]]] = {
    "classic": _classic,
    "consumer": _consumer,
    "share": _share,
}


async def _committed(client: LocalClient, name: str) -> list[tuple[str, int, int]]:
    """Topic, partition and committed offset of a group that keeps its offsets."""
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None)])
    response = await client.ask(request, OffsetFetchResponse, NAMES_VERSION)
    return [
        (topic.name, partition.partition_index, partition.committed_offset)
        for topic in response.groups[0].topics
        for partition in topic.partitions
        if partition.error_code == ErrorCode.NONE and partition.committed_offset >= 0
    ]


async def _share_offsets(client: LocalClient, name: str) -> list[tuple[str, int, int]]:
    """Topic, partition and start offset of a share group."""
    groups = [DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None)]
    response = await client.ask(DescribeShareGroupOffsetsRequest(groups=groups), DescribeShareGroupOffsetsResponse)
    return [
        (topic.topic_name, partition.partition_index, partition.start_offset)
        for topic in response.groups[0].topics
        for partition in topic.partitions
        if partition.error_code == ErrorCode.NONE and partition.start_offset >= 0
    ]


def _with_lag(cluster: VirtualCluster, offsets: list[tuple[str, int, int]]) -> list[dict[str, Any]]:
    rows = []
    for topic, index, offset in sorted(offsets):
        logs = [partition.log for partition in cluster.partitions_of(topic) if partition.index == index]
        end = logs[0].last_stable_offset if logs else None
        lag = None if end is None else max(0, end - offset)
        rows.append({"topic": topic, "partition": index, "offset": offset, "lag": lag})
    return rows
