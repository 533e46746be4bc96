"""Administration of a cluster, on brokers that have the controller in their process.

ElectLeaders (43), AlterPartitionReassignments (45), ListPartitionReassignments (46), DescribeQuorum (55),
UnregisterBroker (64), AddRaftVoter (80) and RemoveRaftVoter (81): the same answers as on a controller listener. Other
brokers forward these requests. KIP-455, KIP-460, KIP-595, KIP-631, KIP-853.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.registry import api
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.cluster import UnregisterBrokerRequest
from barnabas.wire.messages.topics import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.wire.schema import Message


@api(AlterPartitionReassignmentsRequest)
@api(ElectLeadersRequest)
@api(ListPartitionReassignmentsRequest)
def answer(ctx: RequestContext, request: Message) -> DelayedResponse:
    """Have the controller of this process answer."""
    return _ask(ctx, request)


def _ask(ctx: RequestContext, request: Message) -> DelayedResponse:
    delayed = DelayedResponse(send_before_close=True)
    ctx.broker.controller.request(request, ctx.api_version, delayed.complete)
    return delayed


@api(UnregisterBrokerRequest)
def unregister_broker(ctx: RequestContext, request: UnregisterBrokerRequest) -> DelayedResponse:
    """Unregister another broker: this one is running."""
    if request.broker_id == ctx.broker.node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker {request.broker_id} is this node, which is running.")
    return _ask(ctx, request)
