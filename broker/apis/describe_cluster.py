"""DescribeCluster (60). v1 endpoint types (KIP-919), v2 fenced brokers (KIP-1073)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.authorized_operations import cluster_operations
from barnabas.broker.apis.registry import api
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext

ENDPOINT_BROKERS = 1
ENDPOINT_CONTROLLERS = 2


@api(DescribeClusterRequest)
def describe_cluster(ctx: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Describe the live brokers, and the fenced ones if they are asked for."""
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
    return DescribeClusterResponse(
        endpoint_type=ENDPOINT_BROKERS,
        cluster_id=ctx.broker.cluster_id,
        controller_id=ctx.broker.any_live_broker(),
        brokers=brokers,
        cluster_authorized_operations=cluster_operations(request.include_cluster_authorized_operations),
    )
