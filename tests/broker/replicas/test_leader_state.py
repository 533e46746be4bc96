"""The leader's state of its followers: which are caught up, in sync, or may be (R9, R10), and counted bytes."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.replicas.leader.committed_bytes import MAX_ENTRIES, UNKNOWN_SIZE, CommittedBytes
from barnabas.broker.replicas.leader.leader_state import Follower, LeaderState, Proposal
from tests.support.cases import for_each

LAG_S = 30.0


class Broker(NamedTuple):
    epoch: int = 5
    fenced: bool = False
    in_controlled_shutdown: bool = False


def leader(*isr: int) -> LeaderState:
    state = LeaderState(1)
    state.set_replicas([1, 2, 3])
    state.commit_isr(isr or (1, 2, 3))
    state.begin_epoch(0.0, 100, is_new_leader=True)
    return state


class TestCaughtUp:
    def test_a_fetch_at_the_end_is_caught_up_now(self) -> None:
        follower = Follower(2)
        follower.fetched(10, 0, 10, 5, 7.0)
        assert follower.caught_up_at == 7.0

    def test_a_fetch_at_the_end_of_the_fetch_before_was_caught_up_then(self) -> None:
        follower = Follower(2)
        follower.fetched(5, 0, 10, 5, 7.0)
        follower.fetched(10, 0, 20, 5, 8.0)
        assert follower.caught_up_at == 7.0
        follower.fetched(19, 0, 30, 5, 9.0)
        assert follower.caught_up_at == 7.0

    def test_it_is_caught_up_at_the_end_or_for_a_time(self) -> None:
        follower = Follower(2)
        follower.fetched(10, 0, 10, 5, 0.0)
        assert follower.is_caught_up(10, 1000.0, LAG_S)
        assert follower.is_caught_up(11, LAG_S, LAG_S)
        assert not follower.is_caught_up(11, LAG_S + 0.1, LAG_S)

    def test_replicas_of_the_isr_begin_an_epoch_caught_up(self) -> None:
        state = leader(1, 2)
        assert state.out_of_sync(200, LAG_S, LAG_S) == set()
        assert state.out_of_sync(200, LAG_S + 1, LAG_S) == {2}
        assert not state.followers[3].is_caught_up(200, 0.0, LAG_S)

    def test_an_epoch_of_the_same_leader_keeps_positions(self) -> None:
        state = leader()
        state.followers[2].fetched(90, 0, 100, 5, 1.0)
        state.begin_epoch(2.0, 100, is_new_leader=False)
        assert (state.followers[2].log_end_offset, state.followers[2].caught_up_at) == (90, 2.0)
        state.begin_epoch(3.0, 100, is_new_leader=True)
        assert state.followers[2].log_end_offset == -1


class TestIsr:
    def test_proposed_replicas_count_at_once_and_those_to_be_removed_still_do(self) -> None:
        state = leader(1, 2)
        state.proposal = Proposal((1, 3), 0, 0, (-1, -1))
        assert [state.is_in_maximal_isr(replica) for replica in (1, 2, 3)] == [True, True, True]
        assert state.maximal_isr_size == 3
        assert state.out_of_sync(500, 1000.0, LAG_S) == set()  # one proposal at a time
        state.commit_isr((1, 3))
        assert not state.is_in_maximal_isr(2)

    def test_a_replica_of_the_isr_without_a_follower_is_out_of_sync(self) -> None:
        state = leader(1, 2, 9)
        assert state.out_of_sync(100, 1.0, LAG_S) == {9}

    def test_replicas_that_stay_are_not_forgotten(self) -> None:
        state = leader()
        follower = state.followers[2]
        state.set_replicas([1, 2, 4])
        assert state.followers[2] is follower
        assert set(state.followers) == {2, 4}

    @for_each(
        ("end", "broker", "epoch", "may"),
        [
            (100, Broker(), 5, True),
            (100, Broker(), -1, True),
            (99, Broker(), 5, False),  # below the start of the epoch
            (100, Broker(epoch=6), 5, False),
            (100, Broker(fenced=True), 5, False),
            (100, Broker(in_controlled_shutdown=True), 5, False),
            (100, None, 5, False),
        ],
    )
    def test_who_may_join(self, end: int, broker: Broker | None, epoch: int, may: bool) -> None:
        state = leader(1, 2)
        follower = state.followers[3]
        assert not state.may_expand(follower, 0, Broker())  # it has not fetched
        follower.fetched(end, 0, 100, epoch, 1.0)
        assert state.may_expand(follower, 50, broker) is may
        assert not state.may_expand(follower, 101, broker)
        assert not state.may_expand(state.followers[2], 0, Broker())


class TestCommittedBytes:
    @given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 100)), max_size=30), st.data())
    def test_it_is_the_least_sum_of_whole_appends_that_covers_the_high_watermark(self, appends, data) -> None:
        counted = CommittedBytes(0, 0, 0)
        end, ends = 0, [(0, 0)]
        for offsets, size in appends:
            end += offsets
            counted.appended(end, size)
            ends.append((end, ends[-1][1] + size))
        for high_watermark in sorted(data.draw(st.lists(st.integers(0, end), max_size=10))):
            assert counted.below(high_watermark) == next(total for at, total in ends if at >= high_watermark)
        assert counted.total == ends[-1][1]

    def test_what_was_there_before_counts_as_much(self) -> None:
        counted = CommittedBytes(10, 5, 20)
        assert counted.below(5) == 10
        assert counted.below(6) == 10 + UNKNOWN_SIZE

    def test_its_memory_is_bounded(self) -> None:
        counted = CommittedBytes(0, 0, 0)
        for end in range(1, 3 * MAX_ENTRIES):
            counted.appended(end, 1)
        assert len(counted._entries) == MAX_ENTRIES
        assert counted.below(5) == 5
        assert counted.below(3 * MAX_ENTRIES - 1) == 3 * MAX_ENTRIES - 1

    def test_a_truncation_is_followed(self) -> None:
        counted = CommittedBytes(0, 0, 0)
        counted.appended(10, 100)
        counted.appended(20, 100)
        counted.truncated(15)
        counted.appended(16, 1)
        assert counted.below(15) == 200
        assert counted.below(16) == 201
