"""The requests that only the active controller answers, each with its method of the pure controller.

The handlers of the controller listener and `LocalChannel` use the same table, so a broker in the controller's process
gets the same answers as any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from barnabas.broker.config.config_schema import config_schema
from barnabas.broker.config.keys.general import (
    AUTO_LEADER_REBALANCE_ENABLE,
    BROKER_SESSION_TIMEOUT_MS,
    LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS,
)
from barnabas.coord.cluster.cluster_controller import ClusterController, ControllerSettings
from barnabas.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.steps import Steps
    from barnabas.coord.cluster.changes.topic_changes import TopicDefaults
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.coord.cluster.local_controller import Outcome
    from barnabas.coord.machine import Moment
    from barnabas.wire.schema import Message
    from barnabas.wire.types import Uuid


class Leader(Protocol):
    """The part of the controller that validations use."""

    @property
    def cluster(self) -> ClusterController:
        """The pure controller."""

    @property
    def image(self) -> ClusterImage:
        """The metadata with all earlier changes."""

    @property
    def next_offset(self) -> int:
        """The offset that the next record of the metadata log will have."""

    def at(self) -> Moment:
        """The current time, on both clocks."""

    def topic_defaults(self) -> TopicDefaults:
        """The defaults for topics whose creation leaves partitions or replicas to the brokers."""


Validation = Callable[["Leader", Any, int], "Outcome[Any] | Steps[Outcome[Any]]"]
"""Validates a request of a version, when all earlier changes are in effect."""

VALIDATIONS: Final[dict[int, Validation]] = {
    ApiKey.CREATE_TOPICS: lambda c, request, _: c.cluster.create_topics_in_steps(request, c.topic_defaults()),
    ApiKey.ALTER_PARTITION: lambda c, request, version: c.cluster.alter_partition_in_steps(request, version),
    ApiKey.BROKER_REGISTRATION: lambda c, request, _: c.cluster.register_broker_in_steps(
        request, c.at(), next_offset=c.next_offset
    ),
    ApiKey.BROKER_HEARTBEAT: lambda c, request, _: c.cluster.heartbeat_in_steps(
        request, c.at(), committed_offset=c.image.offset
    ),
    ApiKey.ALLOCATE_PRODUCER_IDS: lambda c, request, _: c.cluster.allocate_producer_ids(request),
    ApiKey.UNREGISTER_BROKER: lambda c, request, _: c.cluster.unregister_broker_in_steps(request),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: lambda c, request, _: c.cluster.assign_replicas_to_dirs_in_steps(request),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda c, request, _: c.cluster.alter_partition_reassignments_in_steps(
        request
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: lambda c, request, _: c.cluster.list_partition_reassignments_in_steps(request),
    ApiKey.ELECT_LEADERS: lambda c, request, _: c.cluster.elect_leaders_in_steps(request),
}


def cluster_controller(
    image: ClusterImage, config: ServerConfig, cluster_id: str, new_id: Callable[[], Uuid]
) -> ClusterController:
    """The pure controller with the settings of this node."""
    listeners = {endpoint.name for endpoint in (*config.listeners, *config.controller_listeners)}
    if not config.is_standalone:
        listeners |= config.security_protocols.keys()  # the listeners of other brokers are in the same map
    settings = ControllerSettings(
        session_timeout_s=config[BROKER_SESSION_TIMEOUT_MS] / 1000,
        rebalances_leaders=config[AUTO_LEADER_REBALANCE_ENABLE],
        imbalance_check_s=config[LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS],
        cluster_id=cluster_id,
    )
    return ClusterController(image, config_schema(listeners), config, config.node_id, new_id, settings)


def validate(controller: Leader, request: Message, version: int) -> Outcome[Any] | Steps[Outcome[Any]]:
    """Validate a request; KafkaError for an error of the whole request."""
    return VALIDATIONS[request.api_key](controller, request, version)
