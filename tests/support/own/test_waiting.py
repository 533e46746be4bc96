"""A wait that times out names its condition."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

from tests.support.waiting import Advance, Deadline, wait_for, wait_for_all, wait_for_async, within


def counting() -> Iterator[int]:
    yield from range(100)


def test_the_answer_is_the_first_true_one() -> None:
    numbers = counting()
    assert wait_for(lambda: next(numbers) >= 2 and "three", "three", pause_s=0.0) == "three"


def test_what_is_missing_is_said() -> None:
    with pytest.raises(AssertionError, match=r"^waited 0 s for the leader$"):
        wait_for(lambda: None, "the leader", 0.0)
    with pytest.raises(AssertionError, match=r"^waited 0 s for 3 of 5 records$"):
        wait_for(list, lambda: f"{3} of 5 records", 0.0)


def test_errors_that_are_named_count_as_no() -> None:
    numbers = counting()

    def answers() -> float:
        return 1 / next(numbers)

    assert wait_for(answers, "an answer", errors=(ZeroDivisionError,), pause_s=0.0) == 1.0
    with pytest.raises(AssertionError, match=r"for an answer; the last answer was ZeroDivisionError"):
        wait_for(lambda: 1 / 0, "an answer", 0.0, errors=(ZeroDivisionError,))
    with pytest.raises(ZeroDivisionError):
        wait_for(lambda: 1 / 0, "an answer", 0.0)


@pytest.mark.trio
async def test_a_task_waits_for_an_answer_or_a_coroutine() -> None:
    numbers = counting()

    async def asked() -> bool:
        return next(numbers) > 2

    assert await wait_for_async(asked, "an answer", pause_s=0.0)
    assert await wait_for_async(lambda: next(numbers) == 5, "five", pause_s=0.0) is True
    with pytest.raises(AssertionError, match="waited 0 s for nothing"):
        await wait_for_async(lambda: False, "nothing", 0.0)


def test_a_loop_has_a_deadline() -> None:
    deadline = Deadline("all records", 60.0)
    deadline.check()
    assert 0 < deadline.left_s <= 60.0
    with pytest.raises(AssertionError, match="waited -1 s for all records"):
        Deadline("all records", -1.0).check()


@pytest.mark.trio
async def test_a_block_has_a_deadline() -> None:
    with within("nothing"):
        pass
    with pytest.raises(AssertionError, match="waited 0 s for an answer"), within("an answer", 0.0):
        await trio.sleep_forever()


def test_what_grows_slowly_is_waited_for_and_what_is_stuck_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round takes longer than half of the silence that is allowed; all of them took longer than a deadline."""
    now = 0.0
    monkeypatch.setattr("tests.support.waiting.time.monotonic", lambda: now)
    monkeypatch.setattr("tests.support.waiting.PAUSE_S", 0.0)
    grown = 0

    def one_round() -> None:
        nonlocal now, grown
        now += 6.0
        grown += 1

    wait_for_all([Advance(lambda: grown, 5, "all"), Advance(lambda: 3 + grown // 2, 5, "half")], one_round)
    assert grown == 10
    with pytest.raises(AssertionError, match=r"^half: nothing in 10 s, after 2 of 7 steps$"):
        wait_for_all([Advance(lambda: min(12, grown), 7, "half", 10.0)], one_round)
