"""Acknowledgements, expired locks, changes to write, and loading of the durable state (G5, KIP-932, KIP-1222)."""

from __future__ import annotations

import pytest

from barnabas.coord.share_partitions.acknowledgement import acknowledgements
from barnabas.coord.share_partitions.partition import SharePartition
from barnabas.coord.share_partitions.states import PREDECESSORS, RecordState
from barnabas.coord.share_partitions.window import Run, Window
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.share_groups import ShareAcknowledgeRequestAcknowledgementBatch as Batch
from tests.coord.share_partitions.shared import ACCEPT, GAP, LOCK_S, REJECT, RELEASE, RENEW, Shared
from tests.support.cases import for_each


def refused(shared, *acknowledgements, member="m"):
    before = shared.states()
    with pytest.raises(KafkaError) as refusal:
        shared.change(*acknowledgements, member=member)
    assert shared.states() == before
    return refusal.value.code


def test_the_start_moves_past_finished_records():
    shared = Shared((0, 9))
    shared.acquire()
    assert shared.acknowledge((4, 9, ACCEPT)) == [(4, 9, "Acknowledged", 1)]
    assert (shared.window, shared.partition.delivery_complete_count) == ((0, 10), 6)
    assert shared.acknowledge((0, 1, REJECT), (2, 3, GAP)) == [(0, 3, "Archived", 1)]
    assert (shared.window, shared.partition.delivery_complete_count) == ((10, 10), 0)


def test_the_start_waits_for_the_write():
    shared = Shared((0, 9))
    shared.acquire()
    first, second = shared.change((0, 4, ACCEPT)), shared.change((5, 9, ACCEPT))
    shared.partition.committed(second)
    assert shared.window == (0, 10)
    shared.partition.committed(first)
    assert shared.window == (10, 10)


def test_runs_with_equal_records_are_merged():
    shared = Shared((0, 9))
    shared.acquire()
    for offset in range(9, 0, -1):
        shared.acknowledge((offset, offset, ACCEPT))
    assert shared.states() == [(0, 0, "Acquired", 1), (1, 9, "Acknowledged", 1)]


def test_at_the_delivery_limit_a_released_record_is_archived():
    shared = Shared((0, 0), delivery_count_limit=2)
    shared.acquire()
    assert shared.acknowledge((0, 0, RELEASE)) == [(0, 0, "Available", 1)]
    shared.acquire()
    assert shared.acknowledge((0, 0, RELEASE)) == [(0, 0, "Archived", 2)]


def test_only_records_acquired_by_the_member_can_be_acknowledged():
    shared = Shared((0, 9), (10, 19))
    assert refused(shared, (0, 0, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE
    shared.acquire(read=1)
    shared.acquire("two")
    assert refused(shared, (0, 0, ACCEPT), member="two") == ErrorCode.INVALID_RECORD_STATE
    assert refused(shared, (5, 12, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE
    assert refused(shared, (0, 3, ACCEPT), (15, 20, ACCEPT)) == ErrorCode.INVALID_REQUEST
    assert refused(shared, (20, 20, ACCEPT)) == ErrorCode.INVALID_REQUEST
    shared.acknowledge((1, 9, ACCEPT))
    assert refused(shared, (0, 1, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE


def test_a_refused_acknowledgement_has_kafkas_message():
    """Of a batch that was acquired as a whole, or of an offset in it; a record is not acknowledged twice."""
    shared = Shared((0, 9), (10, 19))
    whole = "The batch cannot be acknowledged. The batch is not in the acquired state."
    single = "The offset cannot be acknowledged. The offset is not acquired."
    past = "Batch record not found. The {} offset in request is past acquired records."

    def text(*runs, member="m"):
        with pytest.raises(KafkaError) as refusal:
            shared.change(*runs, member=member)
        return refusal.value.message

    assert text((0, 0, ACCEPT)) == "Batch record not found. The request batch offsets are not found in the cache."
    for _ in range(2):
        shared.acquire(read=1)
    assert text((20, 21, ACCEPT)) == past.format("first")
    assert text((15, 20, ACCEPT)) == past.format("last")
    assert text((0, 9, ACCEPT), member="two") == "Member is not the owner of batch record"
    assert text((10, 19, ACCEPT), (19, 19, ACCEPT)) == whole
    shared.acknowledge((12, 13, ACCEPT))
    assert text((12, 12, ACCEPT)) == single
    assert text((14, 15, ACCEPT), (15, 15, ACCEPT)) == single
    assert text((14, 15, ACCEPT), member="two") == "Member is not the owner of offset"
    shared.acknowledge((0, 9, RELEASE))
    assert text((0, 9, ACCEPT)) == whole


def test_acknowledgements_before_the_start_are_ignored():
    shared = Shared((0, 9))
    shared.acquire()
    shared.partition.move_log_start(5)
    assert shared.window == (5, 10)
    assert not shared.change((0, 4, ACCEPT))
    assert shared.acknowledge((0, 9, ACCEPT)) == [(5, 9, "Acknowledged", 1)]


def test_a_failed_write_undoes_the_transitions():
    shared = Shared((0, 9))
    shared.acquire()
    change = shared.change((0, 4, ACCEPT), (5, 9, RELEASE))
    shared.partition.failed(change, shared.now)
    assert shared.states() == [(0, 9, "Acquired", 1)]
    assert shared.acknowledge((0, 9, ACCEPT)) == [(0, 9, "Acknowledged", 1)]


@pytest.mark.parametrize(("limit", "left"), [(5, [(0, 9, "Available", 1)]), (1, [])])
def test_a_write_that_fails_after_the_lock_has_expired_releases_the_records(limit, left):
    shared = Shared((0, 9), delivery_count_limit=limit)
    shared.acquire()
    change = shared.change((0, 9, ACCEPT))
    assert shared.wait(LOCK_S) == []
    shared.partition.failed(change, shared.now)
    assert shared.states() == left


# ---- locks


def test_an_expired_lock_releases_the_remaining_records():
    shared = Shared((0, 9))
    shared.acquire()
    shared.acknowledge((0, 3, ACCEPT))
    assert shared.partition.next_deadline() == LOCK_S
    assert shared.wait(LOCK_S - 1) == []
    assert shared.wait(1) == [(4, 9, "Available", 1)]
    assert shared.acquire("two") == [(4, 9, 2)]


def test_at_the_delivery_limit_an_expired_lock_archives():
    shared = Shared((0, 9), delivery_count_limit=2)
    shared.acquire()
    shared.wait()
    shared.acquire()
    assert shared.wait() == [(0, 9, "Archived", 2)]
    assert shared.window == (10, 10)


def test_each_acquisition_has_a_lock_of_its_own():
    shared = Shared((0, 9), (10, 19))
    shared.acquire("one", read=1)
    shared.wait(10)
    shared.acquire("two")
    assert shared.wait(20) == [(0, 9, "Available", 1)]
    assert shared.wait(10) == [(10, 19, "Available", 1)]


def test_a_lock_is_renewed_record_by_record():
    shared = Shared((0, 9))
    shared.acquire()
    shared.wait(20)
    assert shared.acknowledge((3, 5, RENEW), (6, 6, ACCEPT)) == [(6, 6, "Acknowledged", 1)]
    assert shared.wait(10) == [(0, 2, "Available", 1), (7, 9, "Available", 1)]
    assert shared.wait(20) == [(3, 5, "Available", 1)]


def test_renewal_can_be_disabled():
    shared = Shared((0, 9), renew_acknowledge_enable=False)
    shared.acquire()
    assert refused(shared, (0, 9, RENEW)) == ErrorCode.INVALID_RECORD_STATE


def test_a_record_that_is_acquired_again_has_a_new_lock():
    shared = Shared((0, 0))
    shared.acquire("one")
    shared.wait(10)
    shared.acknowledge((0, 0, RELEASE), member="one")
    shared.acquire("two")
    assert shared.wait(20) == []
    assert shared.wait(10) == [(0, 0, "Available", 2)]


# ---- members that leave


def test_a_leaving_member_releases_only_its_own_records():
    shared = Shared((0, 4), (5, 9))
    shared.acquire("one", read=1)
    shared.acquire("two")
    shared.acknowledge((0, 1, ACCEPT), member="one")
    assert shared.release("one") == [(2, 4, "Available", 1)]
    assert shared.release("one") == []
    assert shared.acquire("two") == [(2, 4, 2)]


# ---- dead letters


def with_queue(*batches, **settings):
    shared = Shared(*batches, **settings)
    shared.settings = shared.settings._replace(errors_deadletterqueue_topic_name="dlq.q")
    return shared


def test_rejected_records_are_written_to_the_dead_letter_queue():
    shared = with_queue((0, 9))
    shared.acquire()
    change = shared.change((0, 3, REJECT), (4, 9, ACCEPT))
    assert [tuple(letters) for letters in change.dead_letters] == [(0, 3, 1, "Offset rejected by client.")]
    shared.partition.committed(change)
    assert (shared.window, shared.states()[0]) == ((0, 10), (0, 3, "Archiving", 1))
    change = shared.partition.archived(0, 3)
    assert change.batches == [(0, 3, RecordState.ARCHIVED, 1)]
    assert shared.window == (10, 10)


def test_records_at_the_delivery_limit_are_written_to_the_dead_letter_queue():
    shared = with_queue((0, 1), delivery_count_limit=2)
    shared.acquire()
    shared.wait()
    shared.acquire()
    shared.now += LOCK_S
    change = shared.partition.tick(shared.now)
    expected = (0, 1, 2, "Offset delivery count exceeded the threshold.")
    assert [tuple(letters) for letters in change.dead_letters] == [expected]


def test_gaps_are_not_dead_letters():
    shared = with_queue((0, 1))
    shared.acquire()
    assert shared.acknowledge((0, 1, GAP)) == [(0, 1, "Archived", 1)]


def test_a_load_returns_unwritten_dead_letters():
    shared = Shared(kept=[(0, 1, 2, 1), (2, 3, 3, 5), (4, 4, 0, 2)])
    assert [tuple(letters) for letters in shared.partition.dead_letters()] == [(2, 3, 5, "")]
    assert shared.window == (2, 5)


# ---- loading


def test_a_load_continues_with_the_durable_state():
    shared = Shared((0, 19), (20, 29), start=5, kept=[(5, 7, 2, 1), (10, 12, 0, 3), (15, 19, 4, 5)])
    assert shared.window == (8, 20)
    assert shared.states() == [
        (8, 9, "Available", 0),
        (10, 12, "Available", 3),
        (13, 14, "Available", 0),
        (15, 19, "Archived", 5),
    ]
    assert shared.partition.delivery_complete_count == 5
    assert shared.acquire() == [(8, 9, 1)]  # the next records were delivered three times


@for_each("kept", [[(3, 4, 0, 1)], [(5, 9, 0, 1), (9, 9, 0, 1)], [(9, 8, 0, 1)], [(5, 6, 1, 1)]])
def test_an_inconsistent_durable_state_is_refused(kept):
    with pytest.raises(ValueError, match="durable state"):
        SharePartition(lambda: None, 5, 0, kept)


def test_transitions_are_checked_against_the_table():
    for old in RecordState:
        for new in RecordState:
            window = Window(0)
            window.append(Run(0, 0, old, 1))
            if old in PREDECESSORS[new]:
                window.become(window.runs()[0], new)
            else:
                with pytest.raises(AssertionError):
                    window.become(window.runs()[0], new)


# ---- parsing of requests


def batch(first, last, types):
    return Batch(first_offset=first, last_offset=last, acknowledge_types=types)


def test_types_of_single_records_are_grouped_into_runs():
    runs = acknowledgements([batch(0, 5, [1, 1, 0, 0, 2, 1]), batch(7, 9, [3])], may_renew=False)
    assert runs == [(0, 1, ACCEPT), (2, 3, GAP), (4, 4, RELEASE), (5, 5, ACCEPT), (7, 9, REJECT)]


@for_each(
    "batches",
    [
        [(5, 4, [1])],
        [(0, 4, [])],
        [(0, 4, [1, 1])],
        [(0, 4, [5])],
        [(0, 4, [-1])],
        [(0, 4, [4])],
        [(0, 4, [1]), (3, 6, [1])],
        [(5, 6, [1]), (0, 1, [1])],
    ],
)
def test_invalid_acknowledgements_are_refused(batches):
    with pytest.raises(KafkaError) as refusal:
        acknowledgements([batch(*fields) for fields in batches], may_renew=False)
    assert refusal.value.code is ErrorCode.INVALID_REQUEST


def test_renewal_needs_the_flag():
    assert acknowledgements([batch(0, 4, [4])], may_renew=True) == [(0, 4, RENEW)]
