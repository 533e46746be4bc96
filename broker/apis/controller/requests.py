"""The requests of brokers to the controller, and those of administrators that only it can answer.

AlterPartition (56), BrokerRegistration (62), BrokerHeartbeat (63), AllocateProducerIds (67), ElectLeaders (43) and the
others of `controller_requests`: each is validated by the pure controller when all earlier changes are in effect, and
answered when its records are durable and in effect. KIP-497, KIP-631, KIP-730, KIP-460.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.registry import CONTROLLER, api
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.wire.messages.cluster import (
    AllocateProducerIdsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    UnregisterBrokerRequest,
)
from barnabas.wire.messages.log_dirs import AssignReplicasToDirsRequest
from barnabas.wire.messages.replication import AlterPartitionRequest
from barnabas.wire.messages.topics import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.wire.schema import Message


@api(AllocateProducerIdsRequest, listener=CONTROLLER)
@api(AlterPartitionRequest, listener=CONTROLLER)
@api(AlterPartitionReassignmentsRequest, listener=CONTROLLER)
@api(AssignReplicasToDirsRequest, listener=CONTROLLER)
@api(BrokerHeartbeatRequest, listener=CONTROLLER)
@api(BrokerRegistrationRequest, listener=CONTROLLER)
@api(ElectLeadersRequest, listener=CONTROLLER)
@api(ListPartitionReassignmentsRequest, listener=CONTROLLER)
@api(UnregisterBrokerRequest, listener=CONTROLLER)
def answer(ctx: RequestContext, request: Message) -> DelayedResponse:
    """Have the active controller answer."""
    delayed = DelayedResponse(send_before_close=True)
    ctx.broker.controller.request(request, ctx.api_version, delayed.complete)
    return delayed
