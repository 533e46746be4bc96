"""The responses that transactional producers get."""

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
    """An InitProducerId response with an error."""
    return InitProducerIdResponse(error_code=int(error), producer_id=-1, producer_epoch=-1)


def end_error(error: ErrorCode) -> EndTxnResponse:
    """An EndTxn response with an error."""
    return EndTxnResponse(error_code=int(error))


def legacy_fence(error: ErrorCode, api_version: int, *, since: int) -> ErrorCode:
    """INVALID_PRODUCER_EPOCH instead of PRODUCER_FENCED for versions before `since`, else the same error (KIP-588)."""
    if error == ErrorCode.PRODUCER_FENCED and api_version < since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def same_error(
    transactional_id: str, partitions: Iterable[TopicPartition], error: ErrorCode
) -> AddPartitionsToTxnResult:
    """A result with one error, or NONE, for all partitions."""
    return _result(transactional_id, [(partition, error) for partition in partitions])


def verification(
    transactional_id: str, partitions: Iterable[TopicPartition], known: Collection[TopicPartition]
) -> AddPartitionsToTxnResult:
    """A result with TRANSACTION_ABORTABLE for every partition that is not in `known`."""
    errors = (
        (partition, ErrorCode.NONE if partition in known else ErrorCode.TRANSACTION_ABORTABLE)
        for partition in partitions
    )
    return _result(transactional_id, errors)


def _result(transactional_id: str, errors: Iterable[tuple[TopicPartition, ErrorCode]]) -> AddPartitionsToTxnResult:
    topics: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (topic, partition), error in errors:
        result = topics.setdefault(topic, AddPartitionsToTxnTopicResult(name=topic))
        result.results_by_partition.append(
            AddPartitionsToTxnPartitionResult(partition_index=partition, partition_error_code=int(error))
        )
    return AddPartitionsToTxnResult(transactional_id=transactional_id, topic_results=list(topics.values()))
