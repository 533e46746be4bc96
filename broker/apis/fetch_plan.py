"""Reads the records of one Fetch from the logs, and makes its response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.config.keys.general import FETCH_MAX_BYTES
from barnabas.broker.replicas.fetch_sessions import NO_SESSION, FetchPartition, FetchSession, PartitionKey
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
    from barnabas.storage.files import FileSlice

READ_COMMITTED = 1
FIRST_VERSION_WITH_TOPIC_IDS = 13

# Shared by all responses: never modified.
_NO_DIVERGENCE = FetchResponseEpochEndOffset()
_NO_LEADER = FetchResponseLeaderIdAndEpoch()
_NO_SNAPSHOT = FetchResponseSnapshotId()


class Attempt:
    """What one pass over the partitions of a plan has read."""

    __slots__ = ("answers", "is_final", "size")

    def __init__(self) -> None:
        self.answers: list[tuple[PartitionKey, FetchPartition, FetchResponsePartitionData]] = []
        self.size = 0
        self.is_final = False  # an error, for example, which is not held back until there are `min_bytes`


class FetchPlan:
    """The partitions of one Fetch, and its limits."""

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
                answer = failed(wanted.index, error.code)
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
        """The partition. KafkaError if it is not served here."""
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
        """The response: in a session only partitions with changes, otherwise all."""
        response = FetchResponse()
        answers = attempt.answers
        if self.session is not None:
            answers = self._changed(self.session, answers)
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
    def _changed(
        session: FetchSession, answers: list[tuple[PartitionKey, FetchPartition, FetchResponsePartitionData]]
    ) -> list[tuple[PartitionKey, FetchPartition, FetchResponsePartitionData]]:
        changed = []
        for item in answers:
            key, wanted, answer = item
            if wanted.update_response(answer):
                changed.append(item)
                if answer.records:
                    session.move_to_end(key)
        return changed

    def _create_session(self, answers: list[tuple[PartitionKey, FetchPartition, FetchResponsePartitionData]]) -> int:
        session_id = self.broker.fetch_sessions.create(
            self.partitions, uses_topic_ids=self.uses_topic_ids, is_follower=False, now=self.broker.loop.now()
        )
        if session_id != NO_SESSION:
            for _, wanted, answer in answers:
                wanted.update_response(answer)
        return session_id


def _divergence(partition: Partition, wanted: FetchPartition) -> FetchResponseEpochEndOffset:
    """Where the client's log diverges from this one, if it does (KIP-595)."""
    found = partition.log.end_offset_for_epoch(wanted.last_fetched_epoch)
    epoch, end_offset = found
    if epoch == -1 or end_offset == -1:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return FetchResponseEpochEndOffset(epoch=epoch, end_offset=end_offset)
    return _NO_DIVERGENCE


def failed(index: int, code: ErrorCode) -> FetchResponsePartitionData:
    """The response of a partition with an error."""
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
