"""DeleteRecords: move the start of partitions."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.client.cluster import Cluster
from barnabas.client.offsets import TopicPartition
from barnabas.client.tools.answers import checked
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)


def delete_records(cluster: Cluster, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | KafkaError]:
    """Delete what is before these offsets (-1: everything); the new start of each partition, or its error."""

    def attempt(deadline: float) -> dict[TopicPartition, int | KafkaError]:
        found: dict[TopicPartition, int | KafkaError] = {}
        by_leader: dict[int, dict[str, list[DeleteRecordsPartition]]] = {}
        for (name, index), offset in offsets.items():
            leader = cluster.leader(name, index, deadline)
            one = DeleteRecordsPartition(partition_index=index, offset=offset)
            by_leader.setdefault(leader, {}).setdefault(name, []).append(one)
        for leader, topics in by_leader.items():
            wanted = [DeleteRecordsTopic(name=name, partitions=parts) for name, parts in topics.items()]
            request = DeleteRecordsRequest(topics=wanted, timeout_ms=int(cluster.timeout_s * 1000))
            for topic in cluster.node(leader, deadline).call(request, DeleteRecordsResponse, deadline).topics:
                for part in topic.partitions:
                    found[topic.name, part.partition_index] = checked(part.error_code) or part.low_watermark
        return found

    return cluster.retry(attempt)
