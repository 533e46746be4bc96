"""What clients of a partition with followers see: acknowledgements, roles, racks, deletion (R12-R15, R19, R21, L6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.replicas.partition import Partition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.wire.messages.produce import ProduceResponse
from barnabas.wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tests.broker.replicas.replicated_broker import (
    ME,
    SECOND,
    THIRD,
    FollowerClient,
    ReplicatedBroker,
    errors,
    produce_request,
    the_partition,
)
from tests.support.memory.broker import Client
from tests.support.requests.fetch import at, fetch, values


class TestProduce:
    def test_acks_1_does_not_wait_for_followers(self, memory, partition) -> None:
        """R13."""
        client = memory.client()
        client.send(produce_request(b"a", acks=1), 9)
        assert errors(client) == [ErrorCode.NONE]

    def test_too_few_replicas_in_sync_refuse_the_append(self, memory, partition) -> None:
        """R12."""
        memory.change(isr=[ME])
        client = memory.client()
        client.send(produce_request(b"a"), 9)
        assert errors(client) == [ErrorCode.NOT_ENOUGH_REPLICAS]
        assert partition.log.log_end_offset == 0

    def test_an_isr_that_shrinks_below_the_minimum_times_out(self, memory, partition, second, third) -> None:
        """As in Kafka: with KIP-966 the record is not committed, so it is not NOT_ENOUGH_REPLICAS_AFTER_APPEND."""
        client = memory.client()
        client.send(produce_request(b"a", timeout_ms=1000), 9)
        memory.change(isr=[ME])
        memory.advance(0.9)
        assert errors(client) == []
        memory.advance(0.2)
        assert errors(client) == [ErrorCode.REQUEST_TIMED_OUT]
        assert not partition._awaiting.queue

    def test_a_minimum_that_rises_is_told_after_the_append(self, memory, partition, second, third) -> None:
        client = memory.client()
        client.send(produce_request(b"a"), 9)
        memory.change(isr=[ME, SECOND])
        partition.log.config.min_insync_replicas = 2
        leading = partition.leading
        second.fetch(1)
        assert errors(client) == [ErrorCode.NONE]
        partition.log.config.min_insync_replicas = 3
        assert leading.is_short_of_replicas

    def test_losing_the_leadership_fails_what_waits(self, memory, partition, second) -> None:
        """R14."""
        client = memory.client()
        client.send(produce_request(b"a"), 9)
        memory.change(leader=SECOND)
        assert errors(client) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        client.send(produce_request(b"b"), 9)
        assert errors(client) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        assert partition.log.log_end_offset == 1

    def test_a_new_epoch_of_the_same_leader_keeps_what_waits(self, memory, partition, second, third) -> None:
        client = memory.client()
        client.send(produce_request(b"a"), 9)
        memory.change(leader=ME)
        assert errors(client) == []
        second.fetch(1)
        third.fetch(1)
        assert errors(client) == [ErrorCode.NONE]

    def test_with_always_the_leader_counts_what_it_has_flushed(self, tmp_path: Path) -> None:
        """An acknowledged record is on the disks of the whole ISR; followers read it before the leader's flush."""
        memory = ReplicatedBroker(tmp_path, {"barnabas.log.sync": "always"})
        partition = memory.lead(replicas=(ME, SECOND))
        follower = FollowerClient(memory, SECOND)
        memory.flushes.is_paused = True
        all_acks, one_ack = memory.client(), memory.client()
        all_acks.send(produce_request(b"a"), 9)
        one_ack.send(produce_request(b"b", acks=1), 9)
        assert values(follower.fetch(0)) == [(0, b"a"), (1, b"b")]
        follower.fetch(2)
        assert partition.log.high_watermark == 0
        assert errors(all_acks) == errors(one_ack) == []
        memory.run_flush()
        memory.run_all()
        assert partition.log.high_watermark == 2
        assert errors(all_acks) == errors(one_ack) == [ErrorCode.NONE]
        memory.close()


class TestRoles:
    def test_subscribers_are_told_of_each_change_of_leader_or_epoch(self, memory, partition) -> None:
        changes: list[tuple[bool, int, int]] = []
        memory.broker.partitions.on_role_change.append(
            lambda changed: changes.append((changed.is_leader, changed.leader_id, changed.leader_epoch))
        )
        first = partition.leader_epoch
        memory.change(isr=[ME])
        memory.change(leader=SECOND)
        memory.change(leader=-1)
        memory.change(leader=ME)
        assert changes == [(False, SECOND, first + 1), (False, -1, first + 2), (True, ME, first + 3)]

    def test_a_partition_moved_to_other_brokers_is_removed_with_its_log(self, memory, partition, tmp_path) -> None:
        """R19."""
        removed: list[Partition] = []
        memory.broker.partitions.on_removed.append(removed.append)
        client = memory.client()
        client.send(produce_request(b"a"), 9)
        memory.change(replicas=[SECOND, THIRD], isr=[SECOND, THIRD], leader=SECOND)
        assert removed == [partition]
        assert errors(client) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        assert not (tmp_path / "t-0").exists()
        with pytest.raises(KafkaError) as failure:
            memory.broker.partitions.get("t", 0)
        assert failure.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        memory.change(replicas=[SECOND, THIRD, ME], adding_replicas=[ME])
        replica = memory.broker.partitions.get("t", 0)
        assert (replica.log.log_end_offset, replica.is_leader) == (0, False)
        with pytest.raises(KafkaError) as failure:
            memory.broker.partitions.get_leader("t", 0)
        assert failure.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    def test_a_new_leader_tells_no_latest_offset_before_its_epoch_is_committed(
        self, memory, partition, second, third
    ) -> None:
        """R15."""
        memory.client().send(produce_request(b"a"), 9)
        memory.change(leader=SECOND)
        memory.change(leader=ME)
        client = memory.client()
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])],
        )
        for version, error in ((4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)):
            response = client.ask(request, version, ListOffsetsResponse).topics[0].partitions[0]
            assert response.error_code == error
        second.fetch(1)
        third.fetch(1)
        response = client.ask(request, 5, ListOffsetsResponse).topics[0].partitions[0]
        assert (response.error_code, response.offset) == (0, 1)

    def test_a_new_leader_waits_for_fetches_of_its_own_time(self, memory, partition, second, third) -> None:
        """What followers had when this broker led before says nothing now."""
        memory.client().send(produce_request(b"a", acks=1), 9)
        second.fetch(1)
        memory.change(leader=SECOND)
        memory.change(leader=ME)
        third.fetch(1)
        assert partition.log.high_watermark == 0
        second.fetch(1)
        assert partition.log.high_watermark == 1


class TestDamage:
    def test_a_damaged_replica_is_filled_again_once_nobody_counts_on_it(
        self, memory, partition, tmp_path: Path
    ) -> None:
        """L2: its log is set aside, not deleted."""
        memory.broker.log_dirs.are_replicas = True
        memory.client().send(produce_request(b"a", acks=1), 9)
        partition.fail("the disk has lost a part of it")
        memory.change(leader=SECOND)
        assert ("t", 0) in memory.broker.partitions.offline
        memory.change(isr=[SECOND, THIRD])
        replica = memory.broker.partitions.get("t", 0)
        assert (replica.leader_id, replica.log.log_end_offset) == (SECOND, 0)
        assert len(list(tmp_path.glob("t-0.*-stray"))) == 1

    def test_a_topic_of_another_id_is_set_aside(self, memory, partition, tmp_path: Path) -> None:
        """R22: the topic was deleted and made again while this broker was away."""
        log_dirs = memory.broker.log_dirs
        log_dirs.are_replicas = True
        memory.client().send(produce_request(b"a", acks=1), 9)
        log_dirs.logs.pop(("t", 0)).close()
        new_log = log_dirs.open_log("t", 0, partition.log.config, topic_id=b"n" * 16, now_ms=0, now=0.0)
        assert new_log.log_end_offset == 0
        assert len(log_dirs.strays) == 1


class TestReadingFromFollowers:
    def test_a_follower_serves_consumers_below_its_high_watermark(self, memory, partition, second, third) -> None:
        """R21: from version 11 on."""
        memory.client().send(produce_request(b"a", acks=1), 9)
        memory.client().send(produce_request(b"b", acks=1), 9)
        second.fetch(1)
        third.fetch(1)
        memory.change(leader=SECOND)
        client = memory.client()
        assert values(the_partition(client.ask(fetch(at(0)), 12, FetchResponse))) == [(0, b"a")]
        old = the_partition(client.ask(fetch(at(0)), 10, FetchResponse))
        assert old.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    @pytest.mark.parametrize("isolation_level", [0, 1])
    def test_tools_compare_replicas_up_to_their_ends(
        self, memory, partition, second, third, isolation_level: int
    ) -> None:
        """kafka-replica-verification fetches with the replica id -2, of which the leader makes no follower."""
        memory.client().send(produce_request(b"a", acks=1), 9)
        second.fetch(1)
        third.fetch(1)
        memory.client().send(produce_request(b"b", acks=1), 9)
        client = memory.client()

        def fetched(version: int) -> list[tuple[int, bytes | None]]:
            request = fetch(at(0), replica_id=-2, isolation_level=isolation_level)
            return values(the_partition(client.ask(request, version, FetchResponse)))

        assert partition.log.high_watermark == 1
        for leader in (None, SECOND):
            if leader is not None:
                memory.change(leader=leader)
            for _ in range(3):  # what is repeated is looked up
                assert fetched(4) == fetched(12) == [(0, b"a"), (1, b"b")]

    def test_a_consumer_is_sent_to_a_replica_of_its_rack(self, tmp_path: Path) -> None:
        memory = ReplicatedBroker(
            tmp_path,
            {
                "broker.rack": "r1",
                "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
            },
        )
        memory.lead()
        memory.client().send(produce_request(b"a", acks=1), 9)
        client = memory.client()

        def preferred(rack: str) -> int:
            response = the_partition(client.ask(fetch(at(0), rack_id=rack), 12, FetchResponse))
            assert response.error_code == 0
            return response.preferred_read_replica

        assert preferred("r3") == -1  # it has not fetched
        FollowerClient(memory, THIRD).fetch(1)
        FollowerClient(memory, SECOND).fetch(1)
        assert [preferred(rack) for rack in ("r1", "r2", "r3", "r4", "")] == [-1, SECOND, THIRD, -1, -1]
        memory.change(isr=[ME, SECOND])
        assert preferred("r3") == -1
        memory.close()


class TestWrongBroker:
    def test_produce_and_fetch_name_the_leader(self, memory, partition) -> None:
        """KIP-951."""
        memory.change(leader=SECOND)
        client = memory.client()
        response = client.ask(produce_request(b"a"), 10, ProduceResponse)
        (produced,) = response.responses[0].partition_responses
        assert produced.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (produced.current_leader.leader_id, produced.current_leader.leader_epoch) == (
            SECOND,
            partition.leader_epoch,
        )
        assert [(endpoint.node_id, endpoint.port) for endpoint in response.node_endpoints] == [(SECOND, 9093)]
        topic_id = memory.broker.image.topics["t"].topic_id
        request = fetch(at(0, current_leader_epoch=partition.leader_epoch - 1), topic_id=topic_id)
        fetched = client.ask(request, 16, FetchResponse)
        assert the_partition(fetched).current_leader.leader_id == SECOND
        assert [endpoint.node_id for endpoint in fetched.node_endpoints] == [SECOND]


class TestDeleteRecords:
    def delete(self, client: Client, offset: int, timeout_ms: int = 1000) -> None:
        partition = DeleteRecordsPartition(partition_index=0, offset=offset)
        topics = [DeleteRecordsTopic(name="t", partitions=[partition])]
        client.send(DeleteRecordsRequest(topics=topics, timeout_ms=timeout_ms), 2)

    def outcomes(self, client: Client) -> list[tuple[int, int]]:
        return [
            (partition.error_code, partition.low_watermark)
            for response in client.answers()
            if isinstance(response, DeleteRecordsResponse)
            for partition in response.topics[0].partitions
        ]

    def commit(self, memory: ReplicatedBroker, *followers: FollowerClient) -> None:
        for value in (b"a", b"b"):
            memory.client().send(produce_request(value, acks=1), 9)
        for follower in followers:
            follower.fetch(2)

    def test_it_waits_for_the_log_starts_of_all_replicas(self, memory, partition, second, third) -> None:
        """L6."""
        self.commit(memory, second, third)
        client = memory.client()
        self.delete(client, 1)
        assert partition.log.log_start_offset == 1
        second.fetch(2, log_start_offset=1)
        assert self.outcomes(client) == []
        third.fetch(2, log_start_offset=1)
        assert self.outcomes(client) == [(0, 1)]

    def test_a_replica_on_a_fenced_broker_is_not_waited_for(self, memory, partition, second, third) -> None:
        self.commit(memory, second, third)
        client = memory.client()
        self.delete(client, 1)
        second.fetch(2, log_start_offset=1)
        memory.fence(THIRD)
        assert self.outcomes(client) == [(0, 1)]

    def test_it_ends_at_its_timeout(self, memory, partition, second, third) -> None:
        self.commit(memory, second, third)
        client = memory.client()
        self.delete(client, 1)
        memory.advance(1.1)
        assert self.outcomes(client) == [(ErrorCode.REQUEST_TIMED_OUT, 0)]

    def test_a_loss_of_the_leadership_while_the_log_starts_are_written_ends_it(
        self, memory, partition, second, third, monkeypatch
    ) -> None:
        self.commit(memory, second, third)
        client = memory.client()
        held: list[Any] = []
        monkeypatch.setattr(memory.broker.partitions, "persist_log_starts", held.append)
        self.delete(client, 1)
        memory.change(leader=SECOND)
        assert self.outcomes(client) == []
        held.pop()(True)
        assert self.outcomes(client) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]

    def test_a_loss_of_the_leadership_ends_it(self, memory, partition, second, third) -> None:
        self.commit(memory, second, third)
        client = memory.client()
        self.delete(client, 1)
        memory.change(leader=SECOND)
        assert self.outcomes(client) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
        self.delete(client, 1)
        assert self.outcomes(client) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
