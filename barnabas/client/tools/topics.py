"""Topics as kafka-topics and others need them: names, descriptions with ELR, configs, creation, more partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.client.cluster import Cluster
from barnabas.client.tools.answers import check, checked, error_of, settle
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
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
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

TOPIC_RESOURCE = 2


def all_topics(cluster: Cluster) -> list[MetadataResponseTopic]:
    """Every topic that the broker shows, by name."""
    response = cluster.retry(lambda deadline: cluster.metadata(None, deadline))
    return sorted((topic for topic in response.topics if not topic.error_code), key=lambda topic: topic.name or "")


def partition_counts(cluster: Cluster, names: Sequence[str]) -> dict[str, int | KafkaError]:
    """The number of partitions of each topic, or its error."""
    if not names:
        return {}
    response = cluster.retry(lambda deadline: cluster.metadata(names, deadline))
    found: dict[str, int | KafkaError] = {}
    for topic in response.topics:
        found[topic.name or ""] = error_of(topic.error_code) or len(topic.partitions)
    return found


def describe(cluster: Cluster, names: Sequence[str], limit: int = 2000) -> list[DescribeTopicPartitionsResponseTopic]:
    """Topics with their partitions, `limit` partitions an answer; in the order of the names."""
    topics: dict[str, DescribeTopicPartitionsResponseTopic] = {}
    cursor = None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsRequestTopicRequest(name=name) for name in sorted(names)],
            response_partition_limit=limit,
            cursor=cursor,
        )
        answer = cluster.call(request, DescribeTopicPartitionsResponse)
        for topic in answer.topics:
            check(topic.error_code)
            known = topics.setdefault(topic.name or "", topic)
            if known is not topic:
                known.partitions.extend(topic.partitions)
        if answer.next_cursor is None:
            return list(topics.values())
        cursor = DescribeTopicPartitionsRequestCursor(
            topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index
        )


def topic_configs(cluster: Cluster, names: Sequence[str]) -> dict[str, list[DescribeConfigsResourceResult]]:
    """The configs of topics, in the broker's order."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None)
            for name in names
        ]
    )
    found = {}
    for result in cluster.call(request, DescribeConfigsResponse).results:
        check(result.error_code, result.error_message)
        found[result.resource_name] = result.configs
    return found


def create(
    cluster: Cluster,
    name: str,
    *,
    partitions: int = -1,
    replication_factor: int = -1,
    assignment: Sequence[Sequence[int]] = (),
    configs: Mapping[str, str],
) -> None:
    """Create a topic; KafkaError(TOPIC_ALREADY_EXISTS) and others with the broker's message."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in enumerate(assignment)
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=_timeout_ms(cluster))

    def attempt(deadline: float) -> None:
        (result,) = cluster.any_node(deadline).call(request, CreateTopicsResponse, deadline).topics
        check(result.error_code, result.error_message)

    cluster.retry(attempt)


def add_partitions(
    cluster: Cluster, counts: Mapping[str, int], assignments: Mapping[str, Sequence[Sequence[int]]]
) -> None:
    """Increase topics to these numbers of partitions; `assignments` are the brokers of the new ones, if given."""
    topics = [
        CreatePartitionsTopic(
            name=name,
            count=count,
            assignments=[CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in assignments[name]]
            if name in assignments
            else None,
        )
        for name, count in counts.items()
    ]
    request = CreatePartitionsRequest(topics=topics, timeout_ms=_timeout_ms(cluster))

    def attempt(deadline: float) -> KafkaError | None:
        results = cluster.any_node(deadline).call(request, CreatePartitionsResponse, deadline).results
        errors = [checked(result.error_code, result.error_message) for result in results]
        return next((error for error in errors if error is not None), None)

    settle(cluster, attempt)


def delete(cluster: Cluster, names: Sequence[str]) -> None:
    """Delete topics; the first error is raised."""
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names])
    request.timeout_ms = _timeout_ms(cluster)

    def attempt(deadline: float) -> KafkaError | None:
        results = cluster.any_node(deadline).call(request, DeleteTopicsResponse, deadline).responses
        errors = [checked(result.error_code, result.error_message) for result in results]
        return next((error for error in errors if error is not None), None)

    settle(cluster, attempt)


def _timeout_ms(cluster: Cluster) -> int:
    return int(cluster.timeout_s * 1000)
