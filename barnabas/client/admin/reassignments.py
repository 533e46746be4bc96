"""Replicas and leaders of partitions: reassignments (KIP-455) and elections (KIP-183, KIP-460).

Errors: `KafkaError` from the broker, `TimedOut`, `Unreachable`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.errors import error_for, raise_for
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.topics import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersRequestTopicPartitions,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)

Partition = tuple[str, int]
PREFERRED, UNCLEAN = 0, 1
"""Kinds of elections."""
_NOTHING_TO_DO = (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)


class Reassignment(NamedTuple):
    """A reassignment that is not complete."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]


def reassign(cluster: Cluster, targets: Mapping[Partition, Sequence[int] | None]) -> None:
    """Start to give partitions these replicas, or, for None, cancel the reassignment. The first error is raised."""
    topics: dict[str, ReassignableTopic] = {}
    for (name, index), replicas in targets.items():
        topic = topics.setdefault(name, ReassignableTopic(name=name))
        placed = None if replicas is None else list(replicas)
        topic.partitions.append(ReassignablePartition(partition_index=index, replicas=placed))
    request = AlterPartitionReassignmentsRequest(timeout_ms=int(cluster.timeout_s * 1000), topics=list(topics.values()))
    response = cluster.call(request, AlterPartitionReassignmentsResponse)
    raise_for(response.error_code, "the reassignment", response.error_message)
    for answered in response.responses:
        for partition in answered.partitions:
            raise_for(partition.error_code, f"{answered.name}-{partition.partition_index}", partition.error_message)


def ongoing(cluster: Cluster) -> dict[Partition, Reassignment]:
    """The reassignments that are not complete, by partition."""
    request = ListPartitionReassignmentsRequest(timeout_ms=int(cluster.timeout_s * 1000), topics=None)
    response = cluster.call(request, ListPartitionReassignmentsResponse)
    raise_for(response.error_code, "the reassignments", response.error_message)
    return {
        (topic.name, partition.partition_index): Reassignment(
            partition.replicas, partition.adding_replicas, partition.removing_replicas
        )
        for topic in response.topics
        for partition in topic.partitions
    }


def elect_leaders(
    cluster: Cluster, partitions: Collection[Partition] | None, kind: int = PREFERRED
) -> dict[Partition, ErrorCode]:
    """Elect leaders (None: of all partitions); the partitions for which that failed, with the error."""
    results = election_results(cluster, partitions, kind)
    return {partition: error.code for partition, error in results.items() if error and error.code not in _NOTHING_TO_DO}


def election_results(
    cluster: Cluster, partitions: Collection[Partition] | None, kind: int
) -> dict[Partition, KafkaError | None]:
    """Elect leaders (None: of all partitions); the outcome for each partition that the controller answers for."""
    topics = None if partitions is None else _by_topic(partitions)
    request = ElectLeadersRequest(election_type=kind, topic_partitions=topics, timeout_ms=int(cluster.timeout_s * 1000))
    response = cluster.call(request, ElectLeadersResponse)
    raise_for(response.error_code, "the election")
    return {
        (topic.topic, result.partition_id): error_for(result.error_code, "", result.error_message)
        for topic in response.replica_election_results
        for result in topic.partition_result
    }


def _by_topic(partitions: Iterable[Partition]) -> list[ElectLeadersRequestTopicPartitions]:
    topics: dict[str, ElectLeadersRequestTopicPartitions] = {}
    for name, index in partitions:
        topics.setdefault(name, ElectLeadersRequestTopicPartitions(topic=name)).partitions.append(index)
    return list(topics.values())
