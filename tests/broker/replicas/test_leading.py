"""The leader and its followers: high watermark, fetches and ISR (R3-R11), with a follower over the wire."""

from __future__ import annotations

import pytest

from barnabas.broker.replicas.leader.follower_watch import FollowerWatch
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.produce import ProduceResponse
from barnabas.wire.messages.records.metadata_records import ConfigRecord
from tests.broker.replicas.replicated_broker import (
    EPOCHS,
    LAG_S,
    ME,
    SECOND,
    THIRD,
    FollowerClient,
    errors,
    produce_request,
    the_partition,
)
from tests.support.requests.fetch import at, fetch, values


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
        (response,) = consumer.answers()
        assert isinstance(response, FetchResponse)
        assert values(the_partition(response)) == [(0, b"a")]

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
        response = second.fetch(3, first)
        assert (response.diverging_epoch.epoch, response.diverging_epoch.end_offset) == (first, 2)
        assert bytes(response.records or b"") == b""
        third.fetch(3, first + 1)
        assert partition.log.high_watermark == 0
        assert values(second.fetch(2, first)) == [(2, b"c")]

    def test_a_new_epoch_without_records_is_known_to_followers_of_later_ones(self, memory, partition, second) -> None:
        """R2: the leader's epoch cache has its epoch as soon as it leads."""
        memory.client().send(produce_request(b"a"), 9)
        memory.change(leader=ME)
        epoch = partition.leader_epoch
        response = second.fetch(1, epoch)
        assert (response.error_code, response.diverging_epoch.epoch) == (0, -1)

    def test_an_offset_outside_of_the_log_is_an_error(self, memory, partition, second) -> None:
        """R24: it is no acknowledgement either."""
        memory.client().send(produce_request(b"a"), 9)
        assert second.fetch(5).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert partition.leading.state.followers[SECOND].log_end_offset == -1

    def test_a_waiting_fetch_is_answered_in_the_turn_of_the_append(self, memory, partition, second) -> None:
        second.wait(0)
        assert second.answers() == []
        memory.client().send(produce_request(b"a", acks=1), 9)
        (response,) = second.answers()
        assert values(response) == [(0, b"a")]

    def test_a_waiting_fetch_is_answered_at_its_deadline(self, memory, partition, second) -> None:
        second.wait(0)
        memory.advance(0.4)
        assert second.answers() == []
        memory.advance(0.2)
        assert len(second.answers()) == 1

    def test_a_waiting_fetch_is_answered_when_the_leader_changes(self, memory, partition, second) -> None:
        second.wait(0)
        memory.change(leader=SECOND)
        (response,) = second.answers()
        assert response.error_code == ErrorCode.FENCED_LEADER_EPOCH

    def test_a_follower_whose_high_watermark_is_behind_is_answered_at_once(
        self, memory, partition, second, third
    ) -> None:
        """KIP-1166, if it says its high watermark."""
        memory.client().send(produce_request(b"a"), 9)
        third.fetch(1)
        second.wait(1, high_watermark=0)
        (response,) = second.answers()
        assert response.high_watermark == 1
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

    def test_a_session_is_that_of_one_reader(self, second, third) -> None:
        opened = second.client.ask(second.request(0, session_epoch=0), 18, FetchResponse)
        for other in (third.request(0), FetchRequest(max_wait_ms=0)):
            other.session_id, other.session_epoch = opened.session_id, 1
            response = second.client.ask(other, 18, FetchResponse)
            assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


class TestThrottle:
    """KIP-73: replicas that are not in sync share leader.replication.throttled.rate."""

    @pytest.mark.parametrize("replicas", ["*", "0:1"])
    def test_a_follower_out_of_sync_gets_no_records_above_the_quota(
        self, memory, partition, second, third, replicas: str
    ) -> None:
        memory.broker.config.set_dynamic({"leader.replication.throttled.rate": "100"}, {})
        memory.apply(
            ConfigRecord(
                resource_type=2, resource_name="t", name="leader.replication.throttled.replicas", value=replicas
            )
        )
        memory.client().send(produce_request(b"x" * 2000, acks=1), 9)
        memory.client().send(produce_request(b"y", acks=1), 9)
        memory.change(isr=[ME, SECOND])
        partition_bytes = partition.log.size_bytes
        assert len(bytes(third.fetch(0).records or b"")) == partition_bytes
        response = third.fetch(1)
        assert (response.error_code, values(response)) == (0, [])
        assert partition.leading.state.followers[THIRD].log_end_offset == 1
        assert values(second.fetch(1)) == [(1, b"y")]  # it is in sync
        memory.advance(60)
        assert values(third.fetch(1)) == [(1, b"y")]

    def test_other_partitions_are_not_held_back(self, memory, partition, third) -> None:
        memory.broker.config.set_dynamic({"leader.replication.throttled.rate": "0"}, {})
        memory.client().send(produce_request(b"x", acks=1), 9)
        memory.change(isr=[ME, SECOND])
        assert values(third.fetch(0)) == values(third.fetch(0)) == [(0, b"x")]


class TestSessions:
    """R20: every fetch counts for all partitions of the session; its cost grows with the changed ones only."""

    def open(self, memory, follower: FollowerClient) -> None:
        self.follower = follower
        opened = follower.client.ask(follower.request(0, session_epoch=0), 18, FetchResponse)
        self.session_id, self.epoch = opened.session_id, 1
        assert opened.session_id != 0

    def send(self, memory, offset: int | None = None, max_wait_ms: int = 500) -> None:
        """Fetch; the partition is named if its offset has changed."""
        request = self.follower.request(offset or 0, max_wait_ms=max_wait_ms)
        if offset is None:
            request.topics = []
        request.session_id, request.session_epoch = self.session_id, self.epoch
        self.epoch += 1
        self.follower.client.send(request, 18)

    def watch(self, memory) -> FollowerWatch:
        session = memory.broker.fetch_sessions._sessions[self.session_id]
        assert session.watch is not None
        return session.watch

    def test_an_idle_partition_is_not_read_until_it_changes(self, memory, partition, second) -> None:
        self.open(memory, second)
        self.send(memory)
        memory.advance(0.6)
        assert len(second.client.answers()) == 1
        assert self.watch(memory).changed == {}
        self.send(memory)
        assert second.client.answers() == []
        memory.client().send(produce_request(b"a", acks=1), 9)
        (response,) = second.answers()
        assert values(response) == [(0, b"a")]
        self.send(memory, 1)
        assert partition.leading.state.followers[SECOND].log_end_offset == 1

    def test_a_waiting_fetch_is_woken_although_nothing_was_idle_before(self, memory, partition, second) -> None:
        self.open(memory, second)
        self.send(memory)
        memory.client().send(produce_request(b"a", acks=1), 9)
        assert [values(response) for response in second.answers()] == [[(0, b"a")]]

    def test_fetches_of_an_idle_partition_are_fetches_of_the_follower(self, memory, partition, second, third) -> None:
        """R9: it was caught up until the append, not only when it became idle."""
        self.open(memory, second)
        for _ in range(100):
            self.send(memory)
            third.fetch(0)
            memory.advance(1)
            second.client.answers()
        memory.client().send(produce_request(b"a", acks=1), 9)
        assert memory.clock.now - partition.leading.state.followers[SECOND].caught_up_at <= 1
        memory.advance(LAG_S - 2)
        third.fetch(1)
        assert memory.channel.held == []
        memory.advance(LAG_S)
        assert [replica.broker_id for replica in memory.proposed().new_isr_with_epochs] == [ME, THIRD]

    def test_a_session_that_is_closed_leaves_its_partitions(self, memory, partition, second) -> None:
        """R29."""
        self.open(memory, second)
        self.send(memory)
        assert list(partition.watches) == [self.watch(memory)]
        memory.broker.fetch_sessions.close(self.session_id)
        assert partition.watches == {}
        memory.advance(0.6)  # what waits reads once more
        assert len(second.client.answers()) == 1
        assert partition.watches == {}

    def test_a_new_high_watermark_is_told_with_the_next_answer(self, memory, partition, second, third) -> None:
        self.open(memory, second)
        self.send(memory)
        memory.client().send(produce_request(b"a", acks=1), 9)
        second.answers()
        self.send(memory, 1)
        third.fetch(1)
        assert partition.log.high_watermark == 1
        assert second.client.answers() == []
        memory.advance(0.6)
        (response,) = second.answers()
        assert (response.high_watermark, bytes(response.records or b"")) == (1, b"")
        self.send(memory, max_wait_ms=0)
        (empty,) = second.client.answers()
        assert isinstance(empty, FetchResponse)
        assert empty.responses == []

    def test_an_idle_partition_is_told_its_new_high_watermark(self, memory, partition, second, third) -> None:
        memory.client().send(produce_request(b"a", acks=1), 9)
        self.open(memory, second)
        self.send(memory, 1, max_wait_ms=0)
        second.client.answers()
        assert self.watch(memory).changed == {}
        third.fetch(1)
        self.send(memory, max_wait_ms=0)
        (response,) = second.answers()
        assert response.high_watermark == 1

    def test_an_idle_replica_that_left_the_isr_joins_it_again(self, memory, partition, second) -> None:
        """R10: it was fenced for a moment, for example."""
        self.open(memory, second)
        self.send(memory, max_wait_ms=0)
        assert self.watch(memory).changed == {}
        memory.change(isr=[ME, THIRD])
        assert memory.channel.held == []
        self.send(memory, max_wait_ms=0)
        assert len(memory.channel.held) == 1

    def test_a_new_log_start_is_told(self, memory, partition, second, third) -> None:
        memory.client().send(produce_request(b"a", acks=1), 9)
        self.open(memory, second)
        self.send(memory, 1, max_wait_ms=0)
        third.fetch(1)
        self.send(memory, max_wait_ms=0)
        second.client.answers()
        partition.log.advance_log_start_offset(1)
        memory.broker.partitions.persist_log_starts()
        memory.broker.loop.end_turn()
        self.send(memory, max_wait_ms=0)
        (response,) = second.answers()
        assert response.log_start_offset == 1

    def test_another_leader_answers_a_waiting_fetch(self, memory, partition, second) -> None:
        self.open(memory, second)
        self.send(memory, max_wait_ms=0)
        second.client.answers()
        self.send(memory)
        memory.change(leader=SECOND)
        (response,) = second.answers()
        assert response.error_code == ErrorCode.FENCED_LEADER_EPOCH

    def test_a_replica_outside_of_the_isr_is_looked_at_until_it_joins(self, memory, partition, second) -> None:
        memory.change(isr=[ME])
        memory.fence(SECOND)
        self.open(memory, second)
        self.send(memory, max_wait_ms=0)
        self.send(memory, max_wait_ms=0)
        assert memory.channel.held == []
        memory.fence(SECOND, fenced=False)
        self.send(memory, max_wait_ms=0)
        assert len(memory.channel.held) == 1
        memory.answer()
        self.send(memory, max_wait_ms=0)
        assert self.watch(memory).changed == {}


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
        assert [(replica.broker_id, replica.broker_epoch) for replica in proposed.new_isr_with_epochs] == [
            (ME, memory.broker.image.brokers[ME].epoch),
            (SECOND, EPOCHS[SECOND]),
        ]
        assert (proposed.leader_epoch, proposed.partition_epoch) == (partition.leader_epoch, partition.partition_epoch)
        assert errors(producer) == []
        memory.answer()
        assert list(partition.isr) == [ME, SECOND]
        assert errors(producer) == [ErrorCode.NONE]

    def test_a_slow_follower_that_reads_on_stays(self, memory, partition, second, third) -> None:
        """R9: a follower is caught up if it has reached the log end at the time of its previous fetch."""
        for end in range(10):
            memory.client().send(produce_request(b"x", acks=1), 9)
            memory.advance(LAG_S / 3)
            second.fetch(end)  # never at the current end, always at the end as of the fetch before
            third.fetch(end)
        memory.advance(LAG_S / 3)
        assert memory.channel.held == []

    def test_a_replica_that_has_caught_up_is_proposed_and_counts_at_once(
        self, memory, partition, second, third
    ) -> None:
        """R10, R11."""
        memory.change(isr=[ME, SECOND])
        third.fetch(0)
        assert [replica.broker_id for replica in memory.proposed().new_isr_with_epochs] == [ME, SECOND, THIRD]
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

    def test_a_repeated_proposal_names_the_incarnations_that_it_was_made_for(self, memory, partition, third) -> None:
        """R10: a replica that has lost everything since must not join because an earlier incarnation had caught up."""
        memory.client().send(produce_request(b"a", acks=1), 9)
        memory.change(isr=[ME, SECOND])
        third.fetch(1)
        memory.fail(ErrorCode.REQUEST_TIMED_OUT)
        third.broker_epoch += 10
        third.fetch(0)
        memory.advance(1)
        assert [(replica.broker_id, replica.broker_epoch) for replica in memory.proposed().new_isr_with_epochs][2:] == [
            (THIRD, EPOCHS[THIRD])
        ]

    def test_only_one_proposal_is_open(self, memory, partition, second, third) -> None:
        memory.change(isr=[ME])
        second.fetch(0)
        third.fetch(0)
        assert [replica.broker_id for replica in memory.proposed().new_isr_with_epochs] == [ME, SECOND]
        memory.answer()
        third.fetch(0)
        assert [replica.broker_id for replica in memory.proposed().new_isr_with_epochs] == [ME, SECOND, THIRD]
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
        memory.advance(4)
        third.fetch(0)
        assert memory.channel.held == []
        assert partition.leading.state.maximal_isr_size == 3
        memory.change(isr=[ME, SECOND])
        third.fetch(0)
        assert len(memory.channel.held) == 1

    @pytest.mark.parametrize("error", [ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.NEW_LEADER_ELECTED])
    def test_it_asks_again_when_the_metadata_does_not_come(
        self, memory, partition, third, error: ErrorCode, caplog: pytest.LogCaptureFixture
    ) -> None:
        """R11: until then the replica that was proposed is waited for, since it may be in the ISR."""
        memory.change(isr=[ME, SECOND])
        third.fetch(0)
        first = memory.proposed()
        memory.answer(error)
        memory.advance(5)
        third.fetch(0)
        assert memory.proposed() == first
        assert f"t-0 ({error.name})" in caplog.text
        memory.answer()
        assert list(partition.isr) == [ME, SECOND, THIRD]

    def test_an_answer_about_another_leader_epoch_waits_for_the_metadata_and_asks_again(
        self, memory, partition, third
    ) -> None:
        memory.change(isr=[ME, SECOND])
        third.fetch(0)
        memory.answer(leader_epoch=partition.leader_epoch + 1)
        assert list(partition.isr) == [ME, SECOND]
        memory.advance(4)
        assert memory.channel.held == []
        memory.advance(1)
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
        assert [replica.broker_id for replica in memory.proposed().new_isr_with_epochs] == [ME, SECOND, THIRD]

    def test_a_partition_that_fails_is_repeated_and_told_once(self, memory, partition, third, caplog) -> None:
        memory.change(isr=[ME, SECOND])
        third.fetch(0)
        for _ in range(3):
            memory.answer(ErrorCode.UNKNOWN_SERVER_ERROR)
            memory.advance(1)
        assert caplog.text.count("tried again after UNKNOWN_SERVER_ERROR") == 1
        memory.answer()
        assert list(partition.isr) == [ME, SECOND, THIRD]

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
