"""Configs of topics, brokers, groups and client metrics subscriptions: read, change, list (KIP-133, KIP-339, KIP-1142).

The configs of the broker named "" are the defaults of all brokers. Errors: `KafkaError` from the broker, `NotFound`,
`TimedOut`, `Unreachable`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.connection import NodeConnection
from barnabas.client.errors import error_for, no_such, raise_for
from barnabas.wire.configdef import NOT_ACTED_ON
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
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

RESOURCE_TYPES = {"topic": 2, "broker": 4, "client-metrics": 16, "group": 32}
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
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
ALL_BROKERS = ""
"""The name of the broker whose configs are the defaults of all brokers."""


class ConfigChange(NamedTuple):
    """A change of one key: `operation` is SET, DELETE (reset to the default), APPEND or SUBTRACT (of a list)."""

    key: str
    operation: int
    value: str | None = None


def describe_config(
    cluster: Cluster, kind: str, name: str, keys: Sequence[str] | None = None, *, synonyms: bool = False
) -> list[DescribeConfigsResourceResult]:
    """The configs of a resource with their documentation, by key; only `keys` if given; if asked with `synonyms`."""
    resource = DescribeConfigsResource(
        resource_type=RESOURCE_TYPES[kind],
        resource_name=name,
        configuration_keys=None if keys is None else list(keys),
    )
    request = DescribeConfigsRequest(resources=[resource], include_documentation=True, include_synonyms=synonyms)

    def attempt(deadline: float) -> list[DescribeConfigsResourceResult]:
        result = _node(cluster, kind, name, deadline).call(request, DescribeConfigsResponse, deadline).results[0]
        _check(result.error_code, kind, name, result.error_message)
        return sorted(result.configs, key=lambda config: config.name)

    return cluster.retry(attempt)


def is_acted_on(entry: DescribeConfigsResourceResult) -> bool:
    """False for a key that the broker knows and does not use; the broker's documentation of the key says so."""
    return not (entry.documentation or "").endswith(NOT_ACTED_ON)


def topic_configs(cluster: Cluster, names: Sequence[str]) -> dict[str, list[DescribeConfigsResourceResult]]:
    """The configs of topics, in the broker's order."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=RESOURCE_TYPES["topic"], resource_name=name, configuration_keys=None)
            for name in names
        ]
    )
    configs = {}
    for result in cluster.call(request, DescribeConfigsResponse).results:
        raise_for(result.error_code, f"topic {result.resource_name!r}", result.error_message)
        configs[result.resource_name] = result.configs
    return configs


def alter_config(
    cluster: Cluster, kind: str, name: str, changes: Sequence[ConfigChange], *, validate_only: bool = False
) -> None:
    """Change keys of a resource, all or none; `validate_only` only has the broker check them."""
    configs = [
        IncrementalAlterConfigsRequestAlterableConfig(
            name=change.key, config_operation=change.operation, value=change.value
        )
        for change in changes
    ]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=RESOURCE_TYPES[kind], resource_name=name, configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)

    def attempt(deadline: float) -> None:
        node = _node(cluster, kind, name, deadline)
        result = node.call(request, IncrementalAlterConfigsResponse, deadline).responses[0]
        _check(result.error_code, kind, name, result.error_message)

    cluster.retry(attempt)


def list_config_resources(cluster: Cluster, kind: str) -> list[str]:
    """The names of the resources of a kind; of groups and client metrics those with configs."""
    request = ListConfigResourcesRequest(resource_types=[RESOURCE_TYPES[kind]])

    def attempt(deadline: float) -> list[str]:
        response = cluster.any_node(deadline).call(request, ListConfigResourcesResponse, deadline)
        raise_for(response.error_code, f"resources of type {kind}")
        return sorted(resource.resource_name for resource in response.config_resources)

    return cluster.retry(attempt)


def _node(cluster: Cluster, kind: str, name: str, deadline: float) -> NodeConnection:
    """The node to ask: the broker itself for its configs, otherwise any."""
    if kind == "broker" and name.isdigit():
        return cluster.node(int(name), deadline)
    return cluster.any_node(deadline)


def _check(code: int, kind: str, name: str, message: str | None) -> None:
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise no_such(kind, name, error_for(code, f"{kind} {name!r}", message))
    raise_for(code, f"{kind} {name!r}" if name else "defaults of all brokers", message)
