"""The answers that transactional producers get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.produce import InitProducerIdResponse
from barnabas.wire.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    EndTxnResponse,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from barnabas.coord.transactions.transaction import TopicPartition


def init_error(error: ErrorCode) -> InitProducerIdResponse:
    """An InitProducerId that gave out nothing."""
    return InitProducerIdResponse(error_code=int(error), producer_id=-1, producer_epoch=-1)


def end_error(error: ErrorCode) -> EndTxnResponse:
    """An EndTxn that ended nothing."""
    return EndTxnResponse(error_code=int(error))


def legacy_fence(error: ErrorCode, api_version: int, *, since: int) -> ErrorCode:
    """PRODUCER_FENCED is known `since` a version; older clients take INVALID_PRODUCER_EPOCH for it (KIP-588)."""
    if error == ErrorCode.PRODUCER_FENCED and api_version < since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def added(transactional_id: str, partitions: Iterable[TopicPartition], error: ErrorCode) -> AddPartitionsToTxnResult:
    """The same for every partition."""
    return _result(transactional_id, [(partition, error) for partition in partitions])


def not_added(
    transactional_id: str, partitions: Iterable[TopicPartition], known: Collection[TopicPartition]
) -> AddPartitionsToTxnResult:
    """TRANSACTION_ABORTABLE for each partition that is not among those known."""
    good, bad = ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE
    return _result(transactional_id, [(partition, good if partition in known else bad) for partition in partitions])


def _result(transactional_id: str, outcomes: Iterable[tuple[TopicPartition, ErrorCode]]) -> AddPartitionsToTxnResult:
    topics: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (topic, partition), error in outcomes:
        of_topic = topics.setdefault(topic, AddPartitionsToTxnTopicResult(name=topic))
        of_topic.results_by_partition.append(
            AddPartitionsToTxnPartitionResult(partition_index=partition, partition_error_code=int(error))
        )
    return AddPartitionsToTxnResult(transactional_id=transactional_id, topic_results=list(topics.values()))
