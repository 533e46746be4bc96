"""The cluster as a whole: brokers, controller, features, partitions without enough replicas (KIP-700, KIP-584).

Errors: `KafkaError` from the broker, `TimedOut`, `Unreachable`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.connection import SOFTWARE_NAME
from barnabas.client.errors import raise_for
from barnabas.coord.security.acls import Operation
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.cluster import (
    FeatureUpdateKey,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from barnabas.wire.messages.metadata import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.wire.messages.raft import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
"""How the level of a feature may change; an unsafe downgrade may lose metadata."""

VERSION_WITH_FENCED_BROKERS = 2


class Feature(NamedTuple):
    """A feature's finalized level (0: disabled), and the levels that the broker supports."""

    name: str
    level: int
    lowest: int
    highest: int


def describe_cluster(cluster: Cluster, *, with_fenced: bool = True) -> DescribeClusterResponse:
    """Cluster id, controller and brokers; fenced ones too, if the broker can list them."""

    def attempt(deadline: float) -> DescribeClusterResponse:
        node = cluster.any_node(deadline)
        request = DescribeClusterRequest()
        request.include_fenced_brokers = with_fenced and node.version_for(request, None) >= VERSION_WITH_FENCED_BROKERS
        response = node.call(request, DescribeClusterResponse, deadline)
        raise_for(response.error_code, "the cluster", response.error_message)
        response.brokers.sort(key=lambda broker: broker.broker_id)
        return response

    return cluster.retry(attempt)


def allowed_operations(cluster: Cluster) -> set[str]:
    """What the client may do to the cluster itself, by Kafka's names (KIP-430)."""
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)

    def attempt(deadline: float) -> set[str]:
        response = cluster.any_node(deadline).call(request, DescribeClusterResponse, deadline)
        raise_for(response.error_code, "the cluster", response.error_message)
        bits = response.cluster_authorized_operations
        return {operation.name for operation in Operation if bits >= 0 and bits >> operation & 1}

    return cluster.retry(attempt)


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


def unregister_broker(cluster: Cluster, broker: int) -> None:
    """Remove the registration of a broker."""
    response = cluster.call(UnregisterBrokerRequest(broker_id=broker), UnregisterBrokerResponse)
    raise_for(response.error_code, f"broker {broker}", response.error_message)


def api_versions(cluster: Cluster) -> ApiVersionsResponse:
    """The answer of a broker to ApiVersions, with its supported and the finalized features."""
    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=cluster.software_version)
    response = cluster.call(request, ApiVersionsResponse)
    raise_for(response.error_code, "features")
    return response


def describe_features(cluster: Cluster) -> list[Feature]:
    """The features of the cluster and of the broker that answers, by name."""
    response = api_versions(cluster)
    levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
    supported = {feature.name: (feature.min_version, feature.max_version) for feature in response.supported_features}
    return [
        Feature(name, levels.get(name, 0), *supported.get(name, (0, 0))) for name in sorted(levels.keys() | supported)
    ]


def update_features(
    cluster: Cluster, levels: Mapping[str, int], upgrade_type: int, *, validate_only: bool = False
) -> None:
    """Set the levels of features, all or none; 0 disables a feature. `upgrade_type` is the same for all."""
    request = UpdateFeaturesRequest(
        timeout_ms=int(cluster.timeout_s * 1000),
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=upgrade_type)
            for name, level in levels.items()
        ],
        validate_only=validate_only,
    )

    def attempt(deadline: float) -> None:
        response = cluster.any_node(deadline).call(request, UpdateFeaturesResponse, deadline)
        for result in response.results:
            raise_for(result.error_code, f"feature {result.feature}", response.error_message or result.error_message)
        raise_for(response.error_code, f"features {', '.join(levels)}", response.error_message)

    cluster.retry(attempt)


def is_offline(partition: MetadataResponsePartition) -> bool:
    """True if no broker leads the partition."""
    return partition.leader_id < 0


def is_under_replicated(partition: MetadataResponsePartition) -> bool:
    """True if not every replica is in sync."""
    return len(partition.isr_nodes) < len(partition.replica_nodes)


def partitions_where(
    topics: list[MetadataResponseTopic], *, offline: bool
) -> list[tuple[str, MetadataResponsePartition]]:
    """The partitions that are offline, or the led ones that are under-replicated, by topic and number."""
    return [
        (topic.name or "", partition)
        for topic in topics
        for partition in sorted(topic.partitions, key=lambda each: each.partition_index)
        if (is_offline(partition) if offline else not is_offline(partition) and is_under_replicated(partition))
    ]
