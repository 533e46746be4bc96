"""DescribeCluster (60) of a controller: the controllers' addresses, for tools with --bootstrap-controller. KIP-919."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.authorized_operations import cluster_operations
from barnabas.broker.apis.describe_cluster import ENDPOINT_BROKERS, ENDPOINT_CONTROLLERS
from barnabas.broker.apis.registry import CONTROLLER, api
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext


@api(DescribeClusterRequest, listener=CONTROLLER, requires=Operation.ALTER)
def describe_cluster(ctx: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
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
