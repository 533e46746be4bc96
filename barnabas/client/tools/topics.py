"""Topics as kafka-topics and others need them: names, descriptions with ELR, configs."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.client.admin.topics import list_topics
from barnabas.client.cluster import Cluster
from barnabas.client.errors import error_for, raise_for
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

TOPIC_RESOURCE = 2


def all_topics(cluster: Cluster) -> list[MetadataResponseTopic]:
    """Every topic that the broker shows, by name."""
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


def topic_configs(cluster: Cluster, names: Sequence[str]) -> dict[str, list[DescribeConfigsResourceResult]]:
    """The configs of topics, in the broker's order."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None)
            for name in names
        ]
    )
    configs = {}
    for result in cluster.call(request, DescribeConfigsResponse).results:
        raise_for(result.error_code, f"topic {result.resource_name!r}", result.error_message)
        configs[result.resource_name] = result.configs
    return configs
