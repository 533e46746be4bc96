"""Which records a member acquires: new and released ones, limits, suspects (G5, KIP-932, KIP-1206)."""

from __future__ import annotations

import pytest

from tests.coord.share_partitions.shared import ACCEPT, RELEASE, LogBatch, Shared


def test_new_records_are_acquired_once_and_in_order():
    shared = Shared((0, 9), (10, 19))
    assert shared.acquire("one", read=1) == [(0, 9, 1)]
    assert shared.acquire("two") == [(10, 19, 1)]
    assert shared.acquire("one") == shared.acquire("two") == []
    assert shared.window == (0, 20)


def test_nothing_is_acquired_without_records_or_limit():
    shared = Shared()
    assert shared.acquire() == []
    assert Shared((0, 9)).acquire(most=0) == []
    assert shared.window == (0, 0)


def test_the_window_starts_at_the_first_record_of_the_log():
    shared = Shared((5, 9), start=2)
    assert shared.acquire() == [(5, 9, 1)]
    assert shared.window == (5, 10)


def test_a_batch_that_begins_before_the_window_is_acquired_from_the_start_offset():
    assert Shared((0, 9), start=4).acquire() == [(4, 9, 1)]


def test_a_batch_before_the_window_is_not_acquired():
    shared = Shared(start=20)
    shared.log = [LogBatch(0, 9)]
    assert shared.acquire() == []


def test_a_gap_between_batches_is_not_acquired():
    shared = Shared((0, 4))
    shared.acquire()
    shared.log.append(LogBatch(8, 9))
    assert shared.acquire() == [(8, 9, 1)]
    assert shared.acknowledge((0, 4, ACCEPT)) == [(0, 4, "Acknowledged", 1)]
    assert shared.window == (8, 10)


def test_a_gap_within_the_batches_read_is_acquired():
    assert Shared((0, 4), (8, 9)).acquire() == [(0, 9, 1)]


# ---- how many


def test_whole_batches_are_acquired_beyond_max_records():
    shared = Shared((0, 4), (5, 9), (10, 14))
    assert shared.acquire(most=6) == [(0, 9, 1)]
    assert shared.acquire(most=1) == [(10, 14, 1)]


def test_a_strict_limit_cuts_batches():
    shared = Shared((0, 4), (5, 9))
    assert shared.acquire("one", 3, strict=True) == [(0, 2, 1)]
    assert shared.states() == [(0, 2, "Acquired", 1), (3, 4, "Available", 0)]
    assert shared.acquire("two", 4, strict=True) == [(3, 4, 1), (5, 6, 1)]
    assert shared.acquire("one", 9, strict=True) == [(7, 9, 1)]


def test_ranges_have_at_least_batch_size_records_and_begin_with_batches():
    shared = Shared((0, 2), (3, 5), (6, 8), (9, 11))
    assert shared.acquire(batch_size=4) == [(0, 5, 1), (6, 11, 1)]
    assert Shared((0, 2), (3, 5)).acquire(batch_size=1) == [(0, 2, 1), (3, 5, 1)]
    assert Shared((0, 2), (3, 5)).acquire(batch_size=1, strict=True) == [(0, 5, 1)]


def test_the_window_grows_only_to_its_limit():
    shared = Shared((0, 9), (10, 19), (20, 29), partition_max_record_locks=20)
    assert shared.acquire() == [(0, 19, 1)]
    assert not shared.partition.can_acquire()
    assert shared.acquire() == []
    shared.acknowledge((0, 9, ACCEPT))
    assert shared.partition.can_acquire()
    assert shared.acquire() == [(20, 29, 1)]


def test_available_records_of_a_full_window_are_acquired():
    shared = Shared((0, 9), (10, 19), (20, 29), partition_max_record_locks=20)
    shared.acquire()
    shared.acknowledge((5, 7, RELEASE))
    assert shared.acquire("two") == [(5, 7, 2)]
    assert shared.acquire("two") == []


# ---- released records


def test_released_records_are_acquired_before_new_ones():
    shared = Shared((0, 9), (10, 19))
    shared.acquire(read=1)
    shared.acknowledge((2, 3, RELEASE), (7, 7, RELEASE))
    assert shared.partition.next_fetch_offset() == 2
    assert shared.acquire("two") == [(2, 3, 2), (7, 7, 2), (10, 19, 1)]


def test_a_strict_limit_includes_released_records():
    shared = Shared((0, 9), (10, 19))
    shared.acquire(read=1)
    shared.acknowledge((0, 9, RELEASE))
    assert shared.acquire("two", 4, strict=True) == [(0, 3, 2)]
    assert shared.acquire("two", 8, strict=True) == [(4, 9, 2), (10, 11, 1)]


def test_released_records_are_acquired_in_whole_batches():
    shared = Shared((0, 4), (5, 9), (10, 14))
    shared.acquire()
    shared.acknowledge((0, 14, RELEASE))
    assert shared.acquire("two", 6) == [(0, 9, 2)]


def test_all_available_records_of_the_last_batch_are_acquired():
    shared = Shared((0, 4), (5, 9), (10, 14))
    shared.acquire()
    shared.acknowledge((1, 1, RELEASE), (3, 3, RELEASE), (6, 6, RELEASE))
    assert shared.acquire("two", 1) == [(1, 1, 2), (3, 3, 2)]
    assert shared.acquire("two", 1, strict=True) == [(6, 6, 2)]


def test_a_release_that_is_not_written_blocks_records():
    shared = Shared((0, 9))
    shared.acquire()
    change = shared.change((0, 9, RELEASE))
    assert shared.partition.next_fetch_offset() == 10
    assert shared.acquire("two") == []
    shared.partition.committed(change)
    assert shared.acquire("two") == [(0, 9, 2)]


def test_a_release_that_is_not_written_blocks_records_next_to_available_ones():
    shared = Shared((0, 4), (5, 9))
    shared.acquire()
    shared.partition.committed(shared.change((0, 4, RELEASE)))
    change = shared.change((5, 9, RELEASE))
    assert shared.acquire("two") == [(0, 4, 2)]
    shared.partition.committed(change)
    assert shared.acquire("two") == [(5, 9, 2)]


def test_records_removed_by_compaction_are_archived():
    shared = Shared((0, 4), (5, 9))
    shared.acquire()
    shared.acknowledge((0, 9, RELEASE))
    del shared.log[0]
    assert shared.acquire() == [(5, 9, 2)]
    assert shared.window == (5, 10)


# ---- suspects


@pytest.mark.parametrize(("limit", "sizes"), [(5, [8, 8, 8, 4, 1]), (2, [8, 8])])
def test_suspects_are_acquired_in_ever_smaller_ranges(limit, sizes):
    shared = Shared((0, 7), delivery_count_limit=limit)
    acquired_sizes = []
    for _ in range(limit):
        ((first, last, _),) = shared.acquire()
        acquired_sizes.append(last - first + 1)
        assert first == 0
        shared.acknowledge((first, last, RELEASE))
    assert acquired_sizes == sizes


def test_a_suspect_is_not_acquired_after_other_records():
    shared = Shared((0, 3), (4, 7))
    for _ in range(3):
        shared.acquire(read=1, batch_size=1, most=1)
        shared.acknowledge((0, 3, ACCEPT) if shared.window[1] == 8 else (0, 3, RELEASE))
    assert shared.acquire("two", most=500) == [(0, 1, 4)]  # not even new ones
    assert shared.acquire("three", most=500) == [(2, 3, 4)]
    assert shared.acquire("three", most=500) == [(4, 7, 1)]


# ---- read_committed


def test_records_of_aborted_transactions_are_not_acquired():
    shared = Shared((0, 4), (5, 9), (10, 14))
    assert shared.acquire(aborted=[(5, 9)]) == [(0, 4, 1), (10, 14, 1)]
    shared.acknowledge((0, 4, ACCEPT))
    assert shared.window == (10, 15)


def test_a_log_of_aborted_records_only_moves_the_window():
    shared = Shared((0, 4))
    assert shared.acquire(aborted=[(0, 4)]) == []
    assert shared.window == (5, 5)
