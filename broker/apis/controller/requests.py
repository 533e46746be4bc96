"""The requests of brokers to the controller, and those of administrators that only it can answer.

AlterPartition (56), BrokerRegistration (62), BrokerHeartbeat (63), AllocateProducerIds (67), ElectLeaders (43) and the
others of `controller_requests`: each is validated by the pure controller when all earlier changes are in effect, and
answered when its records are durable and in effect. KIP-497, KIP-631, KIP-730, KIP-460.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.cluster_admin import elect_leaders
from barnabas.broker.apis.registry import CONTROLLER, api
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.coord.security.acls import Operation
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


@api(AllocateProducerIdsRequest, listener=CONTROLLER, requires=Operation.CLUSTER_ACTION)
@api(AlterPartitionRequest, listener=CONTROLLER, requires=Operation.CLUSTER_ACTION)
@api(AlterPartitionReassignmentsRequest, listener=CONTROLLER, requires=Operation.ALTER)
@api(AssignReplicasToDirsRequest, listener=CONTROLLER, requires=Operation.CLUSTER_ACTION)
@api(BrokerHeartbeatRequest, listener=CONTROLLER, requires=Operation.CLUSTER_ACTION)
@api(BrokerRegistrationRequest, listener=CONTROLLER, requires=Operation.CLUSTER_ACTION)
@api(ListPartitionReassignmentsRequest, listener=CONTROLLER, requires=Operation.DESCRIBE)
@api(UnregisterBrokerRequest, listener=CONTROLLER, requires=Operation.ALTER)
def answer(ctx: RequestContext, request: Message) -> DelayedResponse:
    """Have the active controller answer."""
    delayed = DelayedResponse(send_before_close=True)
    ctx.broker.controller.request(request, ctx.api_version, delayed.complete)
    return delayed


api(ElectLeadersRequest, listener=CONTROLLER)(elect_leaders)
