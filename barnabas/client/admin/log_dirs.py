"""The log directories of brokers, and the size of each replica there (DescribeLogDirs, KIP-113, KIP-827).

Errors: `KafkaError` from the broker, `NotFound`, `TimedOut`, `Unreachable`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound, no_such, raise_for
from barnabas.client.offsets import TopicPartition
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)


class Replica(NamedTuple):
    """A partition's files in one directory."""

    topic: str
    partition: int
    size: int
    """Bytes of the segments."""
    offset_lag: int
    """Offsets behind the partition's high watermark (or, of a future replica, behind the current one)."""
    is_future: bool
    """True while it is moved to this directory."""


class LogDir(NamedTuple):
    """One log directory of one broker; sizes in bytes, -1 if the broker does not say."""

    broker: int
    path: str
    error: str | None
    """The name of the error if the directory is offline."""
    total_bytes: int
    usable_bytes: int
    replicas: list[Replica]


def describe_log_dirs(
    cluster: Cluster, topics: Sequence[str] | None = None, brokers: Sequence[int] | None = None
) -> list[LogDir]:
    """The directories of `brokers` (None: of all), with the replicas of `topics` (None: of all)."""
    named = None if topics is None else [DescribableLogDirTopic(topic=name, partitions=[]) for name in topics]

    def attempt(deadline: float) -> list[LogDir]:
        metadata = cluster.metadata(topics or [], deadline)
        for topic in metadata.topics:
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise no_such("topic", topic.name)
            raise_for(topic.error_code, f"topic {topic.name!r}")
            for described in named or ():
                if described.topic == topic.name:
                    described.partitions = [partition.partition_index for partition in topic.partitions]
        for broker in brokers or ():
            if broker not in cluster.nodes:
                raise NotFound(f"there is no broker {broker}; there are {', '.join(map(str, sorted(cluster.nodes)))}")
        log_dirs: list[LogDir] = []
        for broker in sorted(cluster.nodes if brokers is None else brokers):
            log_dirs += _of_broker(cluster, broker, DescribeLogDirsRequest(topics=named), deadline)
        return log_dirs

    return cluster.retry(attempt)


def _of_broker(cluster: Cluster, broker: int, request: DescribeLogDirsRequest, deadline: float) -> list[LogDir]:
    response = cluster.node(broker, deadline).call(request, DescribeLogDirsResponse, deadline)
    raise_for(response.error_code, f"log directories of broker {broker}")
    return [
        LogDir(
            broker,
            result.log_dir,
            _error_name(result.error_code),
            result.total_bytes,
            result.usable_bytes,
            sorted(
                Replica(topic.name, part.partition_index, part.partition_size, part.offset_lag, part.is_future_key)
                for topic in result.topics
                for part in topic.partitions
            ),
        )
        for result in response.results
    ]


def _error_name(code: int) -> str | None:
    if code == ErrorCode.NONE:
        return None
    return ErrorCode(code).name if code in ErrorCode._value2member_map_ else f"error {code}"


def broker_log_dirs(cluster: Cluster, node_id: int, topics: Sequence[str]) -> list[DescribeLogDirsResult]:
    """The log directories of a broker with the partitions of those `topics` that exist, of all without any."""
    counts = cluster.retry(lambda deadline: cluster.metadata(topics, deadline)).topics if topics else []
    partitions = [
        DescribableLogDirTopic(
            topic=topic.name or "", partitions=[partition.partition_index for partition in topic.partitions]
        )
        for topic in counts
        if not topic.error_code
    ]
    request = DescribeLogDirsRequest(topics=partitions if topics else None)
    response = cluster.call(request, DescribeLogDirsResponse, node_id=node_id)
    raise_for(response.error_code, "the cluster")
    return response.results


def partition_sizes(cluster: Cluster, topics: Sequence[str]) -> dict[TopicPartition, int]:
    """The bytes on disk of each partition of `topics`: of its largest replica."""
    sizes: dict[TopicPartition, int] = {}
    for directory in describe_log_dirs(cluster, topics):
        for replica in directory.replicas:
            if not replica.is_future:
                which = (replica.topic, replica.partition)
                sizes[which] = max(sizes.get(which, 0), replica.size)
    return sizes
