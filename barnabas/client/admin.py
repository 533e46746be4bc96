"""Topics and configs: one function per operation, retried until the cluster's timeout.

Returns messages of `barnabas.wire` where they suffice. Errors: `KafkaError` from the broker, `NotFound`, `TimedOut`,
`Unreachable`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.client.cluster import Cluster
from barnabas.client.connection import NodeConnection
from barnabas.client.errors import NotFound, raise_for
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from barnabas.wire.messages.metadata import MetadataResponseTopic
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

RESOURCE_TYPES = {"topic": 2, "broker": 4, "group": 32}
CONFIG_SOURCES = {
    1: "topic",
    2: "dynamic broker",
    3: "dynamic default broker",
    4: "static broker",
    5: "default",
    6: "dynamic broker logger",
    7: "client metrics",
    8: "group",
}
SET, DELETE = 0, 1


def list_topics(cluster: Cluster) -> list[MetadataResponseTopic]:
    """Every topic, by name."""
    response = cluster.retry(lambda deadline: cluster.metadata(None, deadline))
    return sorted(response.topics, key=lambda topic: topic.name or "")


def describe_topics(cluster: Cluster, names: Sequence[str]) -> list[MetadataResponseTopic]:
    """The topics of these names. `NotFound` names the first that does not exist."""
    response = cluster.retry(lambda deadline: cluster.metadata(names, deadline))
    for topic in response.topics:
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise NotFound(f"there is no topic {topic.name!r}")
        raise_for(topic.error_code, f"topic {topic.name!r}")
        topic.partitions.sort(key=lambda partition: partition.partition_index)
    return response.topics


def create_topic(
    cluster: Cluster,
    name: str,
    *,
    partitions: int = -1,
    replication_factor: int = -1,
    configs: Mapping[str, str] | None = None,
    validate_only: bool = False,
) -> CreatableTopicResult:
    """Create one topic; -1 uses the broker's default."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )
    timeout_ms = int(cluster.timeout_s * 1000)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms, validate_only=validate_only)

    def attempt(deadline: float) -> CreatableTopicResult:
        result = cluster.any_node(deadline).call(request, CreateTopicsResponse, deadline).topics[0]
        raise_for(result.error_code, f"cannot create topic {name!r}", result.error_message)
        return result

    return cluster.retry(attempt)


def delete_topic(cluster: Cluster, name: str) -> None:
    """Delete one topic. `NotFound` if it does not exist."""
    timeout_ms = int(cluster.timeout_s * 1000)

    def attempt(deadline: float) -> None:
        node = cluster.any_node(deadline)
        request = DeleteTopicsRequest(timeout_ms=timeout_ms)
        if node.version_for(request, None) >= 6:
            request.topics = [DeleteTopicState(name=name)]
        else:
            request.topic_names = [name]
        result = node.call(request, DeleteTopicsResponse, deadline).responses[0]
        if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise NotFound(f"there is no topic {name!r}")
        raise_for(result.error_code, f"cannot delete topic {name!r}", result.error_message)

    cluster.retry(attempt)
    cluster.forget(name)


def _config_node(cluster: Cluster, kind: str, name: str, deadline: float) -> NodeConnection:
    """The node to ask: the broker itself for its configuration, otherwise any."""
    if kind == "broker" and name.isdigit():
        return cluster.node(int(name), deadline)
    return cluster.any_node(deadline)


def describe_config(
    cluster: Cluster, kind: str, name: str, keys: Sequence[str] | None = None
) -> list[DescribeConfigsResourceResult]:
    """The configuration of a topic, broker or group, by key; only `keys` if given."""
    resource = DescribeConfigsResource(
        resource_type=RESOURCE_TYPES[kind],
        resource_name=name,
        configuration_keys=None if keys is None else list(keys),
    )
    request = DescribeConfigsRequest(resources=[resource], include_documentation=True)

    def attempt(deadline: float) -> list[DescribeConfigsResourceResult]:
        result = _config_node(cluster, kind, name, deadline).call(request, DescribeConfigsResponse, deadline).results[0]
        if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise NotFound(f"there is no {kind} {name!r}")
        raise_for(result.error_code, f"{kind} {name!r}", result.error_message)
        return sorted(result.configs, key=lambda config: config.name)

    return cluster.retry(attempt)


def alter_config(cluster: Cluster, kind: str, name: str, changes: Mapping[str, str | None]) -> None:
    """Set keys of a topic, broker or group; None resets a key to its default."""
    configs = [
        IncrementalAlterConfigsRequestAlterableConfig(
            name=key, config_operation=DELETE if value is None else SET, value=value
        )
        for key, value in changes.items()
    ]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=RESOURCE_TYPES[kind], resource_name=name, configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])

    def attempt(deadline: float) -> None:
        result = (
            _config_node(cluster, kind, name, deadline)
            .call(request, IncrementalAlterConfigsResponse, deadline)
            .responses[0]
        )
        if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise NotFound(f"there is no {kind} {name!r}")
        raise_for(result.error_code, f"{kind} {name!r}", result.error_message)

    cluster.retry(attempt)
