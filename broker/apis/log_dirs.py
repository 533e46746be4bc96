"""DescribeLogDirs (35): the partitions of each log directory with their sizes (KIP-113), and the volume (KIP-827)."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, TypeAlias

from barnabas.broker.apis.registry import api
from barnabas.broker.apis.sliced_response import respond_in_steps
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from barnabas.broker.context import Broker, RequestContext
    from barnabas.broker.net.delayed_response import DelayedResponse
    from barnabas.broker.replicas.partition import Partition
    from barnabas.storage.directories.future_logs import FutureLog
    from barnabas.storage.directories.log_dir import LogDir

PARTITIONS_OF_A_STEP = 500

_Futures: TypeAlias = "dict[LogDir, dict[str, list[tuple[Partition, FutureLog]]]]"


@api(DescribeLogDirsRequest, requires=Operation.DESCRIBE)
def describe_log_dirs(
    ctx: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse | DelayedResponse:
    """Describe each log directory with the requested partitions; None requests all."""
    return respond_in_steps(ctx, _steps(ctx, request))


def _steps(ctx: RequestContext, request: DescribeLogDirsRequest) -> Generator[None, None, DescribeLogDirsResponse]:
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    by_directory: dict[LogDir, dict[str, list[Partition]]] = {log_dir: {} for log_dir in ctx.broker.log_dirs.dirs}
    for number, partition in enumerate(list(ctx.broker.partitions)):
        if number and number % PARTITIONS_OF_A_STEP == 0:
            yield
        if wanted is None or (partition.topic, partition.index) in wanted:
            log_dir = ctx.broker.log_dirs.dir_of(partition.topic, partition.index)
            if log_dir is not None:
                by_directory[log_dir].setdefault(partition.topic, []).append(partition)
    futures = _futures(ctx.broker, wanted)
    response = DescribeLogDirsResponse()
    for log_dir, topics in by_directory.items():
        described = yield from _describe(log_dir, topics)
        if not described.error_code:
            _add_futures(described, futures.get(log_dir, {}))
        response.results.append(described)
    return response


def _describe(log_dir: LogDir, topics: dict[str, list[Partition]]) -> Generator[None, None, DescribeLogDirsResult]:
    """The partitions of a directory; for a failed or missing directory only an error, as in Kafka."""
    failed = DescribeLogDirsResult(error_code=int(ErrorCode.KAFKA_STORAGE_ERROR), log_dir=log_dir.path)
    if log_dir.failure is not None:
        return failed
    try:
        size, free = log_dir.volume()
    except OSError:
        return failed
    result = DescribeLogDirsResult(log_dir=log_dir.path, total_bytes=size, usable_bytes=free)
    left = PARTITIONS_OF_A_STEP
    for topic, partitions in topics.items():
        answers = DescribeLogDirsTopic(name=topic)
        result.topics.append(answers)
        for partition in partitions:
            if not left:
                left = PARTITIONS_OF_A_STEP
                yield
            left -= 1
            answers.partitions.append(
                DescribeLogDirsPartition(
                    partition_index=partition.index,
                    partition_size=partition.log.size_bytes,
                    offset_lag=max(0, partition.log.high_watermark - partition.log.log_end_offset),
                )
            )
    return result


def _futures(broker: Broker, wanted: set[tuple[str, int]] | None) -> _Futures:
    """The future replicas by directory and topic."""
    futures: _Futures = {}
    for (topic, index), future in broker.log_dirs.futures.logs.items():
        if wanted is None or (topic, index) in wanted:
            found = broker.partitions.find(topic, index)
            if found is not None:
                futures.setdefault(future.log_dir, {}).setdefault(topic, []).append((found, future))
    return futures


def _add_futures(result: DescribeLogDirsResult, futures: dict[str, list[tuple[Partition, FutureLog]]]) -> None:
    """Add the future replicas in a directory, with how far they are behind the current ones."""
    by_name = {topic.name: topic for topic in result.topics}
    for name, found in futures.items():
        answers = by_name.get(name)
        if answers is None:
            answers = DescribeLogDirsTopic(name=name)
            result.topics.append(answers)
        answers.partitions += [
            DescribeLogDirsPartition(
                partition_index=partition.index,
                partition_size=future.log.size_bytes,
                offset_lag=max(0, partition.log.log_end_offset - future.log.log_end_offset),
                is_future_key=True,
            )
            for partition, future in found
        ]
