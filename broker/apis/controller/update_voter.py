"""UpdateRaftVoter (82): a quorum of one has no voter that would report an address; its own is written at its start.

Source: Kafka 4.4 `UpdateVoterHandler`. KIP-853.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.registry import CONTROLLER, api
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.raft import CurrentLeader, UpdateRaftVoterRequest, UpdateRaftVoterResponse

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext


@api(UpdateRaftVoterRequest, listener=CONTROLLER, requires=Operation.CLUSTER_ACTION)
def update_raft_voter(ctx: RequestContext, request: UpdateRaftVoterRequest) -> UpdateRaftVoterResponse:
    """Answer as to a voter that this quorum does not have: its own address is updated at its start."""
    quorum = ctx.broker.controller.quorum
    if not quorum.is_cluster(request.cluster_id):
        return UpdateRaftVoterResponse(error_code=int(ErrorCode.INCONSISTENT_CLUSTER_ID))
    error = quorum.epoch_error(request.current_leader_epoch)
    if error == ErrorCode.NONE:
        error = ErrorCode.VOTER_NOT_FOUND
    endpoint = quorum.endpoint(ctx.listener)
    leader = CurrentLeader(leader_id=quorum.node_id, leader_epoch=quorum.epoch)
    if endpoint is not None:
        leader.host, leader.port = endpoint.host, endpoint.port
    return UpdateRaftVoterResponse(error_code=int(error), current_leader=leader)
