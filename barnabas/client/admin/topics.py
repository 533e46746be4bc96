"""Topics: one function per operation, retried until the cluster's timeout.

Returns messages of `barnabas.wire` where they suffice. Errors: `KafkaError` from the broker, `NotFound`, `TimedOut`,
`Unreachable`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic, sleep

from barnabas.client.cluster import CREATION_PATIENCE_S, FIRST_PAUSE_S, Cluster
from barnabas.client.errors import error_for, no_such, outcome_for, raise_for
from barnabas.client.offsets import TopicPartition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsRequestTopicRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    MetadataResponseTopic,
)
from barnabas.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

_NOT_TRIMMED = {
    int(ErrorCode.POLICY_VIOLATION): "the topic's cleanup.policy does not have delete",
    int(ErrorCode.INVALID_TOPIC_EXCEPTION): "it is an internal topic",
}
"""Sentences for the errors of DeleteRecords, whose responses have no text."""


def list_topics(cluster: Cluster) -> list[MetadataResponseTopic]:
    """Every topic, by name."""
    response = cluster.retry(lambda deadline: cluster.metadata(None, deadline))
    return sorted(response.topics, key=lambda topic: topic.name or "")


def describe_topics(cluster: Cluster, names: Sequence[str]) -> list[MetadataResponseTopic]:
    """The topics of these names. `NotFound` names the first that does not exist."""
    response = cluster.retry(lambda deadline: cluster.metadata(names, deadline))
    for topic in response.topics:
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise no_such("topic", topic.name)
        raise_for(topic.error_code, f"topic {topic.name!r}")
        topic.partitions.sort(key=lambda partition: partition.partition_index)
    return response.topics


def all_topics(cluster: Cluster) -> list[MetadataResponseTopic]:
    """Every topic that can be described, by name."""
    return [topic for topic in list_topics(cluster) if not topic.error_code]


def partition_counts(cluster: Cluster, names: Sequence[str]) -> dict[str, int | KafkaError]:
    """The number of partitions of each topic, or its error."""
    if not names:
        return {}
    response = cluster.retry(lambda deadline: cluster.metadata(names, deadline))
    counts: dict[str, int | KafkaError] = {}
    for topic in response.topics:
        counts[topic.name or ""] = error_for(topic.error_code, f"topic {topic.name!r}") or len(topic.partitions)
    return counts


def describe_topic_partitions(
    cluster: Cluster, names: Sequence[str], limit: int = 2000
) -> list[DescribeTopicPartitionsResponseTopic]:
    """Topics with their partitions, `limit` partitions an answer; in the order of the names."""
    topics: dict[str, DescribeTopicPartitionsResponseTopic] = {}
    cursor = None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsRequestTopicRequest(name=name) for name in sorted(names)],
            response_partition_limit=limit,
            cursor=cursor,
        )
        response = cluster.call(request, DescribeTopicPartitionsResponse)
        for topic in response.topics:
            raise_for(topic.error_code, f"topic {topic.name!r}")
            known = topics.setdefault(topic.name or "", topic)
            if known is not topic:
                known.partitions.extend(topic.partitions)
        if response.next_cursor is None:
            return list(topics.values())
        cursor = DescribeTopicPartitionsRequestCursor(
            topic_name=response.next_cursor.topic_name, partition_index=response.next_cursor.partition_index
        )


def create_topic(
    cluster: Cluster,
    name: str,
    *,
    partitions: int = -1,
    replication_factor: int = -1,
    assignment: Sequence[Sequence[int]] = (),
    configs: Mapping[str, str] | None = None,
    validate_only: bool = False,
) -> CreatableTopicResult:
    """Create one topic; -1 uses the broker's default, `assignment` are the brokers of each partition."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in enumerate(assignment)
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )
    timeout_ms = int(cluster.timeout_s * 1000)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms, validate_only=validate_only)

    def attempt(deadline: float) -> CreatableTopicResult:
        result = cluster.any_node(deadline).call(request, CreateTopicsResponse, deadline).topics[0]
        raise_for(result.error_code, f"cannot create topic {name!r}", result.error_message)
        return result

    return cluster.retry(attempt)


def wait_for_topic(cluster: Cluster, name: str) -> None:
    """Wait until the brokers know a topic that was just created: Kafka's controller answers before they do.

    Returns after `CREATION_PATIENCE_S` in any case.
    """
    end = monotonic() + min(cluster.timeout_s, CREATION_PATIENCE_S)
    pause = FIRST_PAUSE_S

    def is_unknown(deadline: float) -> bool:
        return cluster.metadata([name], deadline).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    while cluster.retry(is_unknown) and monotonic() + pause < end:
        sleep(pause)
        pause *= 2


def delete_topics(cluster: Cluster, names: Sequence[str]) -> None:
    """Delete topics in one request; the first error is raised, `NotFound` for a topic that does not exist."""
    timeout_ms = int(cluster.timeout_s * 1000)

    def attempt(deadline: float) -> None:
        node = cluster.any_node(deadline)
        request = DeleteTopicsRequest(timeout_ms=timeout_ms)
        if node.version_for(request, None) >= 6:
            request.topics = [DeleteTopicState(name=name) for name in names]
        else:
            request.topic_names = list(names)
        for result in node.call(request, DeleteTopicsResponse, deadline).responses:
            _check(result.error_code, f"cannot delete topic {result.name!r}", result.name, result.error_message)

    cluster.retry(attempt)
    for name in names:
        cluster.forget(name)


def add_partitions(
    cluster: Cluster,
    totals: Mapping[str, int],
    assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
    *,
    validate_only: bool = False,
) -> None:
    """Grow topics to these numbers of partitions; `assignments` are the brokers of the new ones, if given.

    The first error is raised, `NotFound` for a topic that does not exist.
    """
    topics = [CreatePartitionsTopic(name=name, count=total, assignments=None) for name, total in totals.items()]
    for topic in topics:
        if assignments and topic.name in assignments:
            topic.assignments = [
                CreatePartitionsAssignment(broker_ids=list(assignment)) for assignment in assignments[topic.name]
            ]
    timeout_ms = int(cluster.timeout_s * 1000)
    request = CreatePartitionsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=validate_only)

    def attempt(deadline: float) -> None:
        for result in cluster.any_node(deadline).call(request, CreatePartitionsResponse, deadline).results:
            about = f"cannot add partitions to topic {result.name!r}"
            _check(result.error_code, about, result.name, result.error_message)

    cluster.retry(attempt)
    for name in totals:
        cluster.forget(name)


def _check(code: int, about: str, topic: str | None, message: str | None) -> None:
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise no_such("topic", topic, error_for(code, about, message))
    raise_for(code, about, message)


def delete_records(cluster: Cluster, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | KafkaError]:
    """Delete the records before an offset of each partition, all with -1; its new start offset, or its error.

    Source: KIP-107.
    """
    timeout_ms = int(cluster.timeout_s * 1000)

    def attempt(deadline: float) -> dict[TopicPartition, int | KafkaError]:
        by_leader: dict[int, dict[str, list[DeleteRecordsPartition]]] = {}
        for (name, index), offset in offsets.items():
            leader = cluster.leader(name, index, deadline)
            record_limit = DeleteRecordsPartition(partition_index=index, offset=offset)
            by_leader.setdefault(leader, {}).setdefault(name, []).append(record_limit)
        starts: dict[TopicPartition, int | KafkaError] = {}
        for leader, topics in by_leader.items():
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=name, partitions=parts) for name, parts in topics.items()],
                timeout_ms=timeout_ms,
            )
            response = cluster.node(leader, deadline).call(request, DeleteRecordsResponse, deadline)
            for topic in response.topics:
                for partition in topic.partitions:
                    about = f"cannot trim {topic.name}-{partition.partition_index}"
                    error = outcome_for(partition.error_code, about, hint=_NOT_TRIMMED.get(partition.error_code))
                    starts[topic.name, partition.partition_index] = error or partition.low_watermark
        return starts

    return cluster.retry(attempt)
