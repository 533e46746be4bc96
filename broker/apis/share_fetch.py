"""ShareFetch (78): records for a member of a share group, with acknowledgements of earlier ones (KIP-932).

v1 max records and batch size; v2 acquire modes (KIP-1206) and renewal of locks (KIP-1222). Acknowledgements are applied
before records are acquired. The response has the errors of both for each partition, and is sent once the
acknowledgements are committed. A fetch that finds less than `min_bytes` waits until records are appended or released, a
lock expires, or `max_wait_ms` is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.apis.group_protocols import needs_share_groups
from barnabas.broker.apis.registry import api
from barnabas.broker.apis.share_acknowledgements import (
    FIRST_VERSION_WITH_RENEWAL,
    Errors,
    acknowledge,
    check_access,
    checked_ids,
    end_session,
    lock_timeout_ms,
)
from barnabas.broker.apis.share_leaders import MOVED, name_leaders
from barnabas.broker.config.keys.general import FETCH_MAX_BYTES
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.broker.sharing.delayed_share_fetch import DelayedShareFetch
from barnabas.broker.sharing.share_fetch_plan import ShareFetchPlan
from barnabas.broker.sharing.share_sessions import FINAL_EPOCH, INITIAL_EPOCH, SharedPartition, ShareSession
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.share_groups import (
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchResponseNodeEndpoint,
    ShareFetchResponsePartitionData,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext


@api(ShareFetchRequest, needs=needs_share_groups)
def share_fetch(ctx: RequestContext, request: ShareFetchRequest) -> ShareFetchResponse | DelayedResponse:
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
    try:
        session = _session(ctx, request, group_id, member_id, has_acknowledgements=bool(acknowledgements))
    except KafkaError as error:
        if error.code is not ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            raise
        return _fail_later(ctx, request.max_wait_ms, error)
    check_access(ctx, group_id, (*session.partitions, *(partition for partition, _ in acknowledgements)))
    responder = _ShareFetchResponder(ctx, request, session)
    guard = responder.delayed.guard
    then = guard(responder.acknowledged)
    acknowledge(ctx.broker, session, acknowledgements, then, may_renew=may_renew, refused=ctx.refused_topics)
    if may_renew or request.share_session_epoch == FINAL_EPOCH:
        responder.fetched([])
    else:
        responder.fetch()
    return responder.outcome()


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


def _fail_later(ctx: RequestContext, max_wait_ms: int, error: KafkaError) -> DelayedResponse:
    """Answer with `error` after the member's maximum wait, because it retries immediately."""
    delayed = DelayedResponse()
    timer = ctx.broker.loop.timers.at(
        ctx.now + max(0, max_wait_ms) / 1000, lambda: delayed.fail(error.code, error.message)
    )
    delayed.on_cancel = timer.cancel
    return delayed


class _ShareFetchResponder:
    """The response to ShareFetch: sent once the acknowledgements are committed and the fetch is done."""

    def __init__(self, ctx: RequestContext, request: ShareFetchRequest, session: ShareSession) -> None:
        self._ctx = ctx
        self._request = request
        self._session = session
        self._errors: Errors | None = None
        self._fetched: Sequence[tuple[SharedPartition, ShareFetchResponsePartitionData]] | None = None
        self._response: ShareFetchResponse | None = None
        self._wait: DelayedShareFetch | None = None
        self.delayed = DelayedResponse(on_cancel=self._cancel)

    def acknowledged(self, errors: Errors) -> None:
        """The acknowledgements are committed, or rejected."""
        if self._request.share_session_epoch == FINAL_EPOCH:
            then = self.delayed.guard(lambda: self._set_errors(errors))
            end_session(self._ctx.broker, self._session, then)
        else:
            self._set_errors(errors)

    def _set_errors(self, errors: Errors) -> None:
        self._errors = errors
        self._finish()

    def fetch(self) -> None:
        """Acquire records, or wait for some."""
        ctx, request = self._ctx, self._request
        broker = ctx.broker
        max_bytes = broker.config[FETCH_MAX_BYTES]
        plan = ShareFetchPlan(broker.share_partitions, self._session, request, max_bytes, ctx.refused_topics)
        partitions = plan.acquire(is_last=request.max_wait_ms <= 0 or broker.is_stopping)
        if partitions is not None:
            self.fetched(partitions)
            return
        deadline = ctx.now + (0 if broker.is_stopping else max(0, request.max_wait_ms)) / 1000
        parts = (broker.loop.timers, broker.runner, deadline, self.fetched, self.delayed)
        self._wait = DelayedShareFetch(plan, *parts)

    def fetched(self, partitions: Sequence[tuple[SharedPartition, ShareFetchResponsePartitionData]]) -> None:
        """The fetch is done: `partitions` have records or an error."""
        self._fetched = partitions
        self._finish()

    def outcome(self) -> ShareFetchResponse | DelayedResponse:
        """The response, or a delayed response."""
        return self.delayed if self._response is None else self._response

    def _cancel(self) -> None:
        if self._wait is not None:
            self._wait.cancel()

    def _finish(self) -> None:
        if self._errors is None or self._fetched is None:
            return
        partitions = dict(self._fetched)
        for partition, error in self._errors.items():
            data = partitions.get(partition)
            if data is None:
                data = partitions[partition] = ShareFetchResponsePartitionData(
                    partition_index=partition.partition, records=b""
                )
            data.acknowledge_error_code = int(error)
        self._response = ShareFetchResponse(
            acquisition_lock_timeout_ms=lock_timeout_ms(self._ctx.broker, self._session),
            responses=_by_topic(partitions.items()),
        )
        moved = [
            (shared, data)
            for shared, data in partitions.items()
            if (data.error_code or data.acknowledge_error_code)
            and (data.error_code in MOVED or data.acknowledge_error_code in MOVED)
        ]
        if moved:
            self._response.node_endpoints = name_leaders(self._ctx, moved, ShareFetchResponseNodeEndpoint)
        self.delayed.resolve(self._response)


def _by_topic(
    answers: Iterable[tuple[SharedPartition, ShareFetchResponsePartitionData]],
) -> list[ShareFetchableTopicResponse]:
    topics: dict[bytes, ShareFetchableTopicResponse] = {}
    for (topic_id, _), data in answers:
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = ShareFetchableTopicResponse(topic_id=topic_id, partitions=[])
        topic.partitions.append(data)
    return list(topics.values())
