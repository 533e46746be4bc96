"""Requests of tests to a cluster, with the client of the command line."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from barnabas.client.admin.topics import list_topics
from barnabas.client.cluster import Cluster as Client
from barnabas.client.connection import NodeConnection
from barnabas.wire.messages.metadata import MetadataResponsePartition


def client(bootstrap: str, timeout_s: float = 10.0) -> Client:
    """A client of the cluster."""
    return Client(bootstrap, software_version="tests", timeout_s=timeout_s)


def partitions(bootstrap: str, topic: str) -> dict[int, MetadataResponsePartition]:
    """The partitions of a topic."""
    with client(bootstrap) as asking:
        topics = [entry for entry in list_topics(asking) if entry.name == topic]
    return {entry.partition_index: entry for topic_ in topics for entry in topic_.partitions}


def leader(bootstrap: str, topic: str, index: int = 0) -> int:
    """The leader of a partition; -1 if it has none."""
    return partitions(bootstrap, topic)[index].leader_id


def is_in_sync(bootstrap: str, topic: str, replicas: int) -> bool:
    """Whether every partition of the topic has a leader and so many replicas in sync, as each of the brokers knows."""
    return all(_is_in_sync(partitions(address, topic), replicas) for address in bootstrap.split(","))


def _is_in_sync(partitions: Mapping[int, MetadataResponsePartition], replicas: int) -> bool:
    return bool(partitions) and all(
        partition.leader_id >= 0 and len(partition.isr_nodes) >= replicas for partition in partitions.values()
    )


def quorum_leader(addresses: Iterable[str]) -> int:
    """The id of the controller that leads the quorum, from the response of one of them."""
    from barnabas.wire.messages.raft import (
        DescribeQuorumRequest,
        DescribeQuorumRequestPartitionData,
        DescribeQuorumRequestTopicData,
        DescribeQuorumResponse,
    )

    request = DescribeQuorumRequest(
        topics=[
            DescribeQuorumRequestTopicData(
                topic_name="__cluster_metadata", partitions=[DescribeQuorumRequestPartitionData(partition_index=0)]
            )
        ]
    )
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            connection = NodeConnection(host, int(port), "tests", "1")
            connection.open(time.monotonic() + 5)
            response = connection.call(request, DescribeQuorumResponse, time.monotonic() + 5)
            connection.close()
        except Exception:
            continue
        partition = response.topics[0].partitions[0] if response.topics else None
        if partition is not None and partition.error_code == 0 and partition.leader_id >= 0:
            return partition.leader_id
    raise AssertionError("no controller says who leads the quorum")
