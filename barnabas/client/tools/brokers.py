"""Brokers as kafka-cluster, kafka-log-dirs, kafka-features and kafka-broker-api-versions need them."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.client.cluster import Cluster
from barnabas.client.errors import error_for, raise_for
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.cluster import (
    FeatureUpdateKey,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from barnabas.wire.messages.log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from barnabas.wire.messages.metadata import DescribeClusterRequest, DescribeClusterResponse
from barnabas.wire.messages.raft import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)


def describe_cluster(cluster: Cluster, *, with_fenced: bool = False) -> DescribeClusterResponse:
    """The cluster's id and its brokers."""
    response = cluster.call(DescribeClusterRequest(include_fenced_brokers=with_fenced), DescribeClusterResponse)
    raise_for(response.error_code, "the cluster", response.error_message)
    return response


def unregister_broker(cluster: Cluster, broker: int) -> None:
    """Remove the registration of a broker."""
    response = cluster.call(UnregisterBrokerRequest(broker_id=broker), UnregisterBrokerResponse)
    raise_for(response.error_code, f"broker {broker}", response.error_message)


def describe_quorum(cluster: Cluster) -> DescribeQuorumResponse:
    """The quorum of the controllers."""
    partitions = [DescribeQuorumRequestPartitionData(partition_index=0)]
    topic = DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=partitions)

    def attempt(deadline: float) -> DescribeQuorumResponse:
        node = cluster.any_node(deadline)
        response = node.call(DescribeQuorumRequest(topics=[topic]), DescribeQuorumResponse, deadline)
        raise_for(response.error_code, "the quorum", response.error_message)
        quorum = response.topics[0].partitions[0]
        raise_for(quorum.error_code, "the quorum", quorum.error_message)
        return response

    return cluster.retry(attempt)


def api_versions(cluster: Cluster, node_id: int) -> dict[int, ApiVersion]:
    """The APIs that one broker offers."""
    return cluster.retry(lambda deadline: cluster.node(node_id, deadline).versions)


def features(cluster: Cluster) -> ApiVersionsResponse:
    """An answer with the supported and the finalized features."""
    request = ApiVersionsRequest(client_software_name="barnabas", client_software_version=cluster.software_version)
    response = cluster.call(request, ApiVersionsResponse)
    raise_for(response.error_code, "the cluster")
    return response


def update_feature(
    cluster: Cluster, feature: str, level: int, *, upgrade_type: int, validate_only: bool
) -> KafkaError | None:
    """Set the level of one feature; 1 upgrades, 2 downgrades safely, 3 downgrades whatever is lost. The outcome."""
    update = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=upgrade_type)
    request = UpdateFeaturesRequest(feature_updates=[update], validate_only=validate_only)
    response = cluster.call(request, UpdateFeaturesResponse)
    if response.error_code:
        return error_for(response.error_code, f"feature {feature!r}", response.error_message)
    failed = [error_for(result.error_code, f"feature {feature!r}", result.error_message) for result in response.results]
    return next((error for error in failed if error is not None), None)


def log_dirs(cluster: Cluster, node_id: int, topics: Sequence[str]) -> list[DescribeLogDirsResult]:
    """The log directories of a broker with the partitions of `topics`, of all without any."""
    counts = cluster.retry(lambda deadline: cluster.metadata(topics, deadline)).topics if topics else []
    partitions = [
        DescribableLogDirTopic(
            topic=topic.name or "", partitions=[partition.partition_index for partition in topic.partitions]
        )
        for topic in counts
        if not topic.error_code
    ]
    request = DescribeLogDirsRequest(topics=partitions if topics else None)
    response = cluster.call(request, DescribeLogDirsResponse, node_id=node_id)
    raise_for(response.error_code, "the cluster")
    return response.results
