"""Fetch (1): records out, by sessions and with long polls.

v4 isolation levels; v5 log start offset; v7 sessions (KIP-227); v9 leader epochs (KIP-320); v12 diverging epochs
(KIP-595); v13 topic ids (KIP-516); v15 replica state (KIP-903). A fetch that finds less than `min_bytes` is parked
until an append, a deletion or `max_wait_ms` ends the wait. The first batch is always whole even where it exceeds the
limits (KIP-74).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.registry import api
from barnabas.broker.config.keys.general import FETCH_MAX_BYTES
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.broker.replicas.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchPartition,
    FetchSession,
    PartitionKey,
    asked_partitions,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchResponseEpochEndOffset,
    FetchResponseLeaderIdAndEpoch,
    FetchResponsePartitionData,
    FetchResponseSnapshotId,
)

if TYPE_CHECKING:
    from barnabas.broker.context import Broker, RequestContext
    from barnabas.broker.replicas.partition import Partition
    from barnabas.broker.timers import Timer
    from barnabas.storage.files import FileSlice

READ_COMMITTED = 1
FIRST_VERSION_WITH_TOPIC_IDS = 13
_SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)

# Shared by all answers: nobody changes them.
_NO_DIVERGENCE = FetchResponseEpochEndOffset()
_NO_LEADER = FetchResponseLeaderIdAndEpoch()
_NO_SNAPSHOT = FetchResponseSnapshotId()


def _whole_request_failed(request: FetchRequest, error: KafkaError) -> FetchResponse:
    """The error at the top (v7), and in each partition for the versions and the clients that look there."""
    return FetchResponse(
        error_code=int(error.code),
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[_failed(asked.partition, error.code) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
        if error.code not in _SESSION_ERRORS
        else [],
    )


@api(FetchRequest, on_error=_whole_request_failed)
def fetch(ctx: RequestContext, request: FetchRequest) -> FetchResponse | DelayedResponse:
    """Read from each partition, now or once there is enough."""
    if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "This broker has no followers.")
    plan = _plan(ctx, request)
    attempt = plan.read()
    if attempt.is_final or attempt.size >= request.min_bytes or request.max_wait_ms <= 0 or ctx.broker.is_stopping:
        return plan.respond(attempt)
    return FetchWait(plan, attempt, deadline=ctx.now + request.max_wait_ms / 1000).delayed


def _plan(ctx: RequestContext, request: FetchRequest) -> FetchPlan:
    """What the request, with its session, asks for."""
    sessions = ctx.broker.fetch_sessions
    uses_topic_ids = ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    if request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
        session = sessions.resume(request, uses_topic_ids=uses_topic_ids, now=ctx.now)
        if session is not None:
            return FetchPlan(ctx, request, session.partitions, session)
    elif request.session_id != NO_SESSION:
        sessions.close(request.session_id)
    partitions = {
        key: FetchPartition(topic, topic_id, asked)
        for key, topic, topic_id, asked in asked_partitions(request, uses_topic_ids=uses_topic_ids)
    }
    plan = FetchPlan(ctx, request, partitions, None)
    plan.wants_session = request.session_epoch == INITIAL_EPOCH
    return plan


class Attempt:
    """One pass over the partitions of a plan."""

    __slots__ = ("answers", "is_final", "size")

    def __init__(self) -> None:
        self.answers: list[tuple[PartitionKey, FetchPartition, FetchResponsePartitionData]] = []
        self.size = 0
        self.is_final = False  # something other than records has to be told now


class FetchPlan:
    """The partitions to read, and how."""

    __slots__ = (
        "broker",
        "is_committed",
        "max_bytes",
        "min_bytes",
        "partitions",
        "session",
        "uses_topic_ids",
        "wants_session",
    )

    def __init__(
        self,
        ctx: RequestContext,
        request: FetchRequest,
        partitions: dict[PartitionKey, FetchPartition],
        session: FetchSession | None,
    ) -> None:
        self.broker: Broker = ctx.broker
        self.uses_topic_ids = ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        self.is_committed = request.isolation_level == READ_COMMITTED
        self.min_bytes = request.min_bytes
        self.max_bytes = min(request.max_bytes, ctx.broker.config[FETCH_MAX_BYTES])
        self.partitions = partitions
        self.session = session
        self.wants_session = False

    def read(self) -> Attempt:
        """Read every partition, up to the limits."""
        attempt = Attempt()
        attempt.is_final = not self.partitions
        left = self.max_bytes
        for key, wanted in self.partitions.items():
            try:
                answer = self._read_one(wanted, left, min_one_batch=not attempt.size)
            except KafkaError as error:
                answer = _failed(wanted.index, error.code)
                if error.__cause__ is not None:
                    self.find(wanted).report_unreadable(error.__cause__)
            size = len(answer.records)  # type: ignore[arg-type]
            attempt.size += size
            left -= size
            if answer.error_code or answer.diverging_epoch is not _NO_DIVERGENCE:
                attempt.is_final = True
            attempt.answers.append((key, wanted, answer))
        return attempt

    def find(self, wanted: FetchPartition) -> Partition:
        """The partition; KafkaError if this broker does not have it."""
        partitions = self.broker.partitions
        if self.uses_topic_ids:
            return partitions.get_by_id(wanted.topic_id, wanted.index)
        return partitions.get(wanted.topic, wanted.index)

    def _read_one(self, wanted: FetchPartition, left: int, *, min_one_batch: bool) -> FetchResponsePartitionData:
        partition = self.find(wanted)
        partition.check_epoch(wanted.current_leader_epoch)
        log = partition.log
        diverging = _NO_DIVERGENCE
        if wanted.last_fetched_epoch >= 0:
            diverging = _divergence(partition, wanted)
        high_watermark = log.high_watermark
        limit = log.last_stable_offset if self.is_committed else high_watermark
        records: bytes | FileSlice = b""
        aborted = None
        if diverging is _NO_DIVERGENCE:
            read = log.read(
                wanted.fetch_offset,
                max(0, min(wanted.max_bytes, left)),
                limit_offset=limit,
                min_one_batch=min_one_batch,
            )
            if read.slice is not None:
                records = read.slice
            if self.is_committed:
                aborted = [
                    AbortedTransaction(producer_id=ended.producer_id, first_offset=ended.first_offset)
                    for ended in log.aborted_transactions(wanted.fetch_offset, read.end_offset)
                ]
        return FetchResponsePartitionData(
            partition_index=wanted.index,
            error_code=0,
            high_watermark=high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            diverging_epoch=diverging,
            current_leader=_NO_LEADER,
            snapshot_id=_NO_SNAPSHOT,
            aborted_transactions=aborted,
            preferred_read_replica=-1,
            records=records,
        )

    def respond(self, attempt: Attempt) -> FetchResponse:
        """The response: in a session only what is new, else everything."""
        response = FetchResponse()
        answers = attempt.answers
        if self.session is not None:
            answers = self._news(self.session, answers)
            response.session_id = self.session.session_id
        elif self.wants_session:
            response.session_id = self._create_session(answers)
        topics = response.responses
        current: bytes | str | None = None
        for key, wanted, answer in answers:
            if key[0] != current:
                current = key[0]
                topic = FetchableTopicResponse(topic=wanted.topic, topic_id=wanted.topic_id, partitions=[])
                topics.append(topic)
            topic.partitions.append(answer)
        return response

    @staticmethod
    def _news(
        session: FetchSession, answers: list[tuple[PartitionKey, FetchPartition, FetchResponsePartitionData]]
    ) -> list[tuple[PartitionKey, FetchPartition, FetchResponsePartitionData]]:
        news = []
        for item in answers:
            key, wanted, answer = item
            if wanted.has_news(answer):
                news.append(item)
                if answer.records:
                    session.move_to_end(key)
        return news

    def _create_session(self, answers: list[tuple[PartitionKey, FetchPartition, FetchResponsePartitionData]]) -> int:
        session_id = self.broker.fetch_sessions.create(
            self.partitions, uses_topic_ids=self.uses_topic_ids, is_follower=False, now=self.broker.loop.now()
        )
        if session_id != NO_SESSION:
            for _, wanted, answer in answers:
                wanted.has_news(answer)
        return session_id


class FetchWait:
    """A parked fetch: woken by its partitions, ended by its deadline."""

    __slots__ = ("_known", "_size", "_timer", "delayed", "plan")

    def __init__(self, plan: FetchPlan, attempt: Attempt, deadline: float) -> None:
        self.plan = plan
        self.delayed = DelayedResponse(on_cancel=self._leave)
        self._size = attempt.size
        self._known: dict[Partition, int] = {}
        for wanted in plan.partitions.values():
            partition = plan.find(wanted)
            self._known[partition] = partition.bytes_appended
            partition.waiters[self] = self.partition_changed
        self._timer: Timer = plan.broker.loop.timers.at(deadline, self._expire)

    def partition_changed(self, partition: Partition) -> None:
        """A partition got records, or is gone."""
        self._size += partition.bytes_appended - self._known[partition]
        self._known[partition] = partition.bytes_appended
        if self._size >= self.plan.min_bytes or partition.is_gone:
            attempt = self.plan.read()
            self._size = attempt.size  # less than was appended, if a transaction holds the records back
            if attempt.is_final or attempt.size >= self.plan.min_bytes:
                self._finish(attempt)

    def _expire(self) -> None:
        self._finish(self.plan.read())

    def _finish(self, attempt: Attempt) -> None:
        self._leave()
        self.delayed.resolve(self.plan.respond(attempt))

    def _leave(self) -> None:
        self._timer.cancel()
        for partition in self._known:
            partition.waiters.pop(self, None)


def _divergence(partition: Partition, wanted: FetchPartition) -> FetchResponseEpochEndOffset:
    """KIP-595: where the reader's log leaves ours, if it does."""
    found = partition.log.end_offset_for_epoch(wanted.last_fetched_epoch)
    epoch, end_offset = found
    if epoch == -1 or end_offset == -1:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return FetchResponseEpochEndOffset(epoch=epoch, end_offset=end_offset)
    return _NO_DIVERGENCE


def _failed(index: int, code: ErrorCode) -> FetchResponsePartitionData:
    return FetchResponsePartitionData(
        partition_index=index,
        error_code=int(code),
        high_watermark=-1,
        diverging_epoch=_NO_DIVERGENCE,
        current_leader=_NO_LEADER,
        snapshot_id=_NO_SNAPSHOT,
        aborted_transactions=None,
        records=b"",
    )
