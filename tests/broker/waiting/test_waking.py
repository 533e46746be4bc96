"""However many wait for one thing, they are called in pieces; other requests are served in between (R12, R13)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from barnabas.broker.event_loop.loop import Loop
from barnabas.broker.event_loop.waking import FEW, Waking
from barnabas.broker.replicas.leader.offset_waits import OffsetWaits
from barnabas.wire.errors import ErrorCode

MANY = 1000
STEP_S = 0.0001
"""By how much each reading of the clock advances it here: about the time of one response."""
MOST_AT_ONCE = 2 * (FEW + 12)
"""A piece has the calls before the first reading of the clock, and a millisecond of calls; a turn may end twice."""


@pytest.fixture
def loop() -> Loop:
    clock = count()
    return Loop(lambda: next(clock) * STEP_S, lambda: 0)


def turns(loop: Loop, called: list[object]) -> list[int]:
    """End turns until nothing is left; how many were called in each."""
    pieces = []
    while not loop.is_idle:
        before = len(called)
        loop.end_turn()
        loop.timers.fire(loop.now())
        pieces.append(len(called) - before)
    return pieces


class Waiters:
    """Waiting callbacks, and the numbers of those that were called."""

    def __init__(self, loop: Loop, number: int) -> None:
        self.called: list[int] = []
        self.ended = 0
        self.all = {key: key for key in range(number)}
        self.waking = Waking(loop, self.all, self.call, self.end)

    def call(self, waiter: int) -> None:
        self.called.append(waiter)

    def end(self) -> None:
        self.ended += 1


def test_many_are_called_in_pieces_and_in_order(loop: Loop) -> None:
    waiters = Waiters(loop, MANY)
    waiters.waking.begin()
    at_once = len(waiters.called)
    pieces = turns(loop, waiters.called)
    assert max(at_once, *pieces) <= MOST_AT_ONCE
    assert waiters.called == list(range(MANY))
    assert waiters.ended == 1


def test_one_who_waits_no_longer_is_not_called(loop: Loop) -> None:
    waiters = Waiters(loop, MANY)
    waiters.waking.begin()
    del waiters.all[MANY - 1]
    turns(loop, waiters.called)
    assert waiters.called == list(range(MANY - 1))


def test_a_change_meanwhile_is_told_to_all_who_wait_then(loop: Loop) -> None:
    """Several changes during a pass are one more pass."""
    waiters = Waiters(loop, MANY)
    waiters.waking.begin()
    for _ in range(5):
        waiters.waking.begin()
    del waiters.all[0]
    turns(loop, waiters.called)
    assert waiters.called == [*range(MANY), *range(1, MANY)]
    assert waiters.ended == 1


class Waits:
    """Waits for offsets; `told` has the results that they were called with, in order."""

    def __init__(self, loop: Loop) -> None:
        self.all = OffsetWaits(loop, "A callback")
        self.told: list[object] = []

    def add(self, offset: int) -> Callable[[ErrorCode], None]:
        def then(error: ErrorCode) -> None:
            self.told.append((offset, error))

        self.all.add(offset, then)
        return then


@pytest.fixture
def waits(loop: Loop) -> Waits:
    return Waits(loop)


def none(*offsets: int) -> list[object]:
    return [(offset, ErrorCode.NONE) for offset in offsets]


def test_a_commit_for_which_many_wait_is_told_in_pieces(loop: Loop, waits: Waits) -> None:
    for offset in range(MANY):
        waits.add(offset)
    waits.all.reached(MANY - 1)
    at_once = len(waits.told)
    pieces = turns(loop, waits.told)
    assert max(at_once, *pieces) <= MOST_AT_ONCE
    assert waits.told == none(*range(MANY - 1))
    assert not waits.all.is_calling
    waits.all.reached(MANY)
    assert waits.told == none(*range(MANY))


def test_few_are_told_at_once_in_the_order_of_their_offsets(waits: Waits) -> None:
    for offset in (5, 3, 4, 9, 3):
        waits.add(offset)
    waits.all.reached(6)
    assert waits.told == none(3, 3, 4, 5)


def test_what_is_forgotten_is_not_told(waits: Waits) -> None:
    first, second = waits.add(1), waits.add(2)
    waits.all.forget(second)
    waits.all.reached(9)
    waits.all.forget(first)  # it was called already
    assert waits.told == none(1)
    assert not waits.all.queue


def test_what_was_committed_is_not_told_the_error_of_what_was_not(loop: Loop, waits: Waits) -> None:
    """The leader changes while some are not called for a commit yet."""
    for offset in range(MANY):
        waits.add(offset)
    waits.all.reached(MANY // 2)
    waits.all.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    waits.add(7)  # in the next epoch
    pieces = turns(loop, waits.told)
    assert max(pieces) <= MOST_AT_ONCE
    half = MANY // 2
    failed = [(offset, ErrorCode.NOT_LEADER_OR_FOLLOWER) for offset in range(half, MANY)]
    assert waits.told == [*none(*range(half)), *failed]
    waits.all.reached(8)
    assert waits.told[MANY:] == none(7)


def test_one_that_comes_while_others_are_told_is_told_after_them(loop: Loop, waits: Waits) -> None:
    for offset in range(MANY):
        waits.add(offset)
    waits.all.reached(MANY)
    assert waits.all.is_calling
    waits.add(MANY - 1)
    turns(loop, waits.told)
    assert waits.told == none(*range(MANY), MANY - 1)


def test_a_callback_that_fails_keeps_none_from_being_told(
    loop: Loop, waits: Waits, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(error: ErrorCode) -> None:
        raise RuntimeError("on purpose")

    waits.all.add(1, fails)
    waits.add(2)
    waits.all.reached(3)
    assert waits.told == none(2)
    assert "A callback has failed" in caplog.text
