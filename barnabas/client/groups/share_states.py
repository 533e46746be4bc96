"""The stored delivery states of share groups: which records were delivered how often (ReadShareGroupState, KIP-932).

The share coordinators store them for the leaders of the partitions, so a user needs CLUSTER_ACTION. A read with the
leader epoch that the coordinator has stored changes nothing there; the summary tells it. Acquired records are known to
the partition's leader alone: they are stored as available until they are acknowledged.
Errors: `KafkaError` from the broker, `NotFound`, `TimedOut`, `Unreachable`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.errors import error_for, raise_for
from barnabas.client.offsets import TopicPartition
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups.classic_groups import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.wire.messages.groups.share_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateRequestPartitionData,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryRequestPartitionData,
    ReadShareGroupStateSummaryResponse,
    ReadStateData,
    ReadStateSummaryData,
)
from barnabas.wire.types import Uuid, uuid_to_text

SHARE = 2
"""FindCoordinator's key type of share coordinators."""
STATES = {0: "available", 2: "acknowledged", 4: "archived"}


class DeliveryBatch(NamedTuple):
    """Records between the start offset of a share partition and its end, from `first` to `last`."""

    first: int
    last: int
    state: str
    """available (to be delivered again), acknowledged, or archived (rejected, or delivered too often)."""
    deliveries: int


class ShareState(NamedTuple):
    """The stored state of a share partition."""

    start_offset: int
    """-1 before anything was read."""
    leader_epoch: int
    complete: int
    """Records after the start offset whose delivery is complete; -1 if the coordinator does not tell."""
    batches: list[DeliveryBatch]


def share_states(
    cluster: Cluster, group: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, ShareState]:
    """The states of share partitions, without those that are not stored: nothing was read there."""

    def attempt(deadline: float) -> dict[TopicPartition, ShareState]:
        topics = cluster.metadata(sorted({name for name, _ in partitions}), deadline).topics
        ids = {topic.name: topic.topic_id for topic in topics if not topic.error_code}
        states: dict[TopicPartition, ShareState] = {}
        for name, index in sorted(partitions):
            if name in ids:
                state = _state(cluster, group, ids[name], index, f"{name}-{index}", deadline)
                if state is not None:
                    states[name, index] = state
        return states

    return cluster.retry(attempt) if partitions else {}


def _state(cluster: Cluster, group: str, topic_id: Uuid, index: int, about: str, deadline: float) -> ShareState | None:
    node = cluster.node(_coordinator(cluster, f"{group}:{uuid_to_text(topic_id)}:{index}", deadline), deadline)
    part = ReadShareGroupStateSummaryRequestPartitionData(partition=index, leader_epoch=-1)
    question = ReadShareGroupStateSummaryRequest(
        group_id=group, topics=[ReadStateSummaryData(topic_id=topic_id, partitions=[part])]
    )
    summary = node.call(question, ReadShareGroupStateSummaryResponse, deadline).results[0].partitions[0]
    if summary.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or summary.leader_epoch < 0:
        return None
    raise_for(summary.error_code, about, summary.error_message)
    if summary.start_offset < 0:
        return ShareState(summary.start_offset, summary.leader_epoch, summary.delivery_complete_count, [])
    read = ReadShareGroupStateRequestPartitionData(partition=index, leader_epoch=summary.leader_epoch)
    request = ReadShareGroupStateRequest(group_id=group, topics=[ReadStateData(topic_id=topic_id, partitions=[read])])
    stored = node.call(request, ReadShareGroupStateResponse, deadline).results[0].partitions[0]
    raise_for(stored.error_code, about, stored.error_message)
    batches = [
        DeliveryBatch(
            batch.first_offset,
            batch.last_offset,
            STATES.get(batch.delivery_state, str(batch.delivery_state)),
            batch.delivery_count,
        )
        for batch in stored.state_batches
    ]
    return ShareState(stored.start_offset, summary.leader_epoch, summary.delivery_complete_count, batches)


def _coordinator(cluster: Cluster, key: str, deadline: float) -> int:
    request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key])
    response = cluster.any_node(deadline).call(request, FindCoordinatorResponse, deadline)
    (coordinator,) = response.coordinators
    failure = error_for(coordinator.error_code, f"the share coordinator of {key}", coordinator.error_message)
    if failure is not None:
        raise failure
    return coordinator.node_id
