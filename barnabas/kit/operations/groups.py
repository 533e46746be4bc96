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
from barnabas.wire.messages.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from barnabas.wire.messages.groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from barnabas.wire.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from barnabas.wire.messages.share_groups import (
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
    listed = [await client.ask(ListGroupsRequest(), ListGroupsResponse) for client in cluster.clients()]
    return {
        "groups": [
            {"group": one.group_id, "type": one.group_type, "state": one.group_state}
            for answer in listed
            for one in answer.groups
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
    found: dict[str, Any] = {}
    with trio.move_on_after(values.number("timeout_s", 10.0)):
        while True:
            waiter = TopicReader(cluster, OFFSETS_TOPIC, {}, committed=False)
            waiter.skip_to_ends()
            found = await described(cluster, name)
            if _is_as_wished(found, values):
                return found | {"enough": True}
            with trio.move_on_after(look_again_s):
                await waiter.wait()
    return (found or await described(cluster, name)) | {"enough": False}


def _is_as_wished(found: dict[str, Any], values: Values) -> bool:
    assigned = [sum(map(len, member["assignment"].values())) for member in found["members"]]
    if sum(map(bool, assigned)) < values.integer("members", 0) or sum(assigned) < values.integer("partitions", 0):
        return False
    state = values.text("state", None)
    if state is not None and state != found["state"]:
        return False
    committed = {(one["topic"], one["partition"]): one["offset"] for one in found["offsets"]}
    return all(committed.get((topic, index), -1) >= offset for topic, index, offset in values.list_of("offsets"))


async def described(cluster: VirtualCluster, name: str) -> dict[str, Any]:
    """A group as it is now; type "" and state Dead if there is none. ControlError while its coordinator is loaded."""
    client, kind = await _found(cluster, name)
    state, members = await _DESCRIBERS.get(kind.lower(), _nothing)(client, name)
    offsets = await (_share_offsets if kind == "share" else _committed)(client, name)
    return {"group": name, "type": kind, "state": state, "members": members, "offsets": _with_lag(cluster, offsets)}


async def _found(cluster: VirtualCluster, name: str) -> tuple[LocalClient, str]:
    """A client of the broker that coordinates a group, and the group's type; "" if there is none."""
    listed = ListGroupsResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    with trio.move_on_after(LOADED_S):
        while True:
            client = LocalClient(await cluster.coordinator(name))
            listed = await client.ask(ListGroupsRequest(), ListGroupsResponse)
            if not listed.error_code:
                return client, next((one.group_type for one in listed.groups if one.group_id == name), "")
            await trio.sleep(LOOK_S)  # no event says when a coordinator has been loaded
    raise ControlError(f"Group {name!r}: {ErrorCode(listed.error_code).name}")


async def _nothing(_: LocalClient, __: str) -> tuple[str, Members]:
    return DEAD, []


async def _classic(client: LocalClient, name: str) -> tuple[str, Members]:
    answer = await client.ask(DescribeGroupsRequest(groups=[name]), DescribeGroupsResponse)
    described = answer.groups[0]
    return described.group_state, [
        _member(one.member_id, one.group_instance_id, one.client_id, _assigned(one.member_assignment))
        for one in described.members
    ]


def _assigned(data: bytes | memoryview) -> dict[str, list[int]]:
    """The assignment of a member of a classic group; empty if it is not in the consumer protocol's format."""
    try:
        assignment = read_assignment(bytes(data))
    except ProtocolError:
        return {}
    return {one.topic: sorted(one.partitions) for one in assignment.assigned_partitions}


async def _consumer(client: LocalClient, name: str) -> tuple[str, Members]:
    asked = ConsumerGroupDescribeRequest(group_ids=[name])
    described = (await client.ask(asked, ConsumerGroupDescribeResponse)).groups[0]
    return described.group_state, [_modern_member(one, one.instance_id) for one in described.members]


async def _share(client: LocalClient, name: str) -> tuple[str, Members]:
    asked = ShareGroupDescribeRequest(group_ids=[name])
    described = (await client.ask(asked, ShareGroupDescribeResponse)).groups[0]
    return described.group_state, [_modern_member(one, None) for one in described.members]


def _modern_member(one: Any, instance_id: str | None) -> dict[str, Any]:
    assignment = {part.topic_name: sorted(part.partitions) for part in one.assignment.topic_partitions}
    return _member(one.member_id, instance_id, one.client_id, assignment)


def _member(
    member_id: str, instance_id: str | None, client_id: str, assignment: dict[str, list[int]]
) -> dict[str, Any]:
    return {"id": member_id, "instance_id": instance_id, "client_id": client_id, "assignment": assignment}


_DESCRIBERS: Final[dict[str, Callable[[Any, str], Awaitable[tuple[str, Members]]]]] = {
    "classic": _classic,
    "consumer": _consumer,
    "share": _share,
}


async def _committed(client: LocalClient, name: str) -> list[tuple[str, int, int]]:
    """Topic, partition and committed offset of a group that keeps its offsets."""
    asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None)])
    answer = await client.ask(asked, OffsetFetchResponse, NAMES_VERSION)
    return [
        (topic.name, one.partition_index, one.committed_offset)
        for topic in answer.groups[0].topics
        for one in topic.partitions
        if one.error_code == ErrorCode.NONE and one.committed_offset >= 0
    ]


async def _share_offsets(client: LocalClient, name: str) -> list[tuple[str, int, int]]:
    """Topic, partition and start offset of a share group."""
    asked = DescribeShareGroupOffsetsRequest(groups=[DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None)])
    answer = await client.ask(asked, DescribeShareGroupOffsetsResponse)
    return [
        (topic.topic_name, one.partition_index, one.start_offset)
        for topic in answer.groups[0].topics
        for one in topic.partitions
        if one.error_code == ErrorCode.NONE and one.start_offset >= 0
    ]


def _with_lag(cluster: VirtualCluster, offsets: list[tuple[str, int, int]]) -> list[dict[str, Any]]:
    rows = []
    for topic, index, offset in sorted(offsets):
        end = next((one.log.last_stable_offset for one in cluster.partitions_of(topic) if one.index == index), None)
        lag = None if end is None else max(0, end - offset)
        rows.append({"topic": topic, "partition": index, "offset": offset, "lag": lag})
    return rows
