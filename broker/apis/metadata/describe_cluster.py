"""DescribeCluster (60) of brokers, and of a controller for tools with --bootstrap-controller.

v1 endpoint types (KIP-919), v2 fenced brokers (KIP-1073); our own: the load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas import __version__
from barnabas.broker.apis.authorized_operations import cluster_operations
from barnabas.broker.apis.registry import CONTROLLER, api
from barnabas.broker.event_loop.waiting import Future
from barnabas.coord.security.acls import Operation
from barnabas.wire.clients.broker_load import TAG, BrokerLoad, encode, is_asked_for
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext

ENDPOINT_BROKERS = 1
ENDPOINT_CONTROLLERS = 2


@api(DescribeClusterRequest)
async def describe_cluster(ctx: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Describe the live brokers, and the fenced ones if requested; for Barnabas' tools with this broker's load."""
    if request.endpoint_type == ENDPOINT_CONTROLLERS:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        )
    if request.endpoint_type != ENDPOINT_BROKERS:
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    load: Future[BrokerLoad] = Future()
    has_load = bool(request.unknown_tagged_fields) and is_asked_for(request.unknown_tagged_fields)
    if has_load:
        ctx.broker.load.current(load.complete)
    tagged_fields = ((TAG, encode((await load)._replace(version=__version__))),) if has_load else ()
    brokers = [  # read after the load: brokers may have joined or left while a thread read the disks
        DescribeClusterBroker(broker_id=node_id, host=host, port=port, rack=rack)
        for node_id, host, port, rack in ctx.broker.endpoints(ctx)
    ]
    if request.include_fenced_brokers:
        brokers += [
            DescribeClusterBroker(
                broker_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack, is_fenced=True
            )
            for _, broker in sorted(ctx.broker.image.brokers.items())
            for endpoint in broker.endpoints
            if broker.fenced and endpoint.name == ctx.listener
        ]
    response = DescribeClusterResponse(
        endpoint_type=ENDPOINT_BROKERS,
        cluster_id=ctx.broker.cluster_id,
        controller_id=ctx.broker.any_live_broker(),
        brokers=brokers,
        cluster_authorized_operations=cluster_operations(ctx, request.include_cluster_authorized_operations),
    )
    response.unknown_tagged_fields = tagged_fields
    return response


@api(DescribeClusterRequest, listener=CONTROLLER, requires=Operation.ALTER)
def describe_controllers(ctx: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Describe the only controller."""
    if request.endpoint_type == ENDPOINT_BROKERS:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER",
        )
    if request.endpoint_type != ENDPOINT_CONTROLLERS:
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    quorum = ctx.broker.controller.quorum
    endpoint = quorum.endpoint(ctx.listener)
    return DescribeClusterResponse(
        error_message=None,
        endpoint_type=ENDPOINT_CONTROLLERS,
        cluster_id=quorum.cluster_id,
        controller_id=quorum.node_id,
        brokers=[]
        if endpoint is None
        else [DescribeClusterBroker(broker_id=quorum.node_id, host=endpoint.host, port=endpoint.port, rack=None)],
        cluster_authorized_operations=cluster_operations(ctx, request.include_cluster_authorized_operations),
    )
