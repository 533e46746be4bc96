"""Fetch (1): reads records from each partition, now or once there are `min_bytes` of them.

v4 isolation levels; v5 log start offset; v7 sessions (KIP-227); v9 leader epochs (KIP-320); v11 the client's rack
(KIP-392); v12 diverging epochs (KIP-595); v13 topic ids (KIP-516); v15 replica state (KIP-903); v16 leaders (KIP-951).

The partitions come from the session, or from the request if it has none. Each is read (`plan`): few of them in
place, many between the turns. If a lookup needs data that is not in the page cache, a thread reads it first. The fetch
ends with the first of `min_bytes`, an error or anything else that is not held back, and `max_wait_ms`. When a partition
changes, only that one is read again: a client may wait for thousands. At the deadline all are read (Kafka's
`DelayedFetch`). The first batch is returned whole even if it is larger than the limits (KIP-74). Followers and tools
that read replicas are in `follower`.

Invariant: a partition that has changed while the disk, other work or records were waited for is read again
(`FetchPlan.read_missed`, `_Waiting`), and each reading looks up its leader, epoch, topic id and log again. As in Kafka,
the session and the topics that the client may read are looked up once, when the request comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.apis.access import refused_as_named
from barnabas.broker.apis.fetch.plan import FIRST_VERSION_WITH_TOPIC_IDS, FetchPlan, failed
from barnabas.broker.apis.fetch.usual import CONSUMER, usual_server
from barnabas.broker.apis.registry import api
from barnabas.broker.event_loop.waiting import Future, in_thread, pause
from barnabas.broker.replicas.leader.fetch_sessions import (
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
    from barnabas.broker.apis.fetch.plan import Attempt
    from barnabas.broker.context import RequestContext
    from barnabas.broker.event_loop.waiting import Waiting
    from barnabas.broker.replicas.leader.fetch_sessions import PartitionKey
    from barnabas.broker.replicas.partition import Partition

_SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


def _whole_request_failed(request: FetchRequest, error: KafkaError) -> FetchResponse:
    """The error of the whole response (v7), and before topic ids (v13) also of each partition, where clients look."""
    response = _each_failed(request, error)
    if error.code not in _SESSION_ERRORS:
        response.session_id = request.session_id
    response.responses = [answers for answers in response.responses if answers.topic]
    return response


def _each_failed(request: FetchRequest, error: KafkaError) -> FetchResponse:
    return FetchResponse(
        error_code=int(error.code),
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[failed(requested.partition, error.code, is_read=False) for requested in topic.partitions],
            )
            for topic in request.topics
        ]
        if error.code not in _SESSION_ERRORS
        else [],
    )


_READ: Final = int(Operation.READ)  # a plain number is found faster
PARTITIONS_OF_A_STEP = 200
"""Each takes a few microseconds."""


@api(FetchRequest, on_error=_whole_request_failed, usual=usual_server)
def fetch(ctx: RequestContext, request: FetchRequest) -> FetchResponse | Waiting[FetchResponse]:
    """Read from each partition, now or once there are `min_bytes`."""
    if request.replica_id != CONSUMER or request.replica_state.replica_id != CONSUMER:
        if replica_of(request) >= 0 and not ctx.is_allowed_on_cluster(Operation.CLUSTER_ACTION):
            return _refused_to_follow(request)
        plan = _plan_of_a_replica(ctx, request)
    else:
        plan = _plan(ctx, request)
    if ctx.broker.authorizer is not None and not plan.is_follower:
        _find_refused(ctx, plan)
    if len(plan.partitions) > PARTITIONS_OF_A_STEP:
        return _read_in_pieces(plan)
    attempt = plan.read()
    if plan.cold:
        return _read_from_disk(plan, attempt)
    # `_is_enough`, written out: its call would cost every fetch eight bytecodes
    if attempt.is_final or attempt.size >= plan.min_bytes or request.max_wait_ms <= 0 or ctx.broker.is_stopping:
        return plan.respond(attempt)
    return _wait(plan, attempt)


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
    """The response if the sender may not read as a follower: an error for each partition, and no session."""
    response = _each_failed(request, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    response.error_code = 0
    return response


def _plan_of_a_replica(ctx: RequestContext, request: FetchRequest) -> FetchPlan:
    """The plan of a fetch by a follower, or by a tool that compares replicas."""
    from barnabas.broker.apis.fetch.follower import DebuggingFetchPlan, FollowerFetchPlan

    if replica_of(request) >= 0:
        return _plan(ctx, request, FollowerFetchPlan, FollowerPartition)
    return _plan(ctx, request, DebuggingFetchPlan)


def _plan(
    ctx: RequestContext,
    request: FetchRequest,
    plan_of: type[FetchPlan] = FetchPlan,
    partition_of: type[FetchPartition] = FetchPartition,
) -> FetchPlan:
    """The partitions to read: the session's, or the request's if there is no session."""
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


def _is_enough(plan: FetchPlan, attempt: Attempt) -> bool:
    """Whether the fetch is answered with what was read, instead of waiting for more."""
    return (
        attempt.is_final or attempt.size >= plan.min_bytes or plan.request.max_wait_ms <= 0 or plan.broker.is_stopping
    )


async def _read_in_pieces(plan: FetchPlan) -> FetchResponse:
    attempt = plan.begin()
    for number, (key, requested) in enumerate(list(plan.partitions.items()), 1):
        plan.read_into(attempt, key, requested)
        if number % PARTITIONS_OF_A_STEP == 0:
            await pause()
    if plan.cold:
        return await _read_from_disk(plan, attempt)
    if not _is_enough(plan, attempt):
        plan.may_be_cold = False
        plan.read_missed(attempt)
    return await _respond_or_wait(plan, attempt)


async def _read_from_disk(plan: FetchPlan, attempt: Attempt) -> FetchResponse:
    """Have a thread read the data for the lookups of cold partitions, then read these partitions, in any case."""
    cold, plan.cold, plan.may_be_cold = plan.cold, {}, False
    try:
        await in_thread(plan.broker.runner, partial(_call_each, cold.values()))
    except OSError:
        pass  # it is found again when the partitions are read
    plan.read_missed(attempt, cold)
    return await _respond_or_wait(plan, attempt)


async def _respond_or_wait(plan: FetchPlan, attempt: Attempt) -> FetchResponse:
    return plan.respond(attempt) if _is_enough(plan, attempt) else await _wait(plan, attempt)


def _call_each(lookups: Iterable[Callable[[], None]]) -> None:
    for lookup in lookups:
        lookup()


async def _wait(plan: FetchPlan, attempt: Attempt) -> FetchResponse:
    """Read the partitions that change until there is enough; at the deadline read all once more."""
    plan.may_be_cold = False
    deadline = plan.ctx.now + plan.request.max_wait_ms / 1000
    if plan.is_follower and plan.session is not None:
        from barnabas.broker.apis.fetch.follower import read_session

        return plan.respond(await read_session(plan, deadline))
    waiting = _Waiting(plan, attempt)
    timer = plan.broker.loop.timers.at(deadline, waiting.complete)
    try:
        while (partition := await waiting) is not None:
            if waiting.may_be_enough(partition) and waiting.read_changed():
                break
            waiting.reset()
        else:
            attempt = plan.read()
    finally:
        timer.cancel()
        waiting.stop()
    return plan.respond(attempt)


class _Waiting(Future["Partition | None"]):
    """A fetch that waits: which partitions have changed, and how much can be read of all, at most.

    It is awaited for the next partition that changes, or None at the deadline.
    """

    __slots__ = ("_attempt", "_changed", "_plan", "_size", "_watched")

    def __init__(self, plan: FetchPlan, attempt: Attempt) -> None:
        super().__init__()
        attempt.forget_records()
        self._attempt = attempt
        self._plan = plan
        self._size = attempt.size
        self._changed: dict[PartitionKey, None] = {}  # since they were read
        self._watched: dict[Partition, tuple[PartitionKey, int, int, int]] = {}
        """By partition: its key, and end offset, appended bytes and leader epoch when it was last looked at."""
        wake = self.complete
        for key, requested in plan.partitions.items():
            partition = plan.find(requested)
            end_offset = plan.end_of(partition.log)
            self._watched[partition] = key, end_offset, plan.bytes_of(partition), partition.leader_epoch
            waiters = partition.end_waiters if plan.is_follower else partition.waiters
            waiters[self] = wake

    def may_be_enough(self, partition: Partition) -> bool:
        """Whether the change of a partition may end the wait, so that it has to be read."""
        plan = self._plan
        key, end_offset, appended, leader_epoch = self._watched[partition]
        end, size = plan.end_of(partition.log), plan.bytes_of(partition)
        is_other = partition.is_closed or partition.leader_epoch != leader_epoch
        if end == end_offset and not is_other:
            return False  # the records belong to open transactions
        self._watched[partition] = key, end, size, partition.leader_epoch
        self._size += size - appended
        self._changed[key] = None
        # the end of a transaction, which is small, may make many bytes visible
        return self._size >= plan.min_bytes or plan.is_committed or is_other

    def read_changed(self) -> bool:
        """Read the partitions that have changed; if that is enough, also all others that have records."""
        plan, attempt = self._plan, self._attempt
        changed, self._changed = self._changed, {}
        plan.read_again(attempt, changed)
        self._size = attempt.size
        if attempt.is_final or attempt.size >= plan.min_bytes:
            plan.read_again(attempt, [key for key in attempt.sizes if key not in changed])
            return True
        attempt.forget_records()
        return False

    def stop(self) -> None:
        """Remove this fetch from the waiters of its partitions."""
        is_follower = self._plan.is_follower
        for partition in self._watched:
            waiters = partition.end_waiters if is_follower else partition.waiters
            waiters.pop(self, None)
