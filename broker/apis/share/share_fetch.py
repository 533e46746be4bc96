"""ShareFetch (78): records for a member of a share group, with acknowledgements of earlier ones (KIP-932).

v1 max records and batch size; v2 acquire modes (KIP-1206) and renewal of locks (KIP-1222). Acknowledgements are applied
before records are acquired. The response has the errors of both for each partition, and is sent once the
acknowledgements are committed. A fetch that finds less than `min_bytes` waits until records are appended or released, a
lock expires, or `max_wait_ms` is over (Kafka's `DelayedShareFetch`). If a lookup needs data that is not in the page
cache, a thread reads it first; after that the attempt is made in any case.

Each attempt looks up the partitions of the session again (`ShareFetchPlan`), with leader, topic id, log and delivery
state. As in Kafka, the topics that the member may read are looked up once, when the request comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from barnabas.broker.apis.groups.group_protocols import needs_share_groups
from barnabas.broker.apis.registry import api
from barnabas.broker.apis.share.acknowledgements import (
    FIRST_VERSION_WITH_RENEWAL,
    MOVED,
    Errors,
    acknowledge,
    check_access,
    checked_ids,
    end_session,
    lock_timeout_ms,
    name_leaders,
)
from barnabas.broker.config.keys.general import FETCH_MAX_BYTES
from barnabas.broker.event_loop.waiting import Future, in_thread, sleep_until
from barnabas.broker.sharing.share_fetch_plan import Answers, ShareFetchPlan
from barnabas.broker.sharing.share_sessions import FINAL_EPOCH, INITIAL_EPOCH, SharedPartition, ShareSession
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.share_groups import (
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchResponseNodeEndpoint,
    ShareFetchResponsePartitionData,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.event_loop.steps import StepRunner
    from barnabas.broker.sharing.live_share_partition import LiveSharePartition


@api(ShareFetchRequest, needs=needs_share_groups)
async def share_fetch(ctx: RequestContext, request: ShareFetchRequest) -> ShareFetchResponse:
    """Apply acknowledgements, then acquire records, now or once there are enough."""
    group_id, member_id = checked_ids(request)
    check_access(ctx, group_id, ())
    may_renew = ctx.api_version >= FIRST_VERSION_WITH_RENEWAL and request.is_renew_ack
    if may_renew and (request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A ShareFetch that renews locks must not fetch: its limits must be 0.",
        )
    acknowledgements = [
        (SharedPartition(topic.topic_id, partition.partition_index), partition.acknowledgement_batches)
        for topic in request.topics
        for partition in topic.partitions
        if partition.acknowledgement_batches
    ]
    deadline = ctx.now + max(0, request.max_wait_ms) / 1000
    try:
        session = _session(ctx, request, group_id, member_id, has_acknowledgements=bool(acknowledgements))
    except KafkaError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            await sleep_until(ctx.broker.loop.timers, deadline)  # the member would retry immediately
        raise
    check_access(ctx, group_id, (*session.partitions, *(partition for partition, _ in acknowledgements)))
    acknowledged = acknowledge(ctx.broker, session, acknowledgements, may_renew=may_renew, refused=ctx.refused_topics)
    fetched: Answers = []
    if not may_renew and request.share_session_epoch != FINAL_EPOCH:
        plan = ShareFetchPlan(
            ctx.broker.share_partitions, session, request, ctx.broker.config[FETCH_MAX_BYTES], ctx.refused_topics
        )
        is_last = request.max_wait_ms <= 0 or ctx.broker.is_stopping
        records = plan.acquire(is_last=is_last)
        if records is None:
            records = await _acquire_later(ctx, plan, ctx.now if ctx.broker.is_stopping else deadline)
        fetched = records
    errors = await acknowledged
    if request.share_session_epoch == FINAL_EPOCH:
        await end_session(ctx.broker, session)
    return _response(ctx, session, fetched, errors)


def _session(
    ctx: RequestContext, request: ShareFetchRequest, group_id: str, member_id: str, *, has_acknowledgements: bool
) -> ShareSession:
    """The session of a ShareFetch, after adding and removing the partitions that the request names."""
    sessions = ctx.broker.share_partitions.sessions
    named = [
        SharedPartition(topic.topic_id, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    if request.share_session_epoch == INITIAL_EPOCH:
        if has_acknowledgements:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        return sessions.open(group_id, member_id, named, ctx.connection)
    session = sessions.resume(group_id, member_id, request.share_session_epoch)
    if request.share_session_epoch != FINAL_EPOCH:
        session.partitions.update(dict.fromkeys(named))
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                session.partitions.pop(SharedPartition(topic.topic_id, index), None)
    return session


async def _acquire_later(ctx: RequestContext, plan: ShareFetchPlan, deadline: float) -> Answers:
    """Try again when a partition may have records, and for the last time at the deadline."""
    loop, runner = ctx.broker.loop, ctx.broker.runner
    change: Future[None] = Future()
    is_last = False
    watched: set[LiveSharePartition] = set()

    def wake() -> None:
        change.complete()

    def expire() -> None:
        nonlocal is_last
        is_last = True
        change.complete()

    timer = loop.timers.at(deadline, expire)
    records: Answers | None = None
    try:
        while records is None:
            if not watched or any(live.is_closed for live in watched):  # which were loaded again
                for live in plan.partitions():
                    watched.add(live)
                    live.waiters[wake] = wake
            was_read = bool(plan.cold)
            if was_read:
                await _read(runner, plan.cold)
            else:
                await change
            change = Future()
            records = plan.acquire(is_last=is_last, may_wait=was_read)
        return records
    finally:
        timer.cancel()
        for live in watched:
            live.waiters.pop(wake, None)


async def _read(runner: StepRunner, lookups: Sequence[Callable[[], None]]) -> None:
    """Have a thread read the data of lookups; an error is found again when records are acquired, and reported there."""

    def read_from_disk() -> None:
        for lookup in lookups:
            lookup()

    with suppress(Exception):
        await in_thread(runner, read_from_disk)


def _response(ctx: RequestContext, session: ShareSession, fetched: Answers, errors: Errors) -> ShareFetchResponse:
    partitions = dict(fetched)
    for partition, error in errors.items():
        data = partitions.get(partition)
        if data is None:
            data = partitions[partition] = ShareFetchResponsePartitionData(
                partition_index=partition.partition, records=b""
            )
        data.acknowledge_error_code = int(error.code)
        data.acknowledge_error_message = error.message
    response = ShareFetchResponse(
        acquisition_lock_timeout_ms=lock_timeout_ms(ctx.broker, session),
        responses=_by_topic(partitions.items()),
    )
    if ctx.broker.meter is not None:
        for shared, data in partitions.items():
            if data.records:
                ctx.broker.meter.sent_bytes[0][shared] += len(data.records)
    moved = [
        (shared, data)
        for shared, data in partitions.items()
        if (data.error_code or data.acknowledge_error_code)
        and (data.error_code in MOVED or data.acknowledge_error_code in MOVED)
    ]
    if moved:
        response.node_endpoints = name_leaders(ctx, moved, ShareFetchResponseNodeEndpoint)
    return response


def _by_topic(
    partitions: Iterable[tuple[SharedPartition, ShareFetchResponsePartitionData]],
) -> list[ShareFetchableTopicResponse]:
    topics: dict[bytes, ShareFetchableTopicResponse] = {}
    for (topic_id, _), data in partitions:
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = ShareFetchableTopicResponse(topic_id=topic_id, partitions=[])
        topic.partitions.append(data)
    return list(topics.values())
