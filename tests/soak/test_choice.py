"""The part with the oldest call comes first; seeds and turns are new with each commit and each call."""

from __future__ import annotations

import pytest

from tests.soak.choice import SEEDS, by_age, expected_s, next_seed, next_turn, seed_of
from tests.soak.fakes import call, part
from tests.soak.machine import SLOW
from tests.soak.parts import all_parts
from tests.soak.records import Machine

PARTS = all_parts()
A, B, C = (part(name) for name in "abc")


def test_what_was_never_called_comes_first_in_its_order_and_then_the_oldest() -> None:
    calls = [call("b", day=1), call("a", day=3), call("b", day=2)]
    assert by_age([A, B, C], calls) == [C, B, A]
    assert by_age([C, A, B], []) == [C, A, B]


def test_the_order_of_the_record_does_not_matter() -> None:
    calls = [call("a", day=3), call("b", day=2), call("a", day=1)]
    assert by_age([A, B], calls) == by_age([A, B], calls[::-1]) == [B, A]


def test_a_call_that_has_failed_lets_the_others_come_first() -> None:
    assert by_age([A, B], [call("b", day=1), call("a", day=2, code=1)]) == [B, A]


def test_seeds_differ_by_commit_part_and_number_and_fit_every_tool() -> None:
    seeds = [seed_of(commit, name, number) for commit in ("c", "d") for name in ("a", "b") for number in range(100)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < SEEDS for seed in seeds)
    assert SEEDS * 10 < 1 << 31


def test_the_next_seed_is_the_first_that_was_not_used_on_this_commit() -> None:
    first, second = seed_of("c", "a", 1), seed_of("c", "a", 2)
    assert next_seed(A, "c", []) == first
    assert next_seed(A, "c", [first]) == second
    assert next_seed(A, "c", [second]) == first, "an interrupted call is made again"
    assert next_seed(A, "d", []) not in (first, second)


def test_turns_that_were_never_called_come_first_and_begin_elsewhere_on_each_commit() -> None:
    turns = part("a", turns=("1/3", "2/3", "3/3"))
    assert {next_turn(turns, seed, []) for seed in range(3)} == {"1/3", "2/3", "3/3"}
    calls = [call("a", day=1, turn="3/3"), call("a", day=2, turn="1/3")]
    assert [next_turn(turns, seed, calls) for seed in range(3)] == ["2/3"] * 3
    calls.append(call("a", day=3, turn="2/3"))
    assert next_turn(turns, 0, calls) == "3/3"
    assert next_turn(turns, 0, calls, ["3/3"]) == "1/3", "another call has it now"


def test_all_turns_come_before_one_comes_again() -> None:
    turns = part("a", turns=tuple("wxyz"))
    calls = []
    for day in range(1, 9):
        calls.append(call("a", day=day, turn=next_turn(turns, 31 * day, calls)))
    assert (
        sorted(made_call.turn for made_call in calls[:4])
        == sorted(made_call.turn for made_call in calls[4:])
        == list("wxyz")
    )


def test_a_call_is_expected_to_take_what_the_newest_ones_took() -> None:
    calls = [call("a", day=day, seconds=seconds) for day, seconds in enumerate((900.0, 20.0, 30.0, 10.0), 1)]
    assert expected_s(A, "", calls, SLOW) == 20.0
    assert expected_s(A, "", calls, SLOW / 2) == 10.0, "on a machine that is twice as fast"
    assert expected_s(part("a", seconds=50.0), "", [], SLOW) == 50.0


def test_other_work_on_the_machine_is_allowed_for() -> None:
    assert expected_s(A, "", [call("a", seconds=30.0, load=3.0)], SLOW) == 10.0
    assert expected_s(A, "", [call("a", seconds=30.0, load=0.5)], SLOW) == 30.0
    assert expected_s(A, "", [call("a", seconds=30.0, load=3.0)], SLOW, 6.0) == 60.0
    assert expected_s(part("a", seconds=50.0), "", [], SLOW, 2.0) == 100.0


def test_calls_that_failed_or_were_not_measured_say_nothing_about_the_time() -> None:
    unknown = Machine(2, "", "", None)
    calls = [call("a", code=1, seconds=0.1), call("a", seconds=0.1, machine=unknown), call("a", seconds=None)]
    assert expected_s(part("a", seconds=50.0), "", calls, SLOW) == 50.0


def test_a_turn_is_expected_to_take_what_it_took_or_the_longest_of_others() -> None:
    calls = [call("a", day=1, turn="x", seconds=5.0), call("a", day=2, turn="y", seconds=70.0)]
    assert expected_s(A, "x", calls, SLOW) == 5.0
    assert expected_s(A, "z", calls, SLOW) == 70.0


@pytest.mark.parametrize("minutes", [1, 5])
def test_much_of_what_was_never_run_fits_into_few_minutes(minutes: int) -> None:
    parts = [part for part in PARTS if not part.is_pytest]
    fitting = [part for part in parts if part.seconds <= minutes * 60]
    assert len(fitting) >= {1: 15, 5: len(parts)}[minutes]
    assert sum(part.seconds for part in PARTS[:5]) <= 5 * 60, "the first five, one after the other"
