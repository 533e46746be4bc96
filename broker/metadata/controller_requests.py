"""The requests that only the active controller answers, each with its method of the pure controller.

The handlers of the controller listener and `local_channel` use the same table, so a broker in the controller's process
gets the same answers as any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from barnabas.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from barnabas.broker.metadata.active_controller import ActiveController
    from barnabas.broker.steps import Steps
    from barnabas.coord.cluster.local_controller import Outcome
    from barnabas.wire.schema import Message

Validation = Callable[["ActiveController", Any, int], "Outcome[Any] | Steps[Outcome[Any]]"]
"""Validates a request of a version, when all earlier changes are in effect."""

VALIDATIONS: Final[dict[int, Validation]] = {
    ApiKey.CREATE_TOPICS: lambda c, request, _: c.local.create_topics_in_steps(request, c.topic_defaults()),
    ApiKey.ALTER_PARTITION: lambda c, request, version: c.local.alter_partition_in_steps(request, version),
    ApiKey.BROKER_REGISTRATION: lambda c, request, _: c.local.register_broker_in_steps(
        request, c.at(), next_offset=c.next_offset
    ),
    ApiKey.BROKER_HEARTBEAT: lambda c, request, _: c.local.heartbeat_in_steps(
        request, c.at(), committed_offset=c.image.offset
    ),
    ApiKey.ALLOCATE_PRODUCER_IDS: lambda c, request, _: c.local.allocate_producer_ids(request),
    ApiKey.UNREGISTER_BROKER: lambda c, request, _: c.local.unregister_broker_in_steps(request),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: lambda c, request, _: c.local.assign_replicas_to_dirs_in_steps(request),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda c, request, _: c.local.alter_partition_reassignments_in_steps(request),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: lambda c, request, _: c.local.list_partition_reassignments_in_steps(request),
    ApiKey.ELECT_LEADERS: lambda c, request, _: c.local.elect_leaders_in_steps(request),
}


def validate(controller: ActiveController, request: Message, version: int) -> Outcome[Any] | Steps[Outcome[Any]]:
    """Validate a request; KafkaError for an error of the whole request."""
    return VALIDATIONS[request.api_key](controller, request, version)
