"""DescribeLogDirs (35): the partitions of each log directory with their sizes (KIP-113), and the volume (KIP-827)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from barnabas.broker.apis.registry import api
from barnabas.broker.event_loop.waiting import pause
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
    from barnabas.broker.replicas.partition import Partition
    from barnabas.storage.directories.future_logs import FutureLog
    from barnabas.storage.directories.log_dir import LogDir
    from barnabas.storage.directories.log_dirs import LogDirs

PARTITIONS_OF_A_STEP = 500

_Futures: TypeAlias = "dict[LogDir, dict[str, list[tuple[Partition, FutureLog]]]]"


@api(DescribeLogDirsRequest, requires=Operation.DESCRIBE)
async def describe_log_dirs(ctx: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Describe each log directory with the requested partitions; None requests all."""
    requested = None
    if request.topics is not None:
        requested = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    by_directory: dict[LogDir, dict[str, list[Partition]]] = {log_dir: {} for log_dir in ctx.broker.log_dirs.dirs}
    for number, partition in enumerate(list(ctx.broker.partitions)):
        if number and number % PARTITIONS_OF_A_STEP == 0:
            await pause()
        if requested is None or (partition.topic, partition.index) in requested:
            log_dir = ctx.broker.log_dirs.dir_of(partition.topic, partition.index)
            if log_dir is not None:
                by_directory[log_dir].setdefault(partition.topic, []).append(partition)
    futures = _futures(ctx.broker, requested)
    response = DescribeLogDirsResponse()
    for log_dir, topics in by_directory.items():
        described = await _describe(ctx.broker.log_dirs, log_dir, topics)
        if not described.error_code:
            _add_futures(described, futures.get(log_dir, {}))
        response.results.append(described)
    return response


async def _describe(log_dirs: LogDirs, log_dir: LogDir, topics: dict[str, list[Partition]]) -> DescribeLogDirsResult:
    """The partitions of a directory; for a failed or missing directory only an error, as in Kafka."""
    failed = DescribeLogDirsResult(error_code=int(ErrorCode.KAFKA_STORAGE_ERROR), log_dir=log_dir.path)
    if log_dir.failure is not None:
        return failed
    try:
        size, free = log_dir.volume()
    except OSError:
        return failed
    result = DescribeLogDirsResult(log_dir=log_dir.path, total_bytes=size, usable_bytes=free)
    budget = PARTITIONS_OF_A_STEP
    for topic, partitions in topics.items():
        described = DescribeLogDirsTopic(name=topic)
        result.topics.append(described)
        for partition in partitions:
            if not budget:
                budget = PARTITIONS_OF_A_STEP
                await pause()
            budget -= 1
            if log_dirs.dir_of(topic, partition.index) is not log_dir:
                continue  # deleted or moved meanwhile
            described.partitions.append(
                DescribeLogDirsPartition(
                    partition_index=partition.index,
                    partition_size=partition.log.size_bytes,
                    offset_lag=max(0, partition.log.high_watermark - partition.log.log_end_offset),
                )
            )
    return result


def _futures(broker: Broker, requested: set[tuple[str, int]] | None) -> _Futures:
    """The future replicas by directory and topic."""
    futures: _Futures = {}
    for (topic, index), future in broker.log_dirs.futures.logs.items():
        if requested is None or (topic, index) in requested:
            partition = broker.partitions.find(topic, index)
            if partition is not None:
                futures.setdefault(future.log_dir, {}).setdefault(topic, []).append((partition, future))
    return futures


def _add_futures(result: DescribeLogDirsResult, futures: dict[str, list[tuple[Partition, FutureLog]]]) -> None:
    """Add the future replicas in a directory, with how far they are behind the current ones."""
    by_name = {topic.name: topic for topic in result.topics}
    for name, partitions in futures.items():
        described = by_name.get(name)
        if described is None:
            described = DescribeLogDirsTopic(name=name)
            result.topics.append(described)
        described.partitions += [
            DescribeLogDirsPartition(
                partition_index=partition.index,
                partition_size=future.log.size_bytes,
                offset_lag=max(0, partition.log.log_end_offset - future.log.log_end_offset),
                is_future_key=True,
            )
            for partition, future in partitions
        ]
