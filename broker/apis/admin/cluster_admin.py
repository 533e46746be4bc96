"""Requests of administrators and brokers that the pure controller answers (`metadata.controller_requests`).

ElectLeaders (43), AlterPartitionReassignments (45), ListPartitionReassignments (46) and UnregisterBroker (64) of
administrators are answered on both kinds of listeners, where the controller is in the process; other brokers forward
them. AlterPartition (56), BrokerRegistration (62), BrokerHeartbeat (63), AllocateProducerIds (67) and
AssignReplicasToDirs (73) are requests of brokers. Each is validated when all earlier changes are in effect, and is
answered when its records are durable and in effect. KIP-455, KIP-460, KIP-497, KIP-631, KIP-730, KIP-858.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.apis.metadata_changes import ask_controller
from barnabas.broker.apis.registry import CONTROLLER, api, check_cluster
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode, KafkaError
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
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersResponsePartitionResult,
    ListPartitionReassignmentsRequest,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.wire.messages.cluster import UnregisterBrokerResponse
    from barnabas.wire.schema import Message

FIRST_ELECTION_WITH_ERROR = 1


def _no_reassignments(
    request: AlterPartitionReassignmentsRequest, error: KafkaError
) -> AlterPartitionReassignmentsResponse:
    """The error of the whole response, and of each partition, as in Kafka."""
    code, message = int(error.code), error.message
    return AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=message,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=partition.partition_index, error_code=code, error_message=message
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


@api(AllocateProducerIdsRequest, listener=CONTROLLER, requires=Operation.CLUSTER_ACTION, send_before_close=True)
@api(AlterPartitionRequest, listener=CONTROLLER, requires=Operation.CLUSTER_ACTION, send_before_close=True)
@api(
    AlterPartitionReassignmentsRequest,
    on_error=_no_reassignments,
    requires=Operation.ALTER,
    send_before_close=True,
)
@api(AssignReplicasToDirsRequest, listener=CONTROLLER, requires=Operation.CLUSTER_ACTION, send_before_close=True)
@api(BrokerHeartbeatRequest, listener=CONTROLLER, requires=Operation.CLUSTER_ACTION, send_before_close=True)
@api(BrokerRegistrationRequest, listener=CONTROLLER, requires=Operation.CLUSTER_ACTION, send_before_close=True)
@api(ListPartitionReassignmentsRequest, requires=Operation.DESCRIBE, send_before_close=True)
@api(UnregisterBrokerRequest, listener=CONTROLLER, requires=Operation.ALTER, send_before_close=True)
async def answer_by_controller(ctx: RequestContext, request: Message) -> Any:
    """Have the controller of this process answer."""
    return await ask_controller(ctx, request)


@api(UnregisterBrokerRequest, requires=Operation.ALTER, send_before_close=True)
async def unregister_broker(ctx: RequestContext, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    """Unregister another broker: this one is running."""
    if request.broker_id == ctx.broker.node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker {request.broker_id} is this node, which is running.")
    response: UnregisterBrokerResponse = await ask_controller(ctx, request)
    return response


@api(ElectLeadersRequest, send_before_close=True)
async def elect_leaders(ctx: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Elect leaders, if the client may ask for that."""
    try:
        check_cluster(ctx, Operation.ALTER)
        response: ElectLeadersResponse = await ask_controller(ctx, request)
    except KafkaError as error:
        return _no_elections(request, error, ctx.api_version)
    return response


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
