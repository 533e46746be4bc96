"""Configs of resources as kafka-configs needs them: with synonyms, for brokers' defaults, all resources of a type."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.client.cluster import Cluster
from barnabas.client.connection import NodeConnection
from barnabas.client.tools.answers import check, checked, settle
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
SET, DELETE = 0, 1


def describe(cluster: Cluster, kind: int, name: str) -> list[DescribeConfigsResourceResult]:
    """The configs of a resource with their synonyms, by key; the name "" is that of all brokers' defaults."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)

    def attempt(deadline: float) -> list[DescribeConfigsResourceResult]:
        (result,) = _node(cluster, kind, name, deadline).call(request, DescribeConfigsResponse, deadline).results
        check(result.error_code, result.error_message)
        return sorted(result.configs, key=lambda config: config.name)

    return cluster.retry(attempt)


def alter(cluster: Cluster, kind: int, name: str, changes: Mapping[str, str | None]) -> None:
    """Set keys; None resets a key to its default."""
    configs = [
        IncrementalAlterConfigsRequestAlterableConfig(
            name=key, config_operation=DELETE if value is None else SET, value=value
        )
        for key, value in changes.items()
    ]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])

    def attempt(deadline: float) -> KafkaError | None:
        node = _node(cluster, kind, name, deadline)
        (result,) = node.call(request, IncrementalAlterConfigsResponse, deadline).responses
        return checked(result.error_code, result.error_message)

    settle(cluster, attempt)


def resources(cluster: Cluster, kind: int) -> list[str]:
    """The names of all resources of a type that have configs."""
    answer = cluster.call(ListConfigResourcesRequest(resource_types=[kind]), ListConfigResourcesResponse)
    check(answer.error_code)
    return sorted(one.resource_name for one in answer.config_resources)


def _node(cluster: Cluster, kind: int, name: str, deadline: float) -> NodeConnection:
    return cluster.node(int(name), deadline) if kind == BROKER and name.isdigit() else cluster.any_node(deadline)
