"""ShareFetch (78) and ShareAcknowledge (79): records of a queue out, what became of them in. KIP-932.

v1 max records and batch size; v2 acquire modes (KIP-1206) and renewal of locks (KIP-1222). Acknowledgements in a
ShareFetch are taken before records are given; the answer says of each partition what became of both, and leaves once
the acknowledgements are committed. A fetch that finds less than `min_bytes` is parked until records are appended or
given back, a lock ends, or `max_wait_ms` is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.apis.group_protocols import needs_share_groups
from barnabas.broker.apis.registry import api
from barnabas.broker.config.keys.general import FETCH_MAX_BYTES
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.broker.sharing.delayed_share_fetch import DelayedShareFetch
from barnabas.broker.sharing.share_fetch_plan import ShareFetchPlan
from barnabas.broker.sharing.share_sessions import FINAL_EPOCH, INITIAL_EPOCH, SharedPartition, ShareSession
from barnabas.coord.share_partitions.acknowledgement import BatchFields, acknowledgements
from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.share_groups import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeResponsePartitionData,
    ShareAcknowledgeTopicResponse,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchResponsePartitionData,
)

if TYPE_CHECKING:
    from barnabas.broker.context import Broker, RequestContext

FIRST_VERSION_WITH_RENEWAL = 2
MAX_MEMBER_ID_LENGTH = 36

Said = tuple[SharedPartition, Sequence[BatchFields]]
Errors = dict[SharedPartition, ErrorCode]


@api(ShareFetchRequest, needs=needs_share_groups)
def share_fetch(ctx: RequestContext, request: ShareFetchRequest) -> ShareFetchResponse | DelayedResponse:
    """Take acknowledgements, then give records, now or once there are enough."""
    group_id, member_id = _checked_ids(request)
    may_renew = ctx.api_version >= FIRST_VERSION_WITH_RENEWAL and request.is_renew_ack
    if may_renew and (request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "A ShareFetch that renews locks fetches nothing: its limits must be 0."
        )
    said = [
        (SharedPartition(topic.topic_id, asked.partition_index), asked.acknowledgement_batches)
        for topic in request.topics
        for asked in topic.partitions
        if asked.acknowledgement_batches
    ]
    try:
        session = _session(ctx, request, group_id, member_id, has_said=bool(said))
    except KafkaError as error:
        if error.code is not ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            raise
        return _refused_later(ctx, request.max_wait_ms, error)
    answer = _ShareAnswer(ctx, request, session)
    take(ctx.broker, session, said, answer.acknowledged, may_renew=may_renew)
    if may_renew or request.share_session_epoch == FINAL_EPOCH:
        answer.fetched([])
    else:
        answer.fetch()
    return answer.outcome()


def _checked_ids(request: ShareFetchRequest | ShareAcknowledgeRequest) -> tuple[str, str]:
    if request.group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    if not request.member_id or len(request.member_id) > MAX_MEMBER_ID_LENGTH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return request.group_id, request.member_id


def _session(
    ctx: RequestContext, request: ShareFetchRequest, group_id: str, member_id: str, *, has_said: bool
) -> ShareSession:
    """The session of a ShareFetch, with what the request adds and takes away."""
    sessions = ctx.broker.share_partitions.sessions
    named = [
        SharedPartition(topic.topic_id, asked.partition_index) for topic in request.topics for asked in topic.partitions
    ]
    if request.share_session_epoch == INITIAL_EPOCH:
        if has_said:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        return sessions.open(group_id, member_id, named, ctx.connection)
    session = sessions.resume(group_id, member_id, request.share_session_epoch)
    if request.share_session_epoch != FINAL_EPOCH:
        session.partitions.update(dict.fromkeys(named))
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                session.partitions.pop(SharedPartition(topic.topic_id, index), None)
    return session


def _refused_later(ctx: RequestContext, max_wait_ms: int, error: KafkaError) -> DelayedResponse:
    """No room for a session: said after the member's waiting time, since it will try again at once."""
    delayed = DelayedResponse()
    timer = ctx.broker.timers.at(ctx.now + max(0, max_wait_ms) / 1000, lambda: delayed.fail(error.code, error.message))
    delayed.on_cancel = timer.cancel
    return delayed


def take(
    broker: Broker,
    session: ShareSession,
    said: Sequence[Said],
    then: Callable[[Errors], None],
    *,
    may_renew: bool,
) -> None:
    """Take what a member says of records; `then` gets each partition's error once all is committed."""
    errors: Errors = {}
    open_count = 1

    def settled(partition: SharedPartition, error: ErrorCode) -> None:
        nonlocal open_count
        errors[partition] = error
        open_count -= 1
        if not open_count:
            then(errors)

    for partition, batches in said:
        settle = partial(settled, partition)
        open_count += 1
        try:
            found = acknowledgements(batches, may_renew=may_renew)
            live = broker.share_partitions.find(SharePartitionKey(session.group_id, *partition))
            if live is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            live.acknowledge(session.member_id, found, settle)
        except KafkaError as error:
            settle(error.code)
    open_count -= 1
    if not open_count:
        then(errors)


def end_session(broker: Broker, session: ShareSession, then: Callable[[], None]) -> None:
    """A member ends its session: what it holds is given back; `then` is called once that is written."""
    shared = broker.share_partitions
    shared.sessions.close(session)
    shared.release(session, then)


class _ShareAnswer:
    """The two halves of an answer to ShareFetch: given once both are there."""

    def __init__(self, ctx: RequestContext, request: ShareFetchRequest, session: ShareSession) -> None:
        self._ctx = ctx
        self._request = request
        self._session = session
        self._errors: Errors | None = None
        self._given: Sequence[tuple[SharedPartition, ShareFetchResponsePartitionData]] | None = None
        self._response: ShareFetchResponse | None = None
        self._delayed: DelayedResponse | None = None
        self._wait: DelayedShareFetch | None = None

    def acknowledged(self, errors: Errors) -> None:
        """The acknowledgements are committed, or refused."""
        if self._request.share_session_epoch == FINAL_EPOCH:
            end_session(self._ctx.broker, self._session, lambda: self._set_errors(errors))
        else:
            self._set_errors(errors)

    def _set_errors(self, errors: Errors) -> None:
        self._errors = errors
        self._finish()

    def fetch(self) -> None:
        """Give records, or wait for some."""
        ctx, request = self._ctx, self._request
        broker = ctx.broker
        plan = ShareFetchPlan(broker.share_partitions, self._session, request, broker.config[FETCH_MAX_BYTES])
        given = plan.acquire(is_last=request.max_wait_ms <= 0 or broker.is_stopping)
        if given is not None:
            self.fetched(given)
        else:
            deadline = ctx.now + request.max_wait_ms / 1000
            self._wait = DelayedShareFetch(plan, broker.loop.timers, deadline, self.fetched)

    def fetched(self, given: Sequence[tuple[SharedPartition, ShareFetchResponsePartitionData]]) -> None:
        """The records are there, or there are none."""
        self._given = given
        self._finish()

    def outcome(self) -> ShareFetchResponse | DelayedResponse:
        """The response, or what it will come through."""
        if self._response is not None:
            return self._response
        self._delayed = DelayedResponse(on_cancel=self._cancel)
        return self._delayed

    def _cancel(self) -> None:
        if self._wait is not None:
            self._wait.cancel()

    def _finish(self) -> None:
        if self._errors is None or self._given is None:
            return
        partitions = dict(self._given)
        for partition, error in self._errors.items():
            data = partitions.get(partition)
            if data is None:
                data = partitions[partition] = ShareFetchResponsePartitionData(
                    partition_index=partition.partition, records=b""
                )
            data.acknowledge_error_code = int(error)
        self._response = ShareFetchResponse(
            acquisition_lock_timeout_ms=_lock_ms(self._ctx, self._session),
            responses=_by_topic(partitions.items()),
        )
        if self._delayed is not None:
            self._delayed.resolve(self._response)


def _lock_ms(ctx: RequestContext, session: ShareSession) -> int:
    return ctx.broker.group_configs(session.group_id).share_record_lock_duration_ms


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


@api(ShareAcknowledgeRequest, needs=needs_share_groups)
def share_acknowledge(ctx: RequestContext, request: ShareAcknowledgeRequest) -> DelayedResponse:
    """Take acknowledgements; answered once they are committed."""
    group_id, member_id = _checked_ids(request)
    if request.share_session_epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    broker = ctx.broker
    session = broker.share_partitions.sessions.resume(group_id, member_id, request.share_session_epoch)
    said = [
        (SharedPartition(topic.topic_id, asked.partition_index), asked.acknowledgement_batches)
        for topic in request.topics
        for asked in topic.partitions
    ]
    delayed = DelayedResponse(send_before_close=True)

    def acknowledged(errors: Errors) -> None:
        if request.share_session_epoch == FINAL_EPOCH:
            end_session(broker, session, lambda: respond(errors))
        else:
            respond(errors)

    def respond(errors: Errors) -> None:
        topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
        for (topic_id, index), error in errors.items():
            topic = topics.setdefault(topic_id, ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=[]))
            topic.partitions.append(ShareAcknowledgeResponsePartitionData(partition_index=index, error_code=int(error)))
        delayed.resolve(
            ShareAcknowledgeResponse(
                acquisition_lock_timeout_ms=_lock_ms(ctx, session), responses=list(topics.values())
            )
        )

    may_renew = ctx.api_version >= FIRST_VERSION_WITH_RENEWAL and request.is_renew_ack
    take(broker, session, said, acknowledged, may_renew=may_renew)
    return delayed
