"""G5, KIP-932: share partitions and their state on different brokers, and what happens when leaders move."""

from __future__ import annotations

import pytest

from barnabas.broker.coordinators import share_states
from barnabas.coord.cluster.resources import GROUP, TOPIC
from barnabas.coord.partitioning import coordinator_partition
from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.groups import share_groups as g
from barnabas.wire.messages.groups import share_state as s
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.wire.messages.records import metadata_records as m
from tests.broker.share_member import ACCEPT, FEW, REJECT, Member, acquired
from tests.support.memory.broker import batch
from tests.support.memory.cluster import MemoryCluster

STATE = "__share_group_state"


class On:
    """One broker of the cluster, as a member sees it."""

    def __init__(self, cluster: MemoryCluster, broker: int, topic_id: bytes) -> None:
        self.memory = cluster.brokers[broker]
        self.topic_id = topic_id

    def client(self, **options):
        return self.memory.client(**options)


class ClusterMember(Member):
    """A member that waits for brokers to ask each other."""

    def __init__(self, cluster: MemoryCluster, broker: int, topic_id: bytes, member_id: str) -> None:
        self.cluster = cluster
        super().__init__(On(cluster, broker, topic_id), member_id)

    def fetch(self, *, wait_ms: int = 0, **options):
        self.send(max_wait_ms=wait_ms, **options)
        self.cluster.advance(wait_ms / 1000)
        (response,) = self.answers()
        return response


@pytest.fixture
def cluster(tmp_path):
    """Broker 1 has the state, broker 2 leads topic q."""
    cluster = MemoryCluster(tmp_path, FEW)
    cluster.create(STATE, [1])
    cluster.topic_id = cluster.create("q", [2])  # type: ignore[attr-defined]
    yield cluster
    cluster.close()


def initialize(cluster: MemoryCluster) -> None:
    partition = s.InitializeShareGroupStateRequestPartitionData(partition=0, state_epoch=0, start_offset=0)
    request = s.InitializeShareGroupStateRequest(
        group_id="g", topics=[s.InitializeStateData(topic_id=cluster.topic_id, partitions=[partition])]
    )
    response = cluster.brokers[1].client().ask(request, 0, s.InitializeShareGroupStateResponse)
    assert response.results[0].partitions[0].error_code == 0


def produce(cluster: MemoryCluster, broker: int, *values: bytes) -> None:
    data = PartitionProduceData(index=0, records=batch(*values))
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="q", partition_data=[data])])
    response = cluster.brokers[broker].client().ask(request, 9, ProduceResponse)
    assert response.responses[0].partition_responses[0].error_code == 0


def member(cluster: MemoryCluster, broker: int, name: str = "AAAAAAAAAAAAAAAAAAAAAA") -> ClusterMember:
    return ClusterMember(cluster, broker, cluster.topic_id, name)


def taken(response: g.ShareFetchResponse) -> list[tuple[int, int, int]]:
    assert response.error_code == 0
    return acquired(response)


def test_the_state_is_read_and_written_at_another_broker(cluster) -> None:
    initialize(cluster)
    produce(cluster, 2, b"a", b"b", b"c")
    reader = member(cluster, 2)
    assert taken(reader.fetch(wait_ms=500)) == [(0, 2, 1)]
    reader.fetch(acks=[(0, 1, [ACCEPT])])
    kinds = [type(request).__name__ for request in cluster.links[2, 1, "share-state"].sent]
    assert kinds == ["ReadShareGroupStateRequest", "WriteShareGroupStateRequest"]


def test_the_next_leader_delivers_what_was_not_acknowledged(cluster) -> None:
    initialize(cluster)
    produce(cluster, 2, b"a", b"b", b"c")
    reader = member(cluster, 2)
    assert taken(reader.fetch(wait_ms=500)) == [(0, 2, 1)]
    reader.fetch(acks=[(0, 1, [ACCEPT])])
    cluster.move("q", 0, 1)
    moved = reader.fetch(acks=[(2, 2, [ACCEPT])])
    data = moved.responses[0].partitions[0]
    assert (data.error_code, data.acknowledge_error_code) == (E.NOT_LEADER_OR_FOLLOWER, E.NOT_LEADER_OR_FOLLOWER)
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (1, 1)
    assert [(endpoint.node_id, endpoint.host) for endpoint in moved.node_endpoints] == [(1, "host-1")]
    assert taken(member(cluster, 1).fetch(wait_ms=500)) == [(2, 2, 1)]


def test_a_write_reaches_the_next_share_coordinator(cluster) -> None:
    initialize(cluster)
    produce(cluster, 2, b"a", b"b")
    reader = member(cluster, 2)
    assert taken(reader.fetch(wait_ms=500)) == [(0, 1, 1)]
    cluster.unreachable.add(1)
    reader.send(acks=[(0, 1, [ACCEPT])])
    cluster.advance(0.3)
    assert reader.answers() == []
    cluster.move(STATE, 0, 2)
    cluster.advance(1.0)
    (response,) = reader.answers()
    assert response.error_code == 0
    assert all(not partition.acknowledge_error_code for topic in response.responses for partition in topic.partitions)
    cluster.move("q", 0, 1)
    cluster.move(STATE, 0, 1)
    cluster.unreachable.clear()
    produce(cluster, 1, b"c")
    assert taken(member(cluster, 1).fetch(wait_ms=500)) == [(2, 2, 1)]


def test_a_late_acknowledgement_is_accepted_once_the_end_of_the_record_is_written(cluster) -> None:
    configs = {"share.delivery.count.limit": "2", "share.record.lock.duration.ms": "1000"}
    cluster.commit(
        *(m.ConfigRecord(resource_type=GROUP, resource_name="g", name=k, value=v) for k, v in configs.items())
    )
    initialize(cluster)
    produce(cluster, 2, b"a")
    reader = member(cluster, 2)
    assert taken(reader.fetch(wait_ms=500)) == [(0, 0, 1)]
    cluster.advance(1.1)
    assert taken(reader.fetch(wait_ms=500)) == [(0, 0, 2)]
    cluster.unreachable.add(1)
    cluster.advance(1.1)  # the lock of the last delivery expires, which only the leader knows
    reader.send(acks=[(0, 0, [ACCEPT])])
    cluster.advance(0.3)
    assert reader.answers() == []
    cluster.unreachable.clear()
    cluster.advance(5.0)
    (response,) = reader.answers()
    assert response.responses[0].partitions[0].acknowledge_error_code == 0
    cluster.move("q", 0, 1)
    produce(cluster, 1, b"b")
    assert taken(member(cluster, 1).fetch(wait_ms=500)) == [(1, 1, 1)]


def test_a_member_is_answered_when_the_share_coordinator_stays_away(cluster) -> None:
    initialize(cluster)
    produce(cluster, 2, b"a")
    cluster.unreachable.add(1)
    reader = member(cluster, 2)
    reader.send(max_wait_ms=60_000)
    cluster.advance(30.0)
    (response,) = reader.answers()
    assert response.responses[0].partitions[0].error_code == E.COORDINATOR_NOT_AVAILABLE


def test_requests_about_one_share_partition_keep_their_order(cluster) -> None:
    initialize(cluster)
    key = SharePartitionKey("g", cluster.topic_id, 0)
    assert coordinator_partition(str(key), 1) == 0
    states = cluster.brokers[2].broker.share_states
    answers: list[tuple[str, int]] = []
    cluster.unreachable.add(1)

    def write(start: int) -> None:
        request = s.WriteShareGroupStateRequestPartitionData(
            partition=0, state_epoch=0, leader_epoch=0, start_offset=start
        )
        states.write(key, request, lambda result: answers.append((f"write {start}", result.error_code)))

    write(1)
    cluster.advance(share_states.RETRY_S / 2)
    cluster.unreachable.clear()
    write(2)
    cluster.settle()
    assert answers == []
    cluster.advance(1.0)
    assert answers == [("write 1", 0), ("write 2", 0)]
    assert not states._waiting


def test_the_lag_is_known_where_the_group_is_though_another_broker_leads(cluster) -> None:
    initialize(cluster)
    produce(cluster, 2, b"a", b"b", b"c")
    reader = member(cluster, 2)
    assert taken(reader.fetch(wait_ms=500)) == [(0, 2, 1)]
    reader.fetch(acks=[(0, 0, [ACCEPT])])
    cluster.create("__consumer_offsets", [1])

    def described() -> g.DescribeShareGroupOffsetsResponsePartition:
        asking = cluster.brokers[1].client()
        topic = g.DescribeShareGroupOffsetsRequestTopic(topic_name="q", partitions=[0])
        group = g.DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=[topic])
        asking.send(g.DescribeShareGroupOffsetsRequest(groups=[group]), 1)
        cluster.settle()
        (response,) = asking.answers()
        return response.groups[0].topics[0].partitions[0]

    assert described().lag == 2
    cluster.unreachable.add(2)
    assert described().error_code == E.NETWORK_EXCEPTION


def test_dead_letters_go_to_the_broker_that_leads_the_queue(cluster) -> None:
    initialize(cluster)
    cluster.create("dlq.q", [1])
    cluster.commit(
        *(
            m.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
            for kind, name, key, value in (
                (GROUP, "g", "errors.deadletterqueue.topic.name", "dlq.q"),
                (TOPIC, "dlq.q", "errors.deadletterqueue.group.enable", "true"),
            )
        )
    )
    queue = cluster.brokers[1].broker.partitions.get("dlq.q", 0).log
    produce(cluster, 2, b"a", b"b")
    reader = member(cluster, 2)
    assert taken(reader.fetch(wait_ms=500)) == [(0, 1, 1)]
    cluster.unreachable.add(1)
    reader.send(acks=[(0, 0, [REJECT])])
    cluster.advance(0.5)
    cluster.unreachable.clear()
    cluster.advance(5.0)
    reader.answers()
    assert queue.log_end_offset == 1


def test_another_broker_is_not_the_share_coordinator(cluster) -> None:
    partition = s.ReadShareGroupStateRequestPartitionData(partition=0, leader_epoch=0)
    request = s.ReadShareGroupStateRequest(
        group_id="g", topics=[s.ReadStateData(topic_id=cluster.topic_id, partitions=[partition])]
    )
    response = cluster.brokers[2].client().ask(request, 0, s.ReadShareGroupStateResponse)
    assert response.results[0].partitions[0].error_code == E.NOT_COORDINATOR
