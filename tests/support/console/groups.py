"""Groups and transactions for tests of the console, over a `Cluster`: a member, a share reader, a streams member."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic

from barnabas.client.admin.configs import ALL_BROKERS, DELETE, SET, ConfigChange, alter_config
from barnabas.client.cluster import Cluster
from barnabas.client.groups.member import GroupMember
from barnabas.client.producer import Producer
from barnabas.wire.batches.records import build_batch
from barnabas.wire.clients.partitioners import RoundRobin
from barnabas.wire.messages.groups import share_groups as share
from barnabas.wire.messages.groups import streams_groups as streams
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.support.waiting import wait_for

RELEASE = 2
HANGS_S = 60.0


def write(cluster: Cluster, topic: str, count: int, partition: int = 0) -> None:
    """Produce records to one partition."""
    producer = Producer(cluster, RoundRobin)
    for _ in range(count):
        producer.send(topic, b"a record", partition=partition)
    producer.flush()


def write_in_transaction(cluster: Cluster, topic: str, transactional_id: str) -> Producer:
    """Begin a transaction with a record in partition 0; it stays open until its producer's transaction ends it."""
    producer = Producer(cluster, RoundRobin, transactional_id=transactional_id)
    producer.send(topic, b"a record", partition=0)
    producer.flush()
    return producer


def joined(cluster: Cluster, group: str, topic: str) -> GroupMember:
    """A classic member that has its partitions; it is one until its session times out, or it leaves."""
    member = GroupMember(cluster, group, lambda _cluster: [topic], None)
    member.join(lambda: None)
    return member


class ShareReader:
    """A member of a share group."""

    def __init__(self, cluster: Cluster, group: str, topic: str) -> None:
        self._cluster, self._group, self._topic = cluster, group, topic
        self._topic_id = cluster.find_topic(topic).topic_id
        self._epoch = 0
        self._session_epoch = 0
        wait_for(self._has_partitions, "the share group's member has its partitions")

    def _has_partitions(self) -> bool:
        response = self._beat(self._epoch)
        if response.error_code:
            return False
        self._epoch = response.member_epoch
        return response.assignment is not None and bool(response.assignment.topic_partitions)

    def _beat(self, epoch: int) -> share.ShareGroupHeartbeatResponse:
        request = share.ShareGroupHeartbeatRequest(
            group_id=self._group, member_id="share-reader", member_epoch=epoch, subscribed_topic_names=[self._topic]
        )
        deadline = monotonic() + HANGS_S
        node = self._cluster.coordinator(self._group, deadline)
        return node.call(request, share.ShareGroupHeartbeatResponse, deadline)

    def fetch(self, acknowledge: Iterable[tuple[int, int, int]] = ()) -> list[tuple[int, int]]:
        """Acquire records of partition 0, and acknowledge (first, last, type); first and last of what was acquired."""
        batches = [
            share.ShareFetchRequestAcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[kind])
            for first, last, kind in acknowledge
        ]
        partition = share.ShareFetchRequestFetchPartition(partition_index=0, acknowledgement_batches=batches)
        topic = share.ShareFetchRequestFetchTopic(topic_id=self._topic_id, partitions=[partition])
        request = share.ShareFetchRequest(
            group_id=self._group,
            member_id="share-reader",
            share_session_epoch=self._session_epoch,
            min_bytes=0,
            max_bytes=1 << 20,
            max_records=10,
            batch_size=10,
            topics=[topic],
        )
        deadline = monotonic() + HANGS_S
        leader = self._cluster.node(self._cluster.leader(self._topic, 0, deadline), deadline)
        response = leader.call(request, share.ShareFetchResponse, deadline)
        assert not response.error_code, response
        self._session_epoch += 1
        return [
            (records.first_offset, records.last_offset)
            for answered in response.responses
            for part in answered.partitions
            for records in part.acquired_records
        ]

    def leave(self) -> None:
        """Leave the group."""
        self._beat(-1)


def join_streams(cluster: Cluster, group: str, topic: str) -> None:
    """A member of a streams group whose topology reads a topic."""
    subtopology = streams.StreamsGroupHeartbeatRequestSubtopology(subtopology_id="0", source_topics=[topic])
    request = streams.StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id="streams-member",
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        topology=streams.StreamsGroupHeartbeatRequestTopology(epoch=1, subtopologies=[subtopology]),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="process-1",
    )

    def beat() -> bool:
        deadline = monotonic() + HANGS_S
        node = cluster.coordinator(group, deadline)
        response = node.call(request, streams.StreamsGroupHeartbeatResponse, deadline)
        if response.error_code:
            return False
        request.member_epoch, request.topology = response.member_epoch, None
        request.active_tasks = request.standby_tasks = request.warmup_tasks = None
        request.process_id = None
        return bool(response.active_tasks)

    wait_for(beat, "the streams group's member has its tasks")


def hang(cluster: Cluster, topic: str) -> None:
    """Write a transaction into partition 0 without its coordinator, as clients before KIP-890 could."""
    records = build_batch(
        [(1000, None, b"hangs")], producer_id=987_654_321, producer_epoch=0, base_sequence=0, transactional=True
    )
    key = "transaction.partition.verification.enable"
    alter_config(cluster, "broker", ALL_BROKERS, [ConfigChange(key, SET, "false")])
    try:
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
        request = ProduceRequest(transactional_id="gone", acks=-1, timeout_ms=10_000, topic_data=[data])
        deadline = monotonic() + HANGS_S
        leader = cluster.node(cluster.leader(topic, 0, deadline), deadline)
        response = leader.call(request, ProduceResponse, deadline, max_version=9)
        assert response.responses[0].partition_responses[0].error_code == 0, response
    finally:
        alter_config(cluster, "broker", ALL_BROKERS, [ConfigChange(key, DELETE)])
