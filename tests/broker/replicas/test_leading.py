"""The leader and its followers: high watermark, ISR and acknowledgements (R3-R15), with a follower over the wire."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.replicas.partition import Partition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.wire.messages.produce import PartitionProduceResponse, ProduceResponse
from barnabas.wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tests.broker.memory_broker import Client
from tests.broker.replicas.replicated_broker import (
    EPOCHS,
    ME,
    SECOND,
    THIRD,
    FollowerClient,
    ReplicatedBroker,
    produce_request,
    the_partition,
)
from tests.broker.test_fetch import at, fetch, values

LAG_S = 30.0


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[ReplicatedBroker]:
    broker = ReplicatedBroker(tmp_path, {"min.insync.replicas": "2"})
    yield broker
    broker.close()


@pytest.fixture
def partition(memory: ReplicatedBroker) -> Partition:
    return memory.lead()


@pytest.fixture
def second(memory: ReplicatedBroker, partition: Partition) -> FollowerClient:
    return FollowerClient(memory, SECOND)


@pytest.fixture
def third(memory: ReplicatedBroker, partition: Partition) -> FollowerClient:
    return FollowerClient(memory, THIRD)


def acknowledged(producer: Client) -> list[PartitionProduceResponse]:
    return [
        one
        for response in producer.answers()
        if isinstance(response, ProduceResponse)
        for topic in response.responses
        for one in topic.partition_responses
    ]


def errors(producer: Client) -> list[ErrorCode]:
    return [ErrorCode(answer.error_code) for answer in acknowledged(producer)]


class TestHighWatermark:
    def test_it_is_the_least_end_of_the_isr(self, memory, partition, second, third) -> None:
        """R6."""
        producer = memory.client()
        producer.send(produce_request(b"a", b"b"), 9)
        assert (partition.log.log_end_offset, partition.log.high_watermark) == (2, 0)
        assert values(second.fetch(0)) == [(0, b"a"), (1, b"b")]
        second.fetch(2)
        assert partition.log.high_watermark == 0
        third.fetch(1)
        assert partition.log.high_watermark == 1
        assert errors(producer) == []
        assert third.fetch(2).high_watermark == 2
        assert errors(producer) == [ErrorCode.NONE]

    def test_consumers_read_below_it_and_are_woken_when_it_moves(self, memory, partition, second, third) -> None:
        """R15."""
        consumer = memory.client()
        consumer.send(fetch(at(0), max_wait_ms=60_000), 12)
        memory.client().send(produce_request(b"a"), 9)
        assert consumer.answers() == []
        second.fetch(1)
        third.fetch(1)
        (answer,) = consumer.answers()
        assert isinstance(answer, FetchResponse)
        assert values(the_partition(answer)) == [(0, b"a")]

    def test_it_does_not_move_while_the_isr_is_too_small(self, memory, partition, second) -> None:
        """R7: KIP-966."""
        memory.change(isr=[ME])
        memory.client().send(produce_request(b"a", acks=1), 9)
        assert (partition.log.log_end_offset, partition.log.high_watermark) == (1, 0)
        second.fetch(1)
        assert memory.proposed().new_isr_with_epochs[1].broker_id == SECOND
        assert partition.log.high_watermark == 0  # proposed only
        memory.answer()
        assert partition.log.high_watermark == 1

    def test_it_waits_for_a_replica_that_is_about_to_join(self, memory, partition, second, third) -> None:
        """R6: else the replica could never join while records come all the time."""
        memory.change(isr=[ME, SECOND])
        third.fetch(0)
        memory.answer(ErrorCode.INELIGIBLE_REPLICA)
        memory.client().send(produce_request(b"a"), 9)
        second.fetch(1)
        assert partition.log.high_watermark == 0
        third.fetch(1)
        assert partition.log.high_watermark == 1

    def test_a_partition_that_gets_followers_and_loses_them_keeps_its_records(self, memory) -> None:
        memory.create_topic("t")
        partition = memory.broker.partitions.get("t", 0)
        client = memory.client()
        assert client.ask(produce_request(b"a"), 9, ProduceResponse)
        assert partition.leading is None
        memory.change(replicas=[ME, SECOND], isr=[ME, SECOND], adding_replicas=[])
        client.send(produce_request(b"b"), 9)
        assert (partition.log.high_watermark, partition.log.log_end_offset) == (1, 2)
        memory.change(replicas=[ME], isr=[ME])
        assert partition.leading is None
        assert partition.log.high_watermark == 2
        assert errors(client) == [ErrorCode.NONE]


class TestFollowers:
    def test_epochs_are_checked(self, memory, partition, second) -> None:
        """R3."""
        memory.change(leader=ME)
        current = partition.leader_epoch
        for epoch, error in (
            (current - 1, ErrorCode.FENCED_LEADER_EPOCH),
            (current + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
            (current, ErrorCode.NONE),
        ):
            second.leader_epoch = epoch
            assert second.fetch(0).error_code == error

    def test_a_broker_that_is_no_replica_is_asked_to_wait_for_the_metadata(self, memory) -> None:
        memory.lead(replicas=(ME, SECOND))
        assert FollowerClient(memory, THIRD).fetch(0).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH

    def test_an_older_incarnation_is_refused(self, memory, partition, second) -> None:
        """KIP-903."""
        second.broker_epoch = EPOCHS[SECOND] - 1
        assert second.fetch(0).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        second.broker_epoch = -1
        assert second.fetch(0).error_code == ErrorCode.NONE

    def test_a_log_that_diverges_is_told_where(self, memory, partition, second, third) -> None:
        """R5; the fetch says nothing of what the follower has."""
        first = partition.leader_epoch
        memory.client().send(produce_request(b"a", b"b"), 9)
        memory.change(leader=ME)
        memory.client().send(produce_request(b"c"), 9)
        answer = second.fetch(3, first)
        assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (first, 2)
        assert bytes(answer.records or b"") == b""
        third.fetch(3, first + 1)
        assert partition.log.high_watermark == 0
        assert values(second.fetch(2, first)) == [(2, b"c")]

    def test_a_new_epoch_without_records_is_known_to_followers_of_later_ones(self, memory, partition, second) -> None:
        """R2: the leader's epoch cache has its epoch as soon as it leads."""
        memory.client().send(produce_request(b"a"), 9)
        memory.change(leader=ME)
        epoch = partition.leader_epoch
        answer = second.fetch(1, epoch)
        assert (answer.error_code, answer.diverging_epoch.epoch) == (0, -1)

    def test_an_offset_outside_of_the_log_is_an_error(self, memory, partition, second) -> None:
        """R24: it is no acknowledgement either."""
        memory.client().send(produce_request(b"a"), 9)
        assert second.fetch(5).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert partition.leading.state.followers[SECOND].log_end_offset == -1

    def test_a_waiting_fetch_is_answered_in_the_turn_of_the_append(self, memory, partition, second) -> None:
        second.wait(0)
        assert second.answers() == []
        memory.client().send(produce_request(b"a", acks=1), 9)
        (answer,) = second.answers()
        assert values(answer) == [(0, b"a")]

    def test_a_waiting_fetch_is_answered_at_its_deadline(self, memory, partition, second) -> None:
        second.wait(0)
        memory.advance(0.4)
        assert second.answers() == []
        memory.advance(0.2)
        assert len(second.answers()) == 1

    def test_a_waiting_fetch_is_answered_when_the_leader_changes(self, memory, partition, second) -> None:
        second.wait(0)
        memory.change(leader=SECOND)
        (answer,) = second.answers()
        assert answer.error_code == ErrorCode.FENCED_LEADER_EPOCH

    def test_a_follower_whose_high_watermark_is_behind_is_answered_at_once(
        self, memory, partition, second, third
    ) -> None:
        """KIP-1166, if it says its high watermark."""
        memory.client().send(produce_request(b"a"), 9)
        third.fetch(1)
        second.wait(1, high_watermark=0)
        (answer,) = second.answers()
        assert answer.high_watermark == 1
        second.wait(1, high_watermark=1)
        assert second.answers() == []

    def test_a_session_reports_only_what_has_changed_but_every_fetch_counts(self, memory, partition, second) -> None:
        """R20."""
        opened = second.client.ask(second.request(0, session_epoch=0), 18, FetchResponse)
        assert opened.session_id != 0
        memory.advance(LAG_S - 1)
        following = FetchRequest(
            replica_state=second.request(0).replica_state,
            max_wait_ms=0,
            session_id=opened.session_id,
            session_epoch=1,
        )
        assert second.client.ask(following, 18, FetchResponse).responses == []
        assert partition.leading.state.followers[SECOND].caught_up_at == memory.clock.now


class TestIsr:
    def test_a_replica_that_stays_away_leaves_it(self, memory, partition, second, third) -> None:
        """R9, R11: the high watermark waits for the controller's answer."""
        producer = memory.client()
        producer.send(produce_request(b"a", timeout_ms=600_000), 9)
        second.fetch(1)
        memory.advance(LAG_S - 1)
        second.fetch(1)
        assert memory.channel.held == []
        memory.advance(LAG_S)
        second.fetch(1)
        memory.advance(0)
        proposed = memory.proposed()
        assert [(one.broker_id, one.broker_epoch) for one in proposed.new_isr_with_epochs] == [
            (ME, memory.broker.image.brokers[ME].epoch),
            (SECOND, EPOCHS[SECOND]),
        ]
        assert (proposed.leader_epoch, proposed.partition_epoch) == (partition.leader_epoch, partition.partition_epoch)
        assert errors(producer) == []
        memory.answer()
        assert list(partition.isr) == [ME, SECOND]
        assert errors(producer) == [ErrorCode.NONE]

    def test_a_slow_follower_that_reads_on_stays(self, memory, partition, second, third) -> None:
        """R9: caught up is who has reached the end that his previous fetch saw."""
        for end in range(10):
            memory.client().send(produce_request(b"x", acks=1), 9)
            memory.advance(LAG_S / 3)
            second.fetch(end)  # never at the end of now, always at that of the fetch before
            third.fetch(end)
        memory.advance(LAG_S / 3)
        assert memory.channel.held == []

    def test_a_replica_that_has_caught_up_is_proposed_and_counts_at_once(
        self, memory, partition, second, third
    ) -> None:
        """R10, R11."""
        memory.change(isr=[ME, SECOND])
        third.fetch(0)
        assert [one.broker_id for one in memory.proposed().new_isr_with_epochs] == [ME, SECOND, THIRD]
        memory.client().send(produce_request(b"a"), 9)
        memory.advance(LAG_S * 2)
        second.fetch(1)
        assert partition.log.high_watermark == 0
        third.fetch(1)
        assert partition.log.high_watermark == 1

    def test_a_replica_behind_the_high_watermark_is_not_proposed(self, memory, partition, second, third) -> None:
        memory.client().send(produce_request(b"a", b"b"), 9)
        memory.change(isr=[ME, SECOND])
        second.fetch(2)
        third.fetch(1)
        assert memory.channel.held == []
        third.fetch(2)
        assert len(memory.channel.held) == 1

    def test_a_replica_behind_the_start_of_the_epoch_is_not_proposed(self, memory, partition, second, third) -> None:
        """R10: the high watermark of a new leader may be behind."""
        memory.client().send(produce_request(b"a", b"b"), 9)
        memory.change(isr=[ME, SECOND], leader=ME)
        assert partition.log.high_watermark == 0
        third.fetch(1)
        assert memory.channel.held == []

    @pytest.mark.parametrize("reason", ["fenced", "stopping", "epoch"])
    def test_a_replica_that_may_not_be_in_sync_is_not_proposed(self, memory, partition, third, reason: str) -> None:
        memory.change(isr=[ME, SECOND])
        if reason == "fenced":
            memory.fence(THIRD)
        elif reason == "stopping":
            brokers = memory.broker.image.brokers
            brokers[THIRD] = brokers[THIRD]._replace(in_controlled_shutdown=True)
        else:
            third.broker_epoch += 1  # the metadata does not know this incarnation yet
        third.fetch(0)
        assert memory.channel.held == []
        if reason == "fenced":
            memory.fence(THIRD, fenced=False)
            third.fetch(0)
            assert len(memory.channel.held) == 1

    def test_only_one_proposal_is_open(self, memory, partition, second, third) -> None:
        memory.change(isr=[ME])
        second.fetch(0)
        third.fetch(0)
        assert [one.broker_id for one in memory.proposed().new_isr_with_epochs] == [ME, SECOND]
        memory.answer()
        third.fetch(0)
        assert [one.broker_id for one in memory.proposed().new_isr_with_epochs] == [ME, SECOND, THIRD]
        assert memory.proposed().partition_epoch == partition.partition_epoch

    @pytest.mark.parametrize(
        "error",
        [
            ErrorCode.INVALID_UPDATE_VERSION,
            ErrorCode.FENCED_LEADER_EPOCH,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ],
    )
    def test_a_proposal_that_came_too_late_waits_for_the_metadata(
        self, memory, partition, second, third, error: ErrorCode
    ) -> None:
        memory.change(isr=[ME, SECOND])
        third.fetch(0)
        memory.answer(error)
        memory.advance(10)
        third.fetch(0)
        assert memory.channel.held == []
        assert partition.leading.state.maximal_isr_size == 3
        memory.change(isr=[ME, SECOND])
        third.fetch(0)
        assert len(memory.channel.held) == 1

    def test_a_replica_that_the_controller_refuses_is_proposed_again_later(self, memory, partition, third) -> None:
        memory.change(isr=[ME, SECOND])
        third.fetch(0)
        memory.answer(ErrorCode.INELIGIBLE_REPLICA)
        third.fetch(0)
        assert memory.channel.held == []
        memory.advance(2)
        third.fetch(0)
        assert len(memory.channel.held) == 1

    @pytest.mark.parametrize("error", [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.REQUEST_TIMED_OUT])
    def test_a_request_that_fails_is_repeated(self, memory, partition, third, error: ErrorCode) -> None:
        memory.change(isr=[ME, SECOND])
        third.fetch(0)
        memory.fail(error)
        assert memory.channel.held == []
        memory.advance(0.1)
        assert [one.broker_id for one in memory.proposed().new_isr_with_epochs] == [ME, SECOND, THIRD]

    def test_an_answer_that_the_metadata_has_overtaken_changes_nothing(self, memory, partition, third) -> None:
        memory.change(isr=[ME, SECOND])
        third.fetch(0)
        memory.change(isr=[ME])
        memory.answer()
        assert list(partition.isr) == [ME]

    def test_metadata_older_than_an_answer_changes_nothing(self, memory, partition, third) -> None:
        memory.change(isr=[ME, SECOND])
        third.fetch(0)
        memory.answer()
        assert list(partition.isr) == [ME, SECOND, THIRD]
        topic = memory.broker.image.topics["t"]
        partition.update(topic.partitions[0], ME)
        assert list(partition.isr) == [ME, SECOND, THIRD]
        memory.change(isr=[ME, SECOND, THIRD])
        assert list(partition.isr) == [ME, SECOND, THIRD]


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
        assert partition._awaiting == []

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
        told: list[tuple[bool, int, int]] = []
        memory.broker.partitions.on_role_change.append(
            lambda one: told.append((one.is_leader, one.leader_id, one.leader_epoch))
        )
        first = partition.leader_epoch
        memory.change(isr=[ME])
        memory.change(leader=SECOND)
        memory.change(leader=-1)
        memory.change(leader=ME)
        assert told == [(False, SECOND, first + 1), (False, -1, first + 2), (True, ME, first + 3)]

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
        found = memory.broker.partitions.get("t", 0)
        assert (found.log.log_end_offset, found.is_leader) == (0, False)
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
            answer = client.ask(request, version, ListOffsetsResponse).topics[0].partitions[0]
            assert answer.error_code == error
        second.fetch(1)
        third.fetch(1)
        answer = client.ask(request, 5, ListOffsetsResponse).topics[0].partitions[0]
        assert (answer.error_code, answer.offset) == (0, 1)

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
            answer = the_partition(client.ask(fetch(at(0), rack_id=rack), 12, FetchResponse))
            assert answer.error_code == 0
            return answer.preferred_read_replica

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
        answer = client.ask(produce_request(b"a"), 10, ProduceResponse)
        (produced,) = answer.responses[0].partition_responses
        assert produced.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (produced.current_leader.leader_id, produced.current_leader.leader_epoch) == (
            SECOND,
            partition.leader_epoch,
        )
        assert [(one.node_id, one.port) for one in answer.node_endpoints] == [(SECOND, 9093)]
        topic_id = memory.broker.image.topics["t"].topic_id
        request = fetch(at(0, current_leader_epoch=partition.leader_epoch - 1), topic_id=topic_id)
        fetched = client.ask(request, 16, FetchResponse)
        assert the_partition(fetched).current_leader.leader_id == SECOND
        assert [one.node_id for one in fetched.node_endpoints] == [SECOND]


class TestDeleteRecords:
    def delete(self, client: Client, offset: int, timeout_ms: int = 1000) -> None:
        partition = DeleteRecordsPartition(partition_index=0, offset=offset)
        topics = [DeleteRecordsTopic(name="t", partitions=[partition])]
        client.send(DeleteRecordsRequest(topics=topics, timeout_ms=timeout_ms), 2)

    def outcomes(self, client: Client) -> list[tuple[int, int]]:
        return [
            (one.error_code, one.low_watermark)
            for response in client.answers()
            if isinstance(response, DeleteRecordsResponse)
            for one in response.topics[0].partitions
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

    def test_a_loss_of_the_leadership_ends_it(self, memory, partition, second, third) -> None:
        self.commit(memory, second, third)
        client = memory.client()
        self.delete(client, 1)
        memory.change(leader=SECOND)
        assert self.outcomes(client) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
        self.delete(client, 1)
        assert self.outcomes(client) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
