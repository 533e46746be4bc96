"""DescribeCluster (60). v1 endpoint types (KIP-919), v2 fenced brokers (KIP-1073); our own: the load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.authorized_operations import cluster_operations
from barnabas.broker.apis.registry import api
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.wire.clients.broker_load import TAG, BrokerLoad, encode, is_asked_for
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext

ENDPOINT_BROKERS = 1
ENDPOINT_CONTROLLERS = 2


@api(DescribeClusterRequest)
def describe_cluster(ctx: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse | DelayedResponse:
    """Describe the live brokers, and the fenced ones if they are asked for; for Barnabas' tools with the own load."""
    if request.endpoint_type == ENDPOINT_CONTROLLERS:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        )
    if request.endpoint_type != ENDPOINT_BROKERS:
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    brokers = [
        DescribeClusterBroker(broker_id=node_id, host=host, port=port, rack=rack)
        for node_id, host, port, rack in ctx.broker.endpoints(ctx)
    ]
    if request.include_fenced_brokers:
        brokers += [
            DescribeClusterBroker(broker_id=broker.id, host=one.host, port=one.port, rack=broker.rack, is_fenced=True)
            for _, broker in sorted(ctx.broker.image.brokers.items())
            for one in broker.endpoints
            if broker.fenced and one.name == ctx.listener
        ]
    response = DescribeClusterResponse(
        endpoint_type=ENDPOINT_BROKERS,
        cluster_id=ctx.broker.cluster_id,
        controller_id=ctx.broker.any_live_broker(),
        brokers=brokers,
        cluster_authorized_operations=cluster_operations(ctx, request.include_cluster_authorized_operations),
    )
    if not request.unknown_tagged_fields or not is_asked_for(request.unknown_tagged_fields):
        return response
    return _with_load(ctx, response)


def _with_load(ctx: RequestContext, response: DescribeClusterResponse) -> DelayedResponse:
    delayed = DelayedResponse()

    def add(load: BrokerLoad) -> None:
        response.unknown_tagged_fields = ((TAG, encode(load)),)
        delayed.resolve(response)

    ctx.broker.load.current(delayed.guard(add))
    return delayed
