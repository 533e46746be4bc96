"""Operations that rebalance, expire, fence and reload groups and producers on request, at once.

Where Kafka's protocol has a request with the same effect, it is made on behalf of the client: a member that leaves
sees the same as one whose session has expired, a producer that is initialized fences its predecessor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from barnabas.kit.clusters.local_client import LocalClient
from barnabas.kit.errors import ControlError, NotFoundError
from barnabas.kit.operations.groups import described
from barnabas.kit.operations.registry import operation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.classic_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from barnabas.wire.messages.groups.consumer_groups import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from barnabas.wire.messages.groups.share_groups import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from barnabas.wire.messages.produce import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from barnabas.broker.coordinators.runtime import CoordinatorRuntime
    from barnabas.kit.clusters.virtual_cluster import VirtualCluster
    from barnabas.kit.values import Values

LEAVE: Final = -1
LEAVE_FOR_A_WHILE: Final = -2
JOIN: Final = 0
SUCCESSOR_SESSION_MS: Final = 45_000
"""How long the new member holds the instance id: for that long the fenced member gets FENCED_INSTANCE_ID."""
TRANSACTION: Final = 1
"""The type of a transactional id as the key of a coordinator."""
INIT_VERSION: Final = 5
"""The last version of InitProducerId without KIP-939, which is not served."""
RETRY_S: Final = 0.005
ABORT_S: Final = 10.0
"""How long a transaction that is fenced may take to be aborted, seconds."""


_PASSING: Final = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


@operation("rebalance", "group")
async def rebalance(cluster: VirtualCluster, values: Values) -> object:
    """Have every member of a group join again.

    In a classic group that is a rebalance; in a group of another protocol the members are removed, and join anew.
    """
    name = values.text("group")
    group = await _group(cluster, name)
    if group["type"] == "classic":
        broker = (await cluster.coordinator(name)).broker
        try:
            broker.group_coordinators.handle(name, lambda coordinator, at: coordinator.rebalance(name, at))
        except KafkaError as error:
            raise ControlError(f"Group {name!r}: {error}") from error
        broker.loop.end_turn()
    else:
        for member in group["members"]:
            await _remove(cluster, group, member)
    return {"members": len(group["members"])}


@operation("expire_member", "group", "member")
async def expire(cluster: VirtualCluster, values: Values) -> object:
    """End the session of a member, or of all if none is given: they are removed, and their next request fails."""
    name, member_id = values.text("group"), values.text("member", None)
    group = await _group(cluster, name)
    members = [member for member in group["members"] if member_id in {None, member["id"], member["instance_id"]}]
    if not members:
        raise NotFoundError(f"Group {name!r} has no member {member_id!r}")
    for member in members:
        await _remove(cluster, group, member)
    return {"members": [member["id"] for member in members]}


@operation("fence_instance", "group", "instance")
async def fence_instance(cluster: VirtualCluster, values: Values) -> object:
    """Give the instance id of a static member to another member, which then does nothing until its session ends."""
    name, instance = values.text("group"), values.text("instance")
    group = await _group(cluster, name)
    member = next((member for member in group["members"] if member["instance_id"] == instance), None)
    if member is None:
        raise NotFoundError(f"Group {name!r} has no static member {instance!r}")
    if group["type"] == "classic":
        await _replace_classic(cluster, name, instance)
    else:
        await _replace(cluster, name, member)
    return {}


@operation("fence_producer", "transactional_id")
async def fence_producer(cluster: VirtualCluster, values: Values) -> object:
    """Fence the producer of a transactional id, and abort its transaction, as Kafka's `fenceProducers` does."""
    transactional_id = values.text("transactional_id")
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
    finding = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[transactional_id])
    await cluster.client.ask(finding, FindCoordinatorResponse)  # makes the internal topic if it does not exist
    response = InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    with trio.move_on_after(ABORT_S):
        while True:
            client = LocalClient(await cluster.coordinator(transactional_id, of_transactions=True))
            response = await client.ask(request, InitProducerIdResponse, INIT_VERSION)
            if response.error_code not in _PASSING:
                break
            await trio.sleep(RETRY_S)  # the transaction is being aborted; no event says when that has ended
    if response.error_code:
        raise ControlError(f"{transactional_id}: {ErrorCode(response.error_code).name}")
    return {"producer_id": response.producer_id, "epoch": response.producer_epoch}


@operation("reload_coordinator", "group", "transactional_id", "seconds")
async def reload(cluster: VirtualCluster, values: Values) -> object:
    """Unload the coordinator of a group or a transactional id, and load it again from its log, `seconds` later.

    Requests that wait for it are answered NOT_COORDINATOR, new ones meanwhile COORDINATOR_LOAD_IN_PROGRESS.
    """
    if values.has("group") == values.has("transactional_id"):
        raise ControlError("Either group or transactional_id says which coordinator")
    of_transactions = values.has("transactional_id")
    key = values.text("transactional_id" if of_transactions else "group")
    broker = (await cluster.coordinator(key, of_transactions=of_transactions)).broker
    runtime: CoordinatorRuntime[Any] = broker.transaction_coordinators if of_transactions else broker.group_coordinators
    seconds = values.number("seconds", 0.0)
    try:
        runtime.reload(key, seconds)
    except KafkaError as error:
        raise ControlError(f"{key!r} has no coordinator here: {error}") from error
    broker.loop.end_turn()
    if not seconds:
        await cluster.clock.settle()
    return {}


async def _group(cluster: VirtualCluster, name: str) -> dict[str, Any]:
    group = await described(cluster, name)
    if not group["type"]:
        raise NotFoundError(f"There is no group {name!r}")
    return group


async def _remove(cluster: VirtualCluster, group: dict[str, Any], member: dict[str, Any]) -> None:
    """Remove a member, as when its session has expired."""
    name, member_id, instance = group["group"], member["id"], member["instance_id"]
    client = LocalClient(await cluster.coordinator(name))
    if group["type"] == "classic":
        leaving = MemberIdentity(member_id=member_id, group_instance_id=instance)
        await client.ask(LeaveGroupRequest(group_id=name, members=[leaving]), LeaveGroupResponse)
    elif group["type"] == "share":
        share = ShareGroupHeartbeatRequest(group_id=name, member_id=member_id, member_epoch=LEAVE)
        await client.ask(share, ShareGroupHeartbeatResponse)
    elif group["type"] == "consumer":
        leave = ConsumerGroupHeartbeatRequest(
            group_id=name, member_id=member_id, member_epoch=LEAVE, instance_id=instance
        )
        await client.ask(leave, ConsumerGroupHeartbeatResponse)
    else:
        raise ControlError(f"Members of a group of type {group['type']} cannot be removed")


async def _replace_classic(cluster: VirtualCluster, name: str, instance: str) -> None:
    """Join a classic group as the successor of a static member, with its protocols."""
    client = LocalClient(await cluster.coordinator(name))
    group = (await client.ask(DescribeGroupsRequest(groups=[name]), DescribeGroupsResponse)).groups[0]
    member = next(member for member in group.members if member.group_instance_id == instance)
    protocol = JoinGroupRequestProtocol(name=group.protocol_data, metadata=bytes(member.member_metadata))
    request = JoinGroupRequest(
        group_id=name,
        session_timeout_ms=SUCCESSOR_SESSION_MS,
        rebalance_timeout_ms=SUCCESSOR_SESSION_MS,
        member_id="",
        group_instance_id=instance,
        protocol_type=group.protocol_type,
        protocols=[protocol],
    )
    with trio.move_on_after(0):  # it takes effect at once; the answer comes when others have joined
        await client.ask(request, JoinGroupResponse)


async def _replace(cluster: VirtualCluster, name: str, member: dict[str, Any]) -> None:
    """Have a static member of a consumer group leave for a while, and another come with its instance id."""
    instance, client = member["instance_id"], LocalClient(await cluster.coordinator(name))
    leaving = ConsumerGroupHeartbeatRequest(
        group_id=name, member_id=member["id"], member_epoch=LEAVE_FOR_A_WHILE, instance_id=instance
    )
    await client.ask(leaving, ConsumerGroupHeartbeatResponse)
    coming = ConsumerGroupHeartbeatRequest(
        group_id=name,
        member_id=f"successor-of-{instance}",
        member_epoch=JOIN,
        instance_id=instance,
        rebalance_timeout_ms=SUCCESSOR_SESSION_MS,
        subscribed_topic_names=sorted(member["assignment"]) or ["__consumer_offsets"],
        topic_partitions=[],
    )
    response = await client.ask(coming, ConsumerGroupHeartbeatResponse)
    if response.error_code:
        raise ControlError(f"{instance}: {ErrorCode(response.error_code).name}: {response.error_message}")
