"""Fetch (1).

v4 isolation levels; v5 log start offset; v7 sessions (KIP-227); v9 leader epochs (KIP-320); v12 diverging epochs
(KIP-595); v13 topic ids (KIP-516); v15 replica state (KIP-903). A fetch that finds less than `min_bytes` waits
(`delayed_fetch`). The first batch is returned whole even if it is larger than the limits (KIP-74).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Final

from barnabas.broker.apis.access import refused_as_named
from barnabas.broker.apis.delayed_fetch import DelayedFetch
from barnabas.broker.apis.fetch_plan import FIRST_VERSION_WITH_TOPIC_IDS, FetchPlan, failed
from barnabas.broker.apis.registry import api
from barnabas.broker.apis.sliced_response import respond_in_steps
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.broker.replicas.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchPartition,
    FollowerPartition,
    replica_of,
    requested_partitions,
)
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse

if TYPE_CHECKING:
    from barnabas.broker.apis.fetch_plan import Attempt
    from barnabas.broker.context import RequestContext
    from barnabas.broker.steps import Steps

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


_READ: Final = int(Operation.READ)  # a plain number is found faster
CONSUMER: Final = -1
"""The replica id of clients."""
PARTITIONS_OF_A_STEP = 200
"""Each takes a few microseconds."""


@api(FetchRequest, on_error=_whole_request_failed)
def fetch(ctx: RequestContext, request: FetchRequest) -> FetchResponse | DelayedResponse:
    """Read from each partition, now or once there are `min_bytes`."""
    if request.replica_id != CONSUMER or request.replica_state.replica_id != CONSUMER:
        if replica_of(request) >= 0 and not ctx.is_allowed_on_cluster(Operation.CLUSTER_ACTION):
            return _refused_to_follow(request)
        plan = _plan_of_a_replica(ctx, request)
    else:
        plan = _plan(ctx, request)
    if ctx.broker.authorizer is not None and not plan.is_follower:
        _find_refused(ctx, plan)
    plan.may_be_cold = True
    if len(plan.partitions) > PARTITIONS_OF_A_STEP:
        return respond_in_steps(ctx, _steps(ctx, request, plan))
    return _answer(ctx, request, plan, plan.read())


def _find_refused(ctx: RequestContext, plan: FetchPlan) -> None:
    """Find the topics that the client may not read."""
    granted = ctx.connection.granted_topics.get(_READ)  # of the client: Fetch is never forwarded
    if granted is not None:
        for topic, _ in plan.partitions:
            if topic not in granted:
                break
        else:
            return
    plan.refused = refused_as_named(ctx, Operation.READ, [topic for topic, _ in plan.partitions])


def _refused_to_follow(request: FetchRequest) -> FetchResponse:
    """The answer to who reads as a follower and may not: an error for each partition, and no session."""
    response = _whole_request_failed(request, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    response.error_code = 0
    return response


def _plan_of_a_replica(ctx: RequestContext, request: FetchRequest) -> FetchPlan:
    """The plan of a fetch by a follower, or by what looks at replicas."""
    from barnabas.broker.apis.debugging_fetch import DebuggingFetchPlan
    from barnabas.broker.apis.follower_fetch import FollowerFetchPlan

    if replica_of(request) >= 0:
        return _plan(ctx, request, FollowerFetchPlan, FollowerPartition)
    return _plan(ctx, request, DebuggingFetchPlan)


def _steps(
    ctx: RequestContext, request: FetchRequest, plan: FetchPlan
) -> Generator[None, None, FetchResponse | DelayedResponse]:
    attempt = plan.begin()
    for number, (key, wanted) in enumerate(list(plan.partitions.items()), 1):
        plan.read_into(attempt, key, wanted)
        if number % PARTITIONS_OF_A_STEP == 0:
            yield
    return _answer(ctx, request, plan, attempt)


def _answer(
    ctx: RequestContext, request: FetchRequest, plan: FetchPlan, attempt: Attempt
) -> FetchResponse | DelayedResponse:
    if plan.cold:
        return _read_when_cached(ctx, request, plan, attempt)
    return _outcome(ctx, request, plan, attempt)


def _read_when_cached(ctx: RequestContext, request: FetchRequest, plan: FetchPlan, attempt: Attempt) -> DelayedResponse:
    """Have a thread read what the lookups of cold partitions need, then read these partitions, in any case."""
    delayed = DelayedResponse()
    cold, plan.cold, plan.may_be_cold = plan.cold, {}, False

    def read_from_disk() -> None:
        for lookup in cold.values():
            lookup()

    def steps() -> Steps[FetchResponse | DelayedResponse]:
        try:
            yield read_from_disk
        except OSError:
            pass  # it is found again below
        if delayed.is_done:  # the client has disconnected
            return FetchResponse()
        plan.read_again(attempt, cold)
        return _outcome(ctx, request, plan, attempt)

    ctx.broker.runner.start(steps(), delayed.follow, delayed.complete)
    return delayed


def _outcome(
    ctx: RequestContext, request: FetchRequest, plan: FetchPlan, attempt: Attempt
) -> FetchResponse | DelayedResponse:
    """The response if enough was read, else one that waits for more."""
    plan.may_be_cold = False
    if attempt.is_final or attempt.size >= plan.min_bytes or request.max_wait_ms <= 0 or ctx.broker.is_stopping:
        return plan.respond(attempt)
    deadline = ctx.now + request.max_wait_ms / 1000
    if plan.is_follower:
        from barnabas.broker.apis.delayed_follower_fetch import delayed_follower_fetch

        return delayed_follower_fetch(plan, attempt, deadline)
    return DelayedFetch(plan, attempt, ctx.broker.loop.timers, deadline).delayed


def _plan(
    ctx: RequestContext,
    request: FetchRequest,
    plan_of: type[FetchPlan] = FetchPlan,
    partition_of: type[FetchPartition] = FetchPartition,
) -> FetchPlan:
    """The partitions to read: those of the session, or of the request if there is none."""
    sessions = ctx.broker.fetch_sessions
    uses_topic_ids = ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    if request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
        session = sessions.resume(request, uses_topic_ids=uses_topic_ids, now=ctx.now)
        if session is not None:
            return plan_of.resumed(ctx, request, session)
    elif request.session_id != NO_SESSION:
        sessions.close(request.session_id)
    partitions = {
        key: partition_of(topic, topic_id, requested)
        for key, topic, topic_id, requested in requested_partitions(request, uses_topic_ids=uses_topic_ids)
    }
    plan = plan_of(ctx, request, partitions, None)
    plan.wants_session = request.session_epoch == INITIAL_EPOCH
    return plan
