"""ShareFetch and ShareAcknowledge over the wire: sessions, locks, redelivery, waits, restarts (G5)."""

from __future__ import annotations

import pytest

from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.errors import KafkaError
from tests.broker.share_member import ACCEPT, REJECT, RELEASE, RENEW, Member, Queue, acquired, partitions_of, values
from tests.support.memory.broker import batch


@pytest.fixture
def queue(tmp_path):
    queue = Queue(tmp_path / "data")
    queue.initialize()
    yield queue
    queue.close()


@pytest.mark.parametrize("version", [1, 2])
def test_records_are_acquired_once_and_accepted(queue, version):
    queue.produce(b"a", b"b", b"c")
    member, two = Member(queue, "one"), Member(queue, "two")
    response = member.fetch(version=version)
    assert acquired(response) == [(0, 2, 1)]
    assert values(response) == {0: b"a", 1: b"b", 2: b"c"}
    assert response.acquisition_lock_timeout_ms == 30_000
    assert two.take(version=version) == []
    assert member.acknowledge((0, 2, [ACCEPT])) == 0
    assert two.take() == member.take() == []
    assert (queue.live().start_offset, queue.live().end_offset) == (3, 3)


def test_a_fetch_of_no_bytes_is_answered_immediately_without_records(queue):
    """As in Apache Kafka 4.4.0: a member can acknowledge without fetching, and does not wait."""
    queue.produce(b"a", b"b")
    member = Member(queue, "one")
    assert member.take(max_bytes=0, max_wait_ms=60_000) == []
    assert member.take() == [(0, 1, 1)]
    response = member.fetch(acks=[(0, 1, [ACCEPT])], max_bytes=0, max_wait_ms=60_000)
    assert [data.acknowledge_error_code for data in partitions_of(response)] == [0]
    assert queue.live().start_offset == 2


def test_a_fetch_is_answered_with_the_first_partition_that_is_loaded(tmp_path):
    """As in Kafka: the next fetch has the others."""
    queue = Queue(tmp_path / "data", partitions=3)
    for partition in range(3):
        queue.initialize(partition=partition)
        queue.produce(b"a", partition=partition)
    member = Member(queue, "one", partitions=(0, 1, 2))
    assert [data.partition_index for data in partitions_of(member.fetch())] == [0]
    response = member.fetch()
    assert [data.partition_index for data in partitions_of(response)] == [1, 2]
    assert [acquired(response, partition) for partition in (1, 2)] == [[(0, 0, 1)]] * 2
    queue.close()


def test_a_first_fetch_with_too_few_bytes_takes_records_of_every_partition(tmp_path):
    queue = Queue(tmp_path / "data", partitions=2)
    for partition in range(2):
        queue.initialize(partition=partition)
        queue.produce(b"a", partition=partition)
    response = Member(queue, "one", partitions=(0, 1)).fetch(min_bytes=100)
    assert [acquired(response, partition) for partition in range(2)] == [[(0, 0, 1)]] * 2
    queue.close()


def test_the_first_answer_of_a_session_has_the_partitions_without_records(tmp_path):
    queue = Queue(tmp_path / "data", partitions=3)
    for partition in range(3):
        queue.initialize(partition=partition)
    for member in (Member(queue, "one", partitions=(0, 1, 2)), Member(queue, "two", partitions=(0, 1, 2))):
        assert [(data.partition_index, data.records) for data in partitions_of(member.fetch())] == [
            (0, b""),
            (1, b""),
            (2, b""),
        ]
        assert partitions_of(member.fetch()) == []
    queue.produce(b"a", partition=1)
    response = Member(queue, "three", partitions=(0, 1, 2)).fetch()
    assert sorted(data.partition_index for data in partitions_of(response)) == [0, 1, 2]
    assert acquired(response, partition=1) == [(0, 0, 1)]
    queue.close()


def test_a_fetch_can_have_acknowledgements(queue):
    queue.produce(b"a", b"b")
    member = Member(queue, "one")
    assert member.take() == [(0, 1, 1)]
    queue.produce(b"c")
    response = member.fetch(acks=[(0, 0, [ACCEPT]), (1, 1, [RELEASE])])
    assert [data.acknowledge_error_code for data in partitions_of(response)] == [0]
    assert acquired(response) == [(1, 1, 2), (2, 2, 1)]


def test_an_acknowledgement_is_answered_when_its_state_is_durable(tmp_path):
    """G2, G5: in a ShareAcknowledge, and in a ShareFetch."""
    queue = Queue(tmp_path / "data", **{"barnabas.log.sync": "always"})
    queue.initialize()
    queue.produce(b"a", b"b")
    member = Member(queue, "one")
    assert member.take() == [(0, 1, 1)]
    queue.flushes.is_paused = True
    member.client.send(member.acknowledge_request((0, 0, [ACCEPT])), 2)
    assert member.answers() == []
    queue.run_flush()
    (response,) = member.answers()
    assert response.responses[0].partitions[0].error_code == 0
    member.epoch += 1
    member.send(acks=[(1, 1, [ACCEPT])])
    assert member.answers() == []
    queue.run_flush()
    (response,) = member.answers()
    assert [data.acknowledge_error_code for data in partitions_of(response)] == [0]
    queue.close()


def test_records_that_were_not_accepted_are_delivered_again_after_a_restart(queue):
    queue.produce(b"a", b"b", b"c", b"d")
    member = Member(queue, "one")
    member.take()
    assert member.acknowledge((0, 0, [ACCEPT]), (1, 1, [RELEASE]), (3, 3, [REJECT])) == 0
    queue.restart()
    assert Member(queue, "two").take() == [(1, 1, 2), (2, 2, 1)]


def test_a_late_member_does_not_change_the_state_of_a_new_group_of_the_same_id(queue):
    """Its group is deleted and created again with the same epochs while its session is open."""
    queue.produce(b"a", b"b", b"c")
    sleeper = Member(queue, "sleeper")
    assert sleeper.take() == [(0, 2, 1)]
    about = SharePartitionKey("g", queue.topic_id, 0)
    queue.broker.share_coordinators.delete(about, lambda _: None)
    queue.initialize()
    sleeper.acknowledge((0, 2, [ACCEPT]))
    assert queue.kept().state_batches == []
    assert Member(queue, "new").take() == [(0, 2, 1)]


def test_a_lock_expires_and_the_delivery_count_is_limited(queue):
    queue.produce(b"a")
    for delivery in range(1, 6):
        assert Member(queue, f"member-{delivery}").take() == [(0, 0, delivery)]
        queue.advance(30)
    assert Member(queue, "last").take() == []
    assert queue.live().start_offset == 1


def test_an_expired_lock_wakes_waiting_fetches(queue):
    queue.produce(b"a")
    member, two = Member(queue, "one"), Member(queue, "two")
    member.take()
    two.send(max_wait_ms=60_000)
    assert two.answers() == []
    queue.advance(30)
    (response,) = two.answers()
    assert acquired(response) == [(0, 0, 2)]
    assert member.acknowledge((0, 0, [ACCEPT])) == E.INVALID_RECORD_STATE


def test_appended_and_released_records_wake_waiting_fetches(queue):
    member, two = Member(queue, "one"), Member(queue, "two")
    member.send(max_wait_ms=1000)
    assert member.answers() == []
    queue.produce(b"a")
    (response,) = member.answers()
    assert acquired(response) == [(0, 0, 1)]
    two.send(max_wait_ms=1000)
    assert member.acknowledge((0, 0, [RELEASE])) == 0
    (response,) = two.answers()
    assert acquired(response) == [(0, 0, 2)]


def test_a_wait_that_times_out_is_answered_without_records(queue):
    member = Member(queue, "one")
    member.send(max_wait_ms=500)
    queue.advance(0.4)
    assert member.answers() == []
    queue.advance(0.2)
    (response,) = member.answers()
    assert response.error_code == 0
    assert [(data.partition_index, data.records) for data in partitions_of(response)] == [(0, b"")]


def test_a_fetch_waits_until_there_are_min_bytes(queue):
    member = Member(queue, "one")
    member.send(max_wait_ms=500, min_bytes=150)
    queue.produce(b"a")
    assert member.answers() == []
    queue.produce(b"b" * 100)
    (response,) = member.answers()
    assert acquired(response) == [(0, 1, 1)]


def test_a_renewed_lock_expires_later(queue):
    queue.produce(b"a")
    member = Member(queue, "one")
    member.take()
    queue.advance(20)
    assert member.acknowledge((0, 0, [RENEW]), renews=True) == 0
    queue.advance(20)
    assert Member(queue, "two").take() == []
    assert member.acknowledge((0, 0, [ACCEPT])) == 0
    assert queue.live().start_offset == 1


def test_a_lock_is_renewed_by_a_fetch_that_fetches_nothing(queue):
    queue.produce(b"a")
    member = Member(queue, "one")
    member.take()
    queue.advance(20)
    nothing = {"min_bytes": 0, "max_bytes": 0, "max_records": 0}
    response = member.fetch(acks=[(0, 0, [RENEW])], is_renew_ack=True, **nothing)
    assert [data.acknowledge_error_code for data in partitions_of(response)] == [0]
    queue.advance(20)
    assert member.fetch(acks=[(0, 0, [RENEW])], is_renew_ack=True).error_code == E.INVALID_REQUEST
    assert member.acknowledge((0, 0, [ACCEPT])) == 0


def test_invalid_types_of_acknowledgements_are_rejected(queue):
    queue.produce(b"a", b"b", b"c")
    member = Member(queue, "one")
    member.take()
    for ack in [(0, 2, []), (0, 2, [1, 1]), (0, 2, [5]), (0, 2, [-1]), (0, 2, [RENEW]), (2, 0, [1])]:
        assert member.acknowledge(ack) == E.INVALID_REQUEST
    assert member.acknowledge((0, 3, [ACCEPT])) == E.INVALID_REQUEST
    assert member.acknowledge((0, 2, [0, 1, 2])) == 0
    assert member.take() == [(2, 2, 2)]


def test_only_the_owner_may_acknowledge(queue):
    queue.produce(b"a")
    member, two = Member(queue, "one"), Member(queue, "two")
    member.take()
    two.take()
    assert two.acknowledge((0, 0, [ACCEPT])) == E.INVALID_RECORD_STATE
    assert member.acknowledge((0, 0, [ACCEPT])) == 0
    assert member.acknowledge((0, 0, [ACCEPT])) == 0  # it is before the start offset now


# ---- sessions


def test_a_session_starts_with_epoch_0_and_increments_it(queue):
    member = Member(queue, "one")
    assert member.fetch(epoch=1).error_code == E.SHARE_SESSION_NOT_FOUND
    assert member.fetch(epoch=-1).error_code == E.SHARE_SESSION_NOT_FOUND
    assert member.acknowledge(epoch=1) == E.SHARE_SESSION_NOT_FOUND
    assert member.acknowledge(epoch=0) == E.INVALID_SHARE_SESSION_EPOCH
    assert member.fetch().error_code == 0
    assert member.fetch(epoch=2).error_code == E.INVALID_SHARE_SESSION_EPOCH
    assert member.fetch(epoch=1).error_code == 0
    assert member.acknowledge(epoch=1) == E.INVALID_SHARE_SESSION_EPOCH


def test_the_first_fetch_of_a_session_cannot_acknowledge(queue):
    assert Member(queue, "one").fetch(acks=[(0, 0, [ACCEPT])]).error_code == E.INVALID_REQUEST


@pytest.mark.parametrize("member_id", ["", "x" * 37])
def test_a_member_needs_an_id(queue, member_id):
    assert Member(queue, member_id).fetch().error_code == E.INVALID_REQUEST
    assert Member(queue, member_id).acknowledge(epoch=1) == E.INVALID_REQUEST


def test_closing_a_session_releases_the_members_records(queue):
    queue.produce(b"a", b"b")
    member, two = Member(queue, "one"), Member(queue, "two")
    member.take()
    response = member.fetch(epoch=-1, acks=[(0, 0, [ACCEPT])])
    assert (response.error_code, acquired(response)) == (0, [])
    assert two.take() == [(1, 1, 2)]
    assert member.fetch(epoch=2).error_code == E.SHARE_SESSION_NOT_FOUND


def test_an_acknowledgement_can_close_the_session(queue):
    queue.produce(b"a", b"b")
    member = Member(queue, "one")
    member.take()
    assert member.acknowledge((0, 0, [ACCEPT]), epoch=-1) == 0
    assert Member(queue, "two").take() == [(1, 1, 2)]


def test_closing_the_connection_releases_the_members_records(queue):
    queue.produce(b"a")
    member, two = Member(queue, "one"), Member(queue, "two")
    member.take()
    two.send(max_wait_ms=1000)
    member.client.connection.close()
    queue.broker.loop.end_turn()
    (response,) = two.answers()
    assert acquired(response) == [(0, 0, 2)]
    assert len(queue.broker.share_partitions.sessions) == 1


def test_the_state_is_loaded_again_after_the_last_session_ended(queue):
    queue.produce(b"a", b"b", b"c")
    member = Member(queue, "one")
    member.take()
    member.fetch(epoch=-1, acks=[(0, 0, [ACCEPT])])
    member.client.connection.close()
    queue.initialize(start_offset=2, state_epoch=1)  # as AlterShareGroupOffsets does
    assert Member(queue, "two").take() == [(2, 2, 1)]


def test_the_number_of_sessions_is_limited(tmp_path):
    queue = Queue(tmp_path / "data", **{"group.share.max.share.sessions": "1"})
    queue.initialize()
    member, two = Member(queue, "one"), Member(queue, "two")
    assert member.fetch().error_code == 0
    two.send(max_wait_ms=500)
    assert two.answers() == []  # it would only retry
    queue.advance(0.5)
    (response,) = two.answers()
    assert response.error_code == E.SHARE_SESSION_LIMIT_REACHED
    member.fetch(epoch=-1)
    assert two.fetch().error_code == 0
    queue.close()


def test_partitions_are_added_to_and_removed_from_a_session(tmp_path):
    queue = Queue(tmp_path / "data", partitions=2)
    for partition in (0, 1):
        queue.initialize(partition=partition)
        queue.produce(b"a", partition=partition)
    member = Member(queue, "one")
    response = member.fetch()
    assert (acquired(response, 0), acquired(response, 1)) == ([(0, 0, 1)], [])
    member.partitions = (1,)
    request = member.fetch_request()
    request.topics = Member(queue, "one", partitions=(1,)).fetch_request().topics
    member.client.send(request, 2)
    (response,) = member.answers()
    assert acquired(response, 1) == [(0, 0, 1)]
    queue.close()


def test_a_session_without_partitions_does_not_wait(queue):
    assert Member(queue, "one", partitions=()).fetch(max_wait_ms=60_000).responses == []


# ---- partitions that cannot be read


def test_unknown_topics_and_partitions_are_rejected(queue):
    queue.topic_id, known = bytes(15) + b"\x09", queue.topic_id
    response = Member(queue, "one").fetch(max_wait_ms=1000)
    assert [data.error_code for data in partitions_of(response)] == [E.UNKNOWN_TOPIC_ID]
    queue.topic_id = known
    response = Member(queue, "two", partitions=(7,)).fetch(max_wait_ms=1000)
    assert [data.error_code for data in partitions_of(response)] == [E.UNKNOWN_TOPIC_OR_PARTITION]
    three = Member(queue, "three", group="other")
    three.client.send(three.fetch_request(max_wait_ms=1000), 2)
    (response,) = three.answers()
    assert [data.error_code for data in partitions_of(response)] == [E.UNKNOWN_SERVER_ERROR]  # never initialized
    assert three.acknowledge((0, 0, [ACCEPT])) == E.UNKNOWN_TOPIC_OR_PARTITION


def test_an_initialized_state_fences_the_previous_one(queue):
    queue.produce(b"a", b"b", b"c")
    member = Member(queue, "one")
    member.take(max_records=1, share_acquire_mode=1)
    queue.initialize(start_offset=2, state_epoch=1)
    assert member.acknowledge((0, 0, [ACCEPT])) == E.NOT_LEADER_OR_FOLLOWER
    assert member.take() == [(2, 2, 1)]


# ---- start offsets


@pytest.mark.parametrize(("reset", "first"), [("earliest", 0), ("latest", 2), (None, 2)])
def test_a_new_group_starts_at_the_offset_of_its_config(queue, reset, first):
    if reset:
        queue.set_group("g", "share.auto.offset.reset", reset)
    queue.initialize(start_offset=-1, state_epoch=1)
    queue.produce(b"a", b"b")
    Member(queue, "one").take()
    assert queue.live().start_offset == first
    queue.produce(b"c")
    queue.restart()
    assert Member(queue, "two").take() == [(first, 2, 1)]  # saved, though nothing was acknowledged


def test_deleted_records_are_removed_from_the_window(queue):
    for value in (b"a", b"b", b"c"):
        queue.produce(value)
    member = Member(queue, "one")
    assert member.take(max_records=2) == [(0, 1, 1)]
    queue.broker.partitions.get("q", 0).log.advance_log_start_offset(1)
    assert member.take() == [(2, 2, 1)]
    assert queue.live().start_offset == 1
    assert member.acknowledge((0, 2, [ACCEPT])) == 0
    assert queue.live().start_offset == 3


# ---- limits


def test_whole_batches_or_a_strict_limit(queue):
    for _ in range(4):
        queue.produce(b"a", b"b", b"c")
    assert Member(queue, "one").take(max_records=4, batch_size=3) == [(0, 2, 1), (3, 5, 1)]
    assert Member(queue, "two").take(max_records=4, share_acquire_mode=1) == [(6, 9, 1)]
    assert Member(queue, "three").take() == [(10, 11, 1)]


def test_the_number_of_acquired_records_of_a_partition_is_limited(tmp_path):
    queue = Queue(tmp_path / "data", **{"group.share.partition.max.record.locks": "100"})
    queue.initialize()
    for _ in range(12):
        queue.produce(*[b"x"] * 10)
    member = Member(queue, "one")
    assert member.take() == [(0, 99, 1)]
    assert member.take() == []
    assert member.acknowledge((0, 9, [ACCEPT])) == 0
    assert member.take() == [(100, 109, 1)]
    queue.close()


def test_records_finished_in_a_full_partition_wake_waiting_fetches(tmp_path):
    """Accepted, or archived when a lock expires: the window moves, and waiting fetches get the next records (G5)."""
    sets = {"group.share.partition.max.record.locks": "100", "group.share.delivery.count.limit": "2"}
    queue = Queue(tmp_path / "data", **sets)
    queue.initialize()
    for _ in range(22):
        queue.produce(*[b"x"] * 10)
    member, two = Member(queue, "one"), Member(queue, "two")
    assert member.take() == [(0, 99, 1)]
    two.send(max_wait_ms=60_000)
    assert two.answers() == []
    assert member.acknowledge((0, 9, [ACCEPT])) == 0
    (response,) = two.answers()
    assert acquired(response) == [(100, 109, 1)]
    queue.advance(30)
    assert member.take() == [(10, 99, 2), (100, 109, 2)]
    two.send(max_wait_ms=60_000)
    assert two.answers() == []
    queue.advance(30)
    (response,) = two.answers()
    assert acquired(response) == [(110, 209, 1)]
    queue.close()


# ---- transactions


def transactional(queue, *values, producer_id=0):
    options = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": -1, "transactional": True}
    return queue.broker.partitions.get("q", 0).append(
        memoryview(bytearray(batch(*values, **options))), queue.clock.now, origin="coordinator"
    )


def end_transaction(queue, *, commit, producer_id=0):
    from barnabas.wire.batches.records import end_txn_marker

    marker = end_txn_marker(
        producer_id=producer_id, producer_epoch=0, timestamp_ms=queue.clock.now_ms, coordinator_epoch=0, commit=commit
    )
    queue.broker.partitions.get("q", 0).append(memoryview(bytearray(marker)), queue.clock.now, origin="coordinator")
    queue.broker.loop.end_turn()


def test_read_uncommitted_acquires_all_records(queue):
    transactional(queue, b"a", b"b")
    assert Member(queue, "one").take() == [(0, 1, 1)]


def test_read_committed_waits_for_the_end_of_a_transaction(queue):
    queue.set_group("g", "share.isolation.level", "read_committed")
    queue.produce(b"plain")
    transactional(queue, b"a", b"b")
    member = Member(queue, "one")
    assert member.take() == [(0, 0, 1)]
    member.send(max_wait_ms=1000)
    assert member.answers() == []
    end_transaction(queue, commit=True)
    (response,) = member.answers()
    assert acquired(response) == [(1, 3, 1)]  # with the marker, which the client calls a gap
    assert values(response) == {1: b"a", 2: b"b"}


def test_read_committed_skips_aborted_records(queue):
    queue.set_group("g", "share.isolation.level", "read_committed")
    transactional(queue, b"a", b"b")
    queue.produce(b"plain")
    transactional(queue, b"c", producer_id=1)
    end_transaction(queue, commit=False)
    end_transaction(queue, commit=True, producer_id=1)
    member = Member(queue, "one")
    response = member.fetch()
    assert acquired(response) == [(2, 5, 1)]
    assert values(response) == {2: b"plain", 3: b"c"}
    assert member.acknowledge((2, 5, [1, 1, 0, 0])) == 0
    assert queue.live().start_offset == 6


def test_an_unreadable_index_of_transactions_is_an_error_of_its_partition_only(tmp_path, monkeypatch):
    """What was acquired of other partitions is delivered: the member does not ask for it again."""
    queue = Queue(tmp_path / "data", partitions=2)
    queue.set_group("g", "share.isolation.level", "read_committed")
    for partition in range(2):
        queue.initialize(partition=partition)
        queue.produce(b"a", partition=partition)
    Member(queue, "two", partitions=(0, 1)).fetch(max_records=0)  # so that both are loaded
    member = Member(queue, "one", partitions=(0, 1))
    log = queue.broker.partitions.get("q", 0).log

    def lookup(requested, *_):
        if requested is log:
            raise KafkaError(E.KAFKA_STORAGE_ERROR, "injected")
        return []

    with monkeypatch.context() as disk:
        disk.setattr(type(log), "aborted_transactions", lookup)
        response = member.fetch()
    assert [(data.partition_index, data.error_code) for data in partitions_of(response)] == [
        (0, E.KAFKA_STORAGE_ERROR),
        (1, E.NONE),
    ]
    assert acquired(response, partition=1) == [(0, 0, 1)]
    assert acquired(member.fetch()) == [(0, 0, 1)]
    queue.close()


@pytest.mark.parametrize("acquire_mode", [0, 1])
def test_a_fetch_that_found_only_aborted_records_is_answered(queue, acquire_mode):
    """The response is immediate, as in Kafka, since more records may follow (G5)."""
    queue.set_group("g", "share.isolation.level", "read_committed")
    transactional(queue, b"a")
    transactional(queue, b"b")
    end_transaction(queue, commit=False)
    queue.produce(b"plain")
    member = Member(queue, "one")
    wishes = {"max_records": 1, "share_acquire_mode": acquire_mode, "max_wait_ms": 60_000}
    assert [member.take(**wishes) for _ in range(4)] == [[], [], [(2, 2, 1)], [(3, 3, 1)]]
    member.send(**wishes)
    assert member.answers() == []  # nothing follows: it waits
    queue.produce(b"new")
    (response,) = member.answers()
    assert acquired(response) == [(4, 4, 1)]


def test_a_new_group_can_start_by_duration(queue):
    queue.set_group("g", "share.auto.offset.reset", "by_duration:PT1H")
    queue.initialize(start_offset=-1, state_epoch=1)
    queue.produce(b"old")
    queue.advance(7200)
    first = queue.produce(records=batch(b"new", timestamp=queue.clock.now_ms))
    assert Member(queue, "one").take() == [(first, first, 1)]
