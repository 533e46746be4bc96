"""Fetch (1).

v4 isolation levels; v5 log start offset; v7 sessions (KIP-227); v9 leader epochs (KIP-320); v12 diverging epochs
(KIP-595); v13 topic ids (KIP-516); v15 replica state (KIP-903). A fetch that finds less than `min_bytes` waits
(`delayed_fetch`). The first batch is returned whole even if it is larger than the limits (KIP-74).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.delayed_fetch import DelayedFetch
from barnabas.broker.apis.fetch_plan import FIRST_VERSION_WITH_TOPIC_IDS, FetchPlan, failed
from barnabas.broker.apis.registry import api
from barnabas.broker.replicas.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchPartition,
    requested_partitions,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.net.delayed_response import DelayedResponse

_SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


def _whole_request_failed(request: FetchRequest, error: KafkaError) -> FetchResponse:
    """The error of the whole response (v7), and of each partition, where older versions and some clients look."""
    return FetchResponse(
        error_code=int(error.code),
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[failed(requested.partition, error.code) for requested in topic.partitions],
            )
            for topic in request.topics
        ]
        if error.code not in _SESSION_ERRORS
        else [],
    )


@api(FetchRequest, on_error=_whole_request_failed)
def fetch(ctx: RequestContext, request: FetchRequest) -> FetchResponse | DelayedResponse:
    """Read from each partition, now or once there are `min_bytes`."""
    if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "This broker has no followers.")
    plan = _plan(ctx, request)
    attempt = plan.read()
    if attempt.is_final or attempt.size >= request.min_bytes or request.max_wait_ms <= 0 or ctx.broker.is_stopping:
        return plan.respond(attempt)
    deadline = ctx.now + request.max_wait_ms / 1000
    return DelayedFetch(plan, attempt, ctx.broker.loop.timers, deadline).delayed


def _plan(ctx: RequestContext, request: FetchRequest) -> FetchPlan:
    """The partitions to read: those of the session, or of the request if there is none."""
    sessions = ctx.broker.fetch_sessions
    uses_topic_ids = ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    if request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
        session = sessions.resume(request, uses_topic_ids=uses_topic_ids, now=ctx.now)
        if session is not None:
            return FetchPlan(ctx, request, session.partitions, session)
    elif request.session_id != NO_SESSION:
        sessions.close(request.session_id)
    partitions = {
        key: FetchPartition(topic, topic_id, requested)
        for key, topic, topic_id, requested in requested_partitions(request, uses_topic_ids=uses_topic_ids)
    }
    plan = FetchPlan(ctx, request, partitions, None)
    plan.wants_session = request.session_epoch == INITIAL_EPOCH
    return plan
