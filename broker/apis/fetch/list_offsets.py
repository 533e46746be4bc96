"""ListOffsets (2) and OffsetForLeaderEpoch (23): offsets by timestamp, special timestamp or leader epoch.

Special timestamps: -1 latest, -2 earliest, -3 the record with the greatest timestamp (v7, KIP-734), -4 earliest on
local disk (v8, KIP-405), -5 last tiered (v9, KIP-1005), -6 earliest pending upload (v11, KIP-1023). There is no remote
storage, so -4 is the same as -2, and -5 and -6 are unknown: offset -1 (R23).

Lookups by timestamp are done in steps, between which others are served: nothing limits how much a batch expands to, and
its header may lie. Each partition is looked up, with its leader and epoch, when its turn comes.
"""

from __future__ import annotations

from collections.abc import Collection, Generator
from typing import TYPE_CHECKING

from barnabas.broker.apis.access import refused_topics
from barnabas.broker.apis.fetch.plan import IS_COMMITTED
from barnabas.broker.apis.fetch.usual import CONSUMER
from barnabas.broker.apis.parts import Parts
from barnabas.broker.apis.registry import api
from barnabas.broker.event_loop.waiting import at_once_or_in_slices
from barnabas.coord.security.acls import Operation
from barnabas.storage.read.timestamps import LookupBudget
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResponseEpochEndOffset,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.event_loop.waiting import Waiting
    from barnabas.broker.replicas.partition import Partition

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
_FIRST_VERSION_OF = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
FIRST_VERSION_WITH_LEADER_EPOCH = 4
FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE = 5
DEBUGGING_REPLICA = -2
"""The replica id of a tool that reads from any replica."""
PARTITION_UNITS = 5
"""The work of a lookup that reads nothing, in units of `LookupBudget`."""
UNKNOWN = (-1, -1, -1)
"""Timestamp, offset and leader epoch if there is no such record."""


@api(ListOffsetsRequest)
def list_offsets(
    ctx: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse | Waiting[ListOffsetsResponse]:
    """Look up each partition; an error is reported for its partition only."""
    topics = request.topics
    if request.isolation_level not in IS_COMMITTED:  # Kafka throws before it looks at a partition
        return _all_failed(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    if len(topics) == 1 and len(topics[0].partitions) == 1:
        return at_once_or_in_slices(_only(ctx, request, topics[0].name, topics[0].partitions[0]))
    return at_once_or_in_slices(_steps(ctx, request))


def _all_failed(request: ListOffsetsRequest, code: ErrorCode) -> ListOffsetsResponse:
    """The error of each partition as it is named, also of one that is named twice."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[_failed(requested.partition_index, code) for requested in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _only(
    ctx: RequestContext, request: ListOffsetsRequest, topic: str, partition: ListOffsetsPartition
) -> Generator[None, None, ListOffsetsResponse]:
    """The response to a request for one partition, the usual one."""
    if refused_topics(ctx, Operation.DESCRIBE, (topic,)):
        result = _failed(partition.partition_index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    else:
        result = yield from _look_up(ctx, request, topic, partition, LookupBudget())
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=topic, partitions=[result])])


def _steps(ctx: RequestContext, request: ListOffsetsRequest) -> Generator[None, None, ListOffsetsResponse]:
    seen: set[tuple[str, int]] = set()
    repeated: set[tuple[str, int]] = set()
    for topic in request.topics:
        for partition in topic.partitions:
            key = (topic.name, partition.partition_index)
            (repeated if key in seen else seen).add(key)
    results_of: dict[str, list[ListOffsetsPartitionResponse]] = {}
    answered: set[tuple[str, int]] = set()
    budget = LookupBudget()
    refused = refused_topics(ctx, Operation.DESCRIBE, [topic.name for topic in request.topics])
    for topic in request.topics:
        results = results_of.setdefault(topic.name, [])
        for partition in topic.partitions:
            if (topic.name, partition.partition_index) in answered:
                continue  # one answer, INVALID_REQUEST, for a partition that is named twice
            answered.add((topic.name, partition.partition_index))
            yield from budget.spend(PARTITION_UNITS)
            if topic.name in refused:
                results.append(_failed(partition.partition_index, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            elif (topic.name, partition.partition_index) in repeated:
                results.append(_failed(partition.partition_index, ErrorCode.INVALID_REQUEST))
            else:
                results.append((yield from _look_up(ctx, request, topic.name, partition, budget)))
    return ListOffsetsResponse(
        topics=[ListOffsetsTopicResponse(name=name, partitions=results) for name, results in results_of.items()]
    )


def _look_up(
    ctx: RequestContext,
    request: ListOffsetsRequest,
    topic: str,
    requested: ListOffsetsPartition,
    budget: LookupBudget,
) -> Generator[None, None, ListOffsetsPartitionResponse]:
    timestamp, replica_id = requested.timestamp, request.replica_id
    try:
        if timestamp < 0 and ctx.api_version < _FIRST_VERSION_OF.get(timestamp, 32767):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        partition = ctx.broker.partitions.get(topic, requested.partition_index)
        if replica_id == DEBUGGING_REPLICA:
            partition.check_epoch(requested.current_leader_epoch)
        else:
            partition.check_leader(requested.current_leader_epoch)
        is_behind = False
        if replica_id != CONSUMER:
            limit = partition.log.log_end_offset
        else:
            is_committed = IS_COMMITTED[request.isolation_level]
            limit = partition.log.last_stable_offset if is_committed else partition.log.high_watermark
            is_behind = partition.leading is not None and partition.is_behind_its_epoch
        if timestamp == LATEST and not is_behind:
            timestamp, offset, epoch = -1, limit, partition.leader_epoch  # nearly always
        else:
            timestamp, offset, epoch = yield from _offset_of(partition, timestamp, limit, is_behind, budget)
    except KafkaError as error:
        code = error.code
        if code == ErrorCode.OFFSET_NOT_AVAILABLE and ctx.api_version < FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE:
            code = ErrorCode.LEADER_NOT_AVAILABLE
        return _failed(requested.partition_index, code)
    except OSError as error:
        if partition.is_closed:  # its files were removed between two steps
            return _failed(requested.partition_index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        partition.report_unreadable(error)
        return _failed(requested.partition_index, ErrorCode.KAFKA_STORAGE_ERROR)
    return ListOffsetsPartitionResponse(
        partition_index=requested.partition_index,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=epoch if ctx.api_version >= FIRST_VERSION_WITH_LEADER_EPOCH else -1,
    )


def _offset_of(
    partition: Partition, timestamp: int, limit: int, is_behind: bool, budget: LookupBudget
) -> Generator[None, None, tuple[int, int, int]]:
    """(timestamp, offset, leader epoch) for a timestamp or special timestamp; no offset above `limit` is returned.

    With `is_behind` the leader does not know the committed offsets yet: OFFSET_NOT_AVAILABLE from `limit` on (R15).
    """
    log = partition.log
    if timestamp == LATEST:  # with `is_behind`
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        return -1, start, partition.leader_epoch if start == log.log_end_offset else log.earliest().leader_epoch
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return UNKNOWN
    if timestamp == MAX_TIMESTAMP:
        record = yield from log.max_timestamp_offset(budget)
    else:
        record = yield from log.offset_for_timestamp(timestamp, budget)
    if record is None or record[0] >= limit:
        if is_behind:
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
        return UNKNOWN
    offset, record_timestamp, epoch = record
    return record_timestamp, offset, epoch


def _failed(index: int, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=int(code))


@api(OffsetForLeaderEpochRequest, parts=Parts("topics.partitions"))
def offset_for_leader_epoch(ctx: RequestContext, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    """The end offset of each leader epoch, by which a client detects that the log was truncated (KIP-320)."""
    refused: Collection[str] = ()
    if not ctx.is_allowed_on_cluster(Operation.CLUSTER_ACTION, logs_denied=False):
        refused = refused_topics(ctx, Operation.DESCRIBE, [topic.topic for topic in request.topics])
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _end_of_epoch(ctx, topic.topic, partition)
                    if topic.topic not in refused
                    else _epoch_refused(partition)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _epoch_refused(requested: OffsetForLeaderPartition) -> OffsetForLeaderEpochResponseEpochEndOffset:
    return OffsetForLeaderEpochResponseEpochEndOffset(
        partition=requested.partition, error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    )


def _end_of_epoch(
    ctx: RequestContext, topic: str, requested: OffsetForLeaderPartition
) -> OffsetForLeaderEpochResponseEpochEndOffset:
    result = OffsetForLeaderEpochResponseEpochEndOffset(partition=requested.partition)
    try:
        partition = ctx.broker.partitions.get(topic, requested.partition)
        partition.check_leader(requested.current_leader_epoch)
    except KafkaError as error:
        result.error_code = int(error.code)
        return result
    result.leader_epoch, result.end_offset = partition.end_offset_for_epoch(requested.leader_epoch)
    return result
