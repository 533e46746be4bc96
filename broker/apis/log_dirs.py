"""DescribeLogDirs (35): which partitions lie where, and how large they are (KIP-113, KIP-827 for the volume's size)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from broker.api import api
from wire.errors import ErrorCode
from wire.messages.log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from broker.context import RequestContext
    from broker.partition import Partition


@api(DescribeLogDirsRequest)
def describe_log_dirs(ctx: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Each log directory with the partitions asked for; None asks for all."""
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    by_directory: dict[str, dict[str, list[Partition]]] = {log_dir.path: {} for log_dir in ctx.broker.log_dirs.dirs}
    for partition in ctx.broker.partitions:
        if wanted is None or (partition.topic, partition.index) in wanted:
            by_directory.setdefault(partition.log.directory.rpartition("/")[0], {}).setdefault(
                partition.topic, []
            ).append(partition)
    return DescribeLogDirsResponse(results=[_describe(directory, topics) for directory, topics in by_directory.items()])


def _describe(directory: str, topics: dict[str, list[Partition]]) -> DescribeLogDirsResult:
    try:
        volume = os.statvfs(directory)
    except OSError:
        return DescribeLogDirsResult(error_code=int(ErrorCode.KAFKA_STORAGE_ERROR), log_dir=directory)
    return DescribeLogDirsResult(
        log_dir=directory,
        topics=[
            DescribeLogDirsTopic(
                name=topic,
                partitions=[
                    DescribeLogDirsPartition(
                        partition_index=partition.index,
                        partition_size=partition.log.size_bytes,
                        offset_lag=max(0, partition.log.high_watermark - partition.log.log_end_offset),
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in topics.items()
        ],
        total_bytes=volume.f_blocks * volume.f_frsize,
        usable_bytes=volume.f_bavail * volume.f_frsize,
    )
