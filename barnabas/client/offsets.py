"""ListOffsets for many partitions: one request per leader, retried until the cluster's timeout."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.client.cluster import Cluster
from barnabas.client.errors import raise_for
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

EARLIEST_TIMESTAMP = -2
LATEST_TIMESTAMP = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
"""Isolation levels: with the second, reads end before the first open transaction (KIP-98)."""

TopicPartition = tuple[str, int]


def list_offsets(
    cluster: Cluster, timestamps: Mapping[TopicPartition, int], *, isolation_level: int = READ_UNCOMMITTED
) -> dict[TopicPartition, int]:
    """The offset for each partition's timestamp: EARLIEST, LATEST, or the first record at or after a time in ms.

    With READ_COMMITTED the LATEST offset is the last stable one. -1 if there is no such record. Errors: `NotFound`,
    `KafkaError`, `TimedOut`.
    """

    def attempt(deadline: float) -> dict[TopicPartition, int]:
        offsets: dict[TopicPartition, int] = {}
        for node_id, request in _requests(cluster, timestamps, deadline).items():
            request.isolation_level = isolation_level
            response = cluster.node(node_id, deadline).call(request, ListOffsetsResponse, deadline)
            for topic in response.topics:
                for partition in topic.partitions:
                    raise_for(partition.error_code, f"offsets of {topic.name}-{partition.partition_index}")
                    offsets[topic.name, partition.partition_index] = partition.offset
        return offsets

    return cluster.retry(attempt)


def _requests(
    cluster: Cluster, timestamps: Mapping[TopicPartition, int], deadline: float
) -> dict[int, ListOffsetsRequest]:
    """One request per leader, with its partitions."""
    by_leader: dict[int, dict[str, list[ListOffsetsPartition]]] = {}
    for (name, index), timestamp in timestamps.items():
        leader = cluster.leader(name, index, deadline)
        partition = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        by_leader.setdefault(leader, {}).setdefault(name, []).append(partition)
    return {
        leader: ListOffsetsRequest(
            replica_id=-1,
            topics=[ListOffsetsTopic(name=name, partitions=parts) for name, parts in topics.items()],
        )
        for leader, topics in by_leader.items()
    }


def end_offsets(
    cluster: Cluster, partitions: list[TopicPartition], isolation_level: int = READ_UNCOMMITTED
) -> dict[TopicPartition, int]:
    """The offset after the last readable record of each partition."""
    return list_offsets(cluster, dict.fromkeys(partitions, LATEST_TIMESTAMP), isolation_level=isolation_level)


def start_offsets(cluster: Cluster, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    """The offset of the first record of each partition."""
    return list_offsets(cluster, dict.fromkeys(partitions, EARLIEST_TIMESTAMP))


def stable_offsets(cluster: Cluster, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    """The last stable offset of each partition: before the first record of a transaction that is open."""
    return list_offsets(cluster, dict.fromkeys(partitions, LATEST_TIMESTAMP), isolation_level=READ_COMMITTED)
