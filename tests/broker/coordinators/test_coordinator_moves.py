"""G2, T1, T4, T7: coordinators are where their partitions are led, and go on when that moves to another broker."""

from __future__ import annotations

import pytest

from barnabas.broker.coordinators import runtime as coordinator_runtime
from barnabas.coord.partitioning import coordinator_partition
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages import list_offsets as lo
from barnabas.wire.messages import transactions as t
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import offsets as o
from barnabas.wire.messages.records import metadata_records as m
from tests.support.memory.broker import Client
from tests.support.memory.cluster import MemoryCluster
from tests.support.requests.groups import commit, fetch, find, heartbeat, join_request, stable
from tests.support.requests.transactions import TransactionalClient

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
OF_GROUP = coordinator_partition("g", 2)
OF_PRODUCER = coordinator_partition("x", 2)


@pytest.fixture(params=[512 * 1024, -1], ids=["small logs", "large logs"])
def cluster(tmp_path, request, monkeypatch):
    """Brokers 1 and 2; broker 1 has all coordinators, topic t has a partition on each."""
    monkeypatch.setattr(coordinator_runtime, "SYNCHRONOUS_LOAD_BYTES", request.param)
    cluster = MemoryCluster(tmp_path)
    cluster.create(OFFSETS, [1, 1])
    cluster.create(TRANSACTIONS, [1, 1])
    cluster.create("t", [1, 2])
    yield cluster
    cluster.close()


def client(cluster: MemoryCluster, broker: int) -> Client:
    return cluster.brokers[broker].client()


class TestGroups:
    def test_the_coordinator_is_the_leader_of_the_partition(self, cluster) -> None:
        for broker in (1, 2):
            assert find(client(cluster, broker)).node_id == 1
        cluster.move(OFFSETS, OF_GROUP, 2)
        for broker in (1, 2):
            assert find(client(cluster, broker)).node_id == 2
        assert find(client(cluster, 1)).host == "host-2"
        cluster.move(OFFSETS, OF_GROUP, -1)
        assert find(client(cluster, 1)).error_code == E.COORDINATOR_NOT_AVAILABLE

    def test_another_broker_is_not_the_coordinator(self, cluster) -> None:
        other = client(cluster, 2)
        assert commit(other, "t") == {E.NOT_COORDINATOR}
        assert fetch(other, "t") == E.NOT_COORDINATOR
        assert other.ask(join_request(), 9, g.JoinGroupResponse).error_code == E.NOT_COORDINATOR
        listed = other.ask(g.ListGroupsRequest(), 5, g.ListGroupsResponse)
        assert (listed.error_code, listed.groups) == (0, [])

    def test_a_group_goes_on_at_the_next_coordinator(self, cluster) -> None:
        old, new = client(cluster, 1), client(cluster, 2)
        joined = stable(old)
        assert commit(old, "t", 7, group_id="g", partitions=(0,)) in ({0}, {E.UNKNOWN_MEMBER_ID})
        cluster.move(OFFSETS, OF_GROUP, 2)
        assert heartbeat(old, joined) == E.NOT_COORDINATOR
        assert heartbeat(new, joined) in (0, E.COORDINATOR_LOAD_IN_PROGRESS)
        cluster.settle()
        assert heartbeat(new, joined) == 0
        cluster.move(OFFSETS, OF_GROUP, 1)
        cluster.settle()
        assert heartbeat(new, joined) == E.NOT_COORDINATOR
        assert heartbeat(old, joined) == 0

    def test_offsets_move_with_the_coordinator(self, cluster) -> None:
        assert commit(client(cluster, 1), "t", 7) == {0}
        cluster.move(OFFSETS, OF_GROUP, 2)
        cluster.settle()
        assert fetch(client(cluster, 2), "t") == 7
        assert commit(client(cluster, 2), "t", 8) == {0}
        cluster.move(OFFSETS, OF_GROUP, 1)
        cluster.settle()
        assert fetch(client(cluster, 1), "t") == 8

    def test_who_waits_is_answered_when_the_leadership_ends(self, cluster) -> None:
        first, second = client(cluster, 1), client(cluster, 1)
        stable(first)
        member = second.ask(join_request(), 9, g.JoinGroupResponse)
        second.send(join_request(member.member_id), 9)
        assert second.answers() == []
        cluster.move(OFFSETS, OF_GROUP, 2)
        (response,) = second.answers()
        assert response.error_code == E.NOT_COORDINATOR

    def test_a_coordinator_stays_when_only_the_epoch_changes(self, cluster) -> None:
        first = client(cluster, 1)
        joined = stable(first)
        cluster.move(OFFSETS, OF_GROUP, 1)
        assert heartbeat(first, joined) == 0
        assert commit(first, "t", 3, group_id="h") == {0}

    def test_a_load_is_discarded_when_the_leadership_has_ended(self, cluster) -> None:
        assert commit(client(cluster, 1), "t", 7) == {0}
        cluster.move(OFFSETS, OF_GROUP, 2)
        cluster.move(OFFSETS, OF_GROUP, -1)
        cluster.settle()
        groups = cluster.brokers[2].broker.group_coordinators
        assert list(groups) == []
        assert fetch(client(cluster, 2), "t") == E.NOT_COORDINATOR

    def test_nothing_is_written_while_too_few_replicas_are_in_sync(self, tmp_path) -> None:
        cluster = MemoryCluster(tmp_path / "strict", {"min.insync.replicas": "2"}, profile="kafka")
        cluster.create(OFFSETS, [1, 1])
        cluster.create("t", [1])
        assert commit(client(cluster, 1), "t") == {E.COORDINATOR_NOT_AVAILABLE}
        cluster.close()


class TestFollowers:
    """An answer waits until the followers have the records, for a bounded time (T1, G2)."""

    @staticmethod
    def wait(cluster: MemoryCluster) -> Client:
        """Have the ISR of the group's partition include a follower that does not fetch; commit an offset."""
        topic_id = cluster.brokers[1].broker.image.topics[OFFSETS].topic_id
        cluster.commit(m.PartitionChangeRecord(partition_id=OF_GROUP, topic_id=topic_id, isr=[1, 2]))
        asking = client(cluster, 1)
        partition = o.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
        request = o.OffsetCommitRequest(
            group_id="g", topics=[o.OffsetCommitRequestTopic(name="t", partitions=[partition])]
        )
        asking.send(request, 9)
        cluster.settle()
        assert asking.answers() == []
        return asking

    def test_it_ends_with_an_error(self, cluster) -> None:
        asking = self.wait(cluster)
        cluster.advance(5.0)
        (response,) = asking.answers()
        assert response.topics[0].partitions[0].error_code == E.COORDINATOR_NOT_AVAILABLE

    def test_it_ends_with_the_leadership(self, cluster) -> None:
        asking = self.wait(cluster)
        cluster.move(OFFSETS, OF_GROUP, 2)
        (response,) = asking.answers()
        assert response.topics[0].partitions[0].error_code == E.NOT_COORDINATOR
        cluster.settle()
        assert fetch(client(cluster, 2), "t") == 7  # it may have been replicated all the same

    def test_an_offset_is_told_when_it_is_committed(self, cluster) -> None:
        """Until then neither it nor the one before is returned: after 5 s the error is COORDINATOR_LOAD_IN_PROGRESS."""
        self.wait(cluster)
        reading = client(cluster, 1)
        group = o.OffsetFetchRequestGroup(
            group_id="g", topics=[o.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        )
        for _ in range(2):
            reading.send(o.OffsetFetchRequest(groups=[group]), 8)
            cluster.advance(4.9)
            assert reading.answers() == []
            cluster.advance(0.2)
            (response,) = reading.answers()
            assert response.groups[0].error_code == E.COORDINATOR_LOAD_IN_PROGRESS
        reading.send(o.OffsetFetchRequest(groups=[group]), 8)
        cluster.settle()
        topic_id = cluster.brokers[1].broker.image.topics[OFFSETS].topic_id
        cluster.commit(m.PartitionChangeRecord(partition_id=OF_GROUP, topic_id=topic_id, isr=[1]))
        (response,) = reading.answers()
        assert response.groups[0].topics[0].partitions[0].committed_offset == 7

    def test_it_ends_when_the_follower_leaves_the_isr(self, cluster) -> None:
        asking = self.wait(cluster)
        topic_id = cluster.brokers[1].broker.image.topics[OFFSETS].topic_id
        cluster.commit(m.PartitionChangeRecord(partition_id=OF_GROUP, topic_id=topic_id, isr=[1]))
        (response,) = asking.answers()
        assert response.topics[0].partitions[0].error_code == 0


def end_offset(cluster: MemoryCluster, partition: int, broker: int) -> int:
    """What a reader of committed data sees of topic t."""
    topic = lo.ListOffsetsTopic(name="t", partitions=[lo.ListOffsetsPartition(partition_index=partition, timestamp=-1)])
    request = lo.ListOffsetsRequest(replica_id=-1, isolation_level=1, topics=[topic])
    response = client(cluster, broker).ask(request, 7, lo.ListOffsetsResponse)
    return response.topics[0].partitions[0].offset


class Producer(TransactionalClient):
    """A transactional producer that finds its coordinator and the leaders, and waits for brokers to ask each other."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.cluster = cluster
        super().__init__(cluster.brokers[1])

    def ask(self, broker: int, request, version, settle_s: float = 0.0):
        asking = client(self.cluster, broker)
        asking.send(request, version)
        self.cluster.advance(settle_s)
        (response,) = asking.answers()
        return response

    def write(self, *values: bytes, partition: int, broker: int, version: int = 12, settle_s: float = 0.0) -> int:
        response = self.ask(broker, self.produce_request(*values, partition=partition), version, settle_s)
        return response.responses[0].partition_responses[0].error_code

    def finish(self, broker: int = 1, *, commit: bool = True) -> int:
        response = self.ask(broker, self.end_request(commit), 5)
        self.take_end(response)
        return response.error_code

    def add_to(self, broker: int, *places: tuple[str, int]) -> list[int]:
        self.client = client(self.cluster, broker)
        return self.add(*places)


class TestTransactions:
    def test_partitions_of_other_brokers_are_added_and_get_markers(self, cluster) -> None:
        producer = Producer(cluster)
        assert producer.start() == 0
        assert producer.write(b"a", partition=1, broker=2) == 0
        assert producer.write(b"a", partition=0, broker=1) == 0
        assert end_offset(cluster, 1, broker=2) == 0
        assert producer.finish() == 0
        assert end_offset(cluster, 1, broker=2) == 2
        assert end_offset(cluster, 0, broker=1) == 2
        assert producer.write(b"b", partition=1, broker=2) == 0
        assert producer.finish(commit=False) == 0
        assert end_offset(cluster, 1, broker=2) == 4

    def test_partitions_of_older_clients_are_verified(self, cluster) -> None:
        producer = Producer(cluster)
        assert producer.start() == 0
        assert producer.write(b"a", partition=1, broker=2, version=11) == E.TRANSACTION_ABORTABLE
        producer.sequences.clear()
        assert producer.add_to(1, ("t", 1)) == [0]
        assert producer.write(b"a", partition=1, broker=2, version=11) == 0

    def test_markers_are_repeated_until_the_broker_is_reached(self, cluster) -> None:
        producer = Producer(cluster)
        assert producer.start() == 0
        assert producer.write(b"a", partition=1, broker=2) == 0
        cluster.unreachable.add(2)
        assert producer.finish() == 0
        cluster.advance(2.0)
        assert end_offset(cluster, 1, broker=2) == 0
        assert producer.write(b"b", partition=0, broker=1, settle_s=1.0) == E.CONCURRENT_TRANSACTIONS
        producer.sequences.clear()
        cluster.unreachable.clear()
        cluster.advance(1.0)
        assert end_offset(cluster, 1, broker=2) == 2
        assert producer.write(b"b", partition=0, broker=1) == 0

    def test_markers_follow_the_leader_of_the_partition(self, cluster) -> None:
        producer = Producer(cluster)
        assert producer.start() == 0
        assert producer.write(b"a", partition=1, broker=2) == 0
        cluster.unreachable.add(2)
        assert producer.finish() == 0
        cluster.move("t", 1, 1)
        cluster.advance(1.0)
        assert end_offset(cluster, 1, broker=1) == 2

    def test_a_transaction_goes_on_at_the_next_coordinator(self, cluster) -> None:
        producer = Producer(cluster)
        assert producer.start() == 0
        assert producer.write(b"a", partition=0, broker=1) == 0
        cluster.move(TRANSACTIONS, OF_PRODUCER, 2)
        cluster.settle()
        assert producer.finish(1) == E.NOT_COORDINATOR
        assert producer.write(b"b", partition=1, broker=2) == 0
        assert producer.finish(2) == 0
        assert [end_offset(cluster, 0, 1), end_offset(cluster, 1, 2)] == [2, 2]

    def test_the_next_coordinator_completes_what_was_prepared(self, cluster) -> None:
        producer = Producer(cluster)
        assert producer.start() == 0
        assert producer.write(b"a", partition=1, broker=2) == 0
        cluster.unreachable.add(2)
        assert producer.finish() == 0
        cluster.move(TRANSACTIONS, OF_PRODUCER, 2)
        cluster.unreachable.clear()
        cluster.advance(1.0)
        assert end_offset(cluster, 1, broker=2) == 2
        described = client(cluster, 2).ask(
            t.DescribeTransactionsRequest(transactional_ids=["x"]), 0, t.DescribeTransactionsResponse
        )
        assert described.transaction_states[0].transaction_state == "CompleteCommit"

    def test_only_the_coordinator_times_transactions_out(self, cluster) -> None:
        producer = Producer(cluster)
        assert producer.start(transaction_timeout_ms=10_000) == 0
        assert producer.write(b"a", partition=1, broker=2) == 0
        cluster.move(TRANSACTIONS, OF_PRODUCER, 2)
        cluster.advance(30.0)
        assert end_offset(cluster, 1, broker=2) == 2
        assert list(cluster.brokers[1].broker.transaction_coordinators) == []

    def test_a_coordinator_that_cannot_be_asked_is_a_reason_to_try_again(self, cluster) -> None:
        producer = Producer(cluster)
        assert producer.start() == 0
        cluster.unreachable.add(1)
        assert producer.write(b"a", partition=1, broker=2) == E.NOT_ENOUGH_REPLICAS
