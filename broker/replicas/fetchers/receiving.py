"""Handles the answer of a leader for one partition: records, high watermark, log start (R1, R4, R5, R8, R24).

The records are appended unchanged. An answer that does not fit this log leads to a `Remedy`, which takes longer: a
truncation, or a request to the leader. Errors of the disk are reported to `log_dir_failures`. Source: Kafka's
`ReplicaFetcherThread.processPartitionData` and `AbstractFetcherThread.processFetchRequest`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.event_loop.guarded import log_failure
from barnabas.broker.replicas.fetchers.truncating import target_of
from barnabas.storage.append.follower_append import UnexpectedOffset
from barnabas.storage.damage import DamagedLog
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.replicas.fetchers.context import FetchContext
    from barnabas.broker.replicas.fetchers.followed import Followed
    from barnabas.wire.messages.fetch import FetchResponsePartitionData

logger = logging.getLogger("kafka.server.ReplicaFetcherThread")

EXPECTED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)
"""The errors of a leader while the two brokers have different metadata, or while it cannot read its disk: they pass.
FENCED_LEADER_EPOCH and the like end with the metadata that makes the partition follow another leader."""


class Truncate(NamedTuple):
    """The logs differ, or the leader's log starts above this one's end: truncate, then fetch again."""

    offset: int
    fully: bool = False
    records: bytes = b""
    """Records to append after a full truncation: a batch that begins below the leader's log start."""
    high_watermark: int = -1
    log_start_offset: int = -1


class AskLeader(NamedTuple):
    """The offset is outside of the leader's log: ask for its end and its start (R24)."""


class Wait(NamedTuple):
    """An error: fetch again later."""


Remedy = Truncate | AskLeader | Wait


def receive(context: FetchContext, followed: Followed, data: FetchResponsePartitionData) -> Remedy | None:
    """Handle the answer for one partition; return the remedy needed before the next fetch, None if none is."""
    code = data.error_code
    if code:
        return _error(followed, code)
    diverging = data.diverging_epoch
    if diverging.epoch >= 0 and diverging.end_offset >= 0:
        return Truncate(target_of(followed.partition.log, diverging.epoch, diverging.end_offset))
    records = data.records
    if records:
        try:
            remedy = _append(context, followed, data, records)  # type: ignore[arg-type]
        except DamagedLog as damage:
            followed.partition.damaged(str(damage))
            return Wait()
        except Exception as error:
            return _failed(followed, error)
        if remedy is not None:
            return remedy
    followed.succeeded()
    follow_offsets(context, followed, data.high_watermark, data.log_start_offset)
    return None


def _error(followed: Followed, code: int) -> Remedy:
    if code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return AskLeader()
    if code not in EXPECTED:
        partition = followed.partition
        logger.error(
            "Broker %d answers error %d to the fetch of %s-%d from offset %d",
            *(partition.leader_id, code, partition.topic, partition.index, partition.log.log_end_offset),
        )
    return Wait()


def _append(
    context: FetchContext, followed: Followed, data: FetchResponsePartitionData, records: memoryview
) -> Remedy | None:
    partition = followed.partition
    log = partition.log
    try:
        appended = log.append_as_follower(records, now=context.loop.now())
    except UnexpectedOffset as unexpected:
        is_empty = log.log_start_offset == log.log_end_offset
        if is_empty and unexpected.first_offset < log.log_end_offset <= unexpected.last_offset:
            return Truncate(unexpected.first_offset, True, bytes(records), data.high_watermark, data.log_start_offset)
        raise
    if appended.size:
        rate = context.quota_rate
        if rate is not None and context.is_throttled(partition):
            context.quota.record(appended.size, context.loop.now())
        partition.appended_as_follower(appended.size)
    return None


def _failed(followed: Followed, error: Exception) -> Remedy:
    partition = followed.partition
    if isinstance(error, KafkaError) and isinstance(error.__cause__, OSError):
        partition.report_failure("write", error.__cause__)
    elif isinstance(error, OSError):
        partition.report_failure("write", error)
    else:
        log_failure(f"Following the leader of {partition!r}", error)
    return Wait()


def follow_offsets(context: FetchContext, followed: Followed, high_watermark: int, leader_start: int) -> None:
    """Follow the leader's high watermark (R8) and its log start, as far as this replica has the records."""
    partition = followed.partition
    log = partition.log
    followed.lag = max(0, high_watermark - log.log_end_offset)
    if high_watermark > log.high_watermark:
        partition.follow_high_watermark(high_watermark)
    if leader_start > log.log_start_offset and log.advance_log_start_offset(min(leader_start, log.high_watermark)):
        context.persist_log_starts()
