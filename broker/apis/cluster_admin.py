"""Administration of a cluster, on brokers that have the controller in their process.

ElectLeaders (43), AlterPartitionReassignments (45), ListPartitionReassignments (46), DescribeQuorum (55),
UnregisterBroker (64), AddRaftVoter (80) and RemoveRaftVoter (81): the same answers as on a controller listener. Other
brokers forward these requests. KIP-455, KIP-460, KIP-595, KIP-631, KIP-853.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.registry import api, check_cluster
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.cluster import UnregisterBrokerRequest
from barnabas.wire.messages.topics import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersResponsePartitionResult,
    ListPartitionReassignmentsRequest,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.wire.schema import Message


FIRST_ELECTION_WITH_ERROR = 1


def elect_leaders(ctx: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse | DelayedResponse:
    """Have the controller of this process elect leaders, if the client may ask for that."""
    try:
        check_cluster(ctx, Operation.ALTER)
    except KafkaError as error:
        return _no_elections(request, error, ctx.api_version)
    return _ask(ctx, request)


def _no_elections(request: ElectLeadersRequest, error: KafkaError, version: int) -> ElectLeadersResponse:
    """The error of the whole response (v1), and of each partition that is named."""
    return ElectLeadersResponse(
        error_code=int(error.code) if version >= FIRST_ELECTION_WITH_ERROR else 0,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    ElectLeadersResponsePartitionResult(
                        partition_id=index, error_code=int(error.code), error_message=error.message
                    )
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


api(ElectLeadersRequest)(elect_leaders)


@api(AlterPartitionReassignmentsRequest, requires=Operation.ALTER)
@api(ListPartitionReassignmentsRequest, requires=Operation.DESCRIBE)
def answer(ctx: RequestContext, request: Message) -> DelayedResponse:
    """Have the controller of this process answer."""
    return _ask(ctx, request)


def _ask(ctx: RequestContext, request: Message) -> DelayedResponse:
    delayed = DelayedResponse(send_before_close=True)
    ctx.broker.controller.request(request, ctx.api_version, delayed.complete)
    return delayed


@api(UnregisterBrokerRequest, requires=Operation.ALTER)
def unregister_broker(ctx: RequestContext, request: UnregisterBrokerRequest) -> DelayedResponse:
    """Unregister another broker: this one is running."""
    if request.broker_id == ctx.broker.node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker {request.broker_id} is this node, which is running.")
    return _ask(ctx, request)
