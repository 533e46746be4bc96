"""Whose configs a request may describe or change: the cluster's for brokers and metrics, or those of a topic or group.

Source: Kafka 4.4 `ConfigHelper.handleDescribeConfigsRequest`, `ControllerApis.authorizeAlterResource`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from barnabas.broker.apis.access import CLUSTER_TEXT, GROUP_TEXT, TOPIC_TEXT
from barnabas.coord.cluster.changes.topic_changes import duplicates
from barnabas.coord.cluster.resources import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from barnabas.coord.security.acls import ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.context import RequestContext
    from barnabas.coord.security.acls import Operation

_RESOURCES = {
    TOPIC: (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED, TOPIC_TEXT),
    GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED, GROUP_TEXT),
}


class Resource(Protocol):
    """What has configs, as a request names it."""

    resource_type: int
    resource_name: str


R = TypeVar("R", bound=Resource)


def config_error(ctx: RequestContext, operation: Operation, resource: Resource) -> KafkaError | None:
    """The error if the request may not do something to configs; of an unknown kind of resource others tell."""
    if resource.resource_type in (BROKER, BROKER_LOGGER, CLIENT_METRICS):
        if ctx.is_allowed_on_cluster(operation):
            return None
        return KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, CLUSTER_TEXT)
    if resource.resource_type not in _RESOURCES:
        return None
    kind, code, text = _RESOURCES[resource.resource_type]
    return None if ctx.is_allowed(operation, kind, resource.resource_name) else KafkaError(code, text)


def split_refused(
    ctx: RequestContext, operation: Operation, resources: Sequence[R]
) -> tuple[list[R], list[tuple[R, KafkaError]]]:
    """The resources whose configs may be changed, and the others with their errors; those named twice are invalid."""
    twice = duplicates((one.resource_type, one.resource_name) for one in resources)
    allowed = []
    refused = []
    for one in resources:
        is_once = (one.resource_type, one.resource_name) not in twice
        error = config_error(ctx, operation, one) if is_once else None
        if error is None:
            allowed.append(one)
        else:
            refused.append((one, error))
    return allowed, refused
