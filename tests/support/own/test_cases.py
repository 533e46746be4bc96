"""One test for many cases: all of them run, and the failure names each that failed."""

from __future__ import annotations

import enum
import inspect
import itertools
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.support import failures
from tests.support.cases import VARIABLE, cases_of, for_each
from tests.support.failures import MOST_SHOWN, Failures


@pytest.fixture(autouse=True)
def _all_cases_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(failures, "_ends_after", None)


def failure_of(test: Callable[..., Any], **fixtures: Any) -> str:
    with pytest.raises(AssertionError) as failure:
        test(**fixtures)
    return str(failure.value)


def test_every_case_runs_and_each_failure_is_named_with_its_line() -> None:
    seen = []

    @for_each("number", range(5))
    def odd(number: int) -> None:
        seen.append(number)
        assert number % 2, f"{number} is even"

    message = failure_of(odd)
    assert seen == [0, 1, 2, 3, 4]
    assert message.startswith("3 of 5 cases failed: 0, 2, 4\n")
    for number in (0, 2, 4):
        assert f"---- {number}\n" in message
        assert f"AssertionError: {number} is even" in message
    assert message.count("assert number % 2") == 3
    assert "test_cases.py" in message
    assert "cases.py:" not in message.replace("test_cases.py:", "")


def test_all_pass() -> None:
    seen = []

    @for_each("number", [7, 8])
    def passing(number: int) -> None:
        seen.append(number)

    passing()
    assert seen == [7, 8]


def test_axes_are_combined_as_those_of_parametrize() -> None:
    @for_each("a", [1, 2])
    @for_each(("b", "c"), [("x", None), ("y", 3.5)])
    def nothing(a: int, b: str, c: float | None) -> None:
        del a, b, c

    assert [case.id for case in cases_of(nothing)] == ["x-None-1", "x-None-2", "y-3.5-1", "y-3.5-2"]
    assert cases_of(nothing)[1].arguments == {"a": 2, "b": "x", "c": None}


@for_each(
    ("values", "ids", "said"),
    [
        (["text", "zwei\n", b"\xff\x00"], None, ["text", "zwei\\n", "\\xff\\x00"]),
        ([len, object()], None, ["len", "value1"]),
        (["x" * 101], None, ["value0"]),
        (enum.Enum("Size", "SMALL LARGE"), None, ["Size.SMALL", "Size.LARGE"]),
        ([1, 1, 2], None, ["1#1", "1#2", "2"]),
        ([1, 2], lambda value: value * 10, ["10", "20"]),
        ([1, 2], ["one", None], ["one", "2"]),
        ([pytest.param(1, id="eins"), pytest.param(2)], None, ["eins", "2"]),
    ],
)
def test_ids(values: Any, ids: Any, said: list[str]) -> None:
    @for_each("value", values, ids)
    def nothing(value: Any) -> None:
        del value

    assert [case.id for case in cases_of(nothing)] == said


def test_a_case_that_is_chosen_fails_with_its_own_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    @for_each("number", range(3))
    def test(number: int) -> None:
        seen.append(number)
        raise KeyError(number)

    monkeypatch.setenv(VARIABLE, "1")
    with pytest.raises(KeyError):
        test()
    assert seen == [1]
    monkeypatch.setenv(VARIABLE, "9")
    with pytest.raises(pytest.skip.Exception, match="no case 9"):
        test()


def test_what_is_made_when_the_test_runs() -> None:
    calls = []

    @for_each("value", lambda: calls.append("now") or [1])
    def nothing(value: int) -> None:
        del value

    assert calls == []
    nothing()
    assert calls == ["now"]


def test_no_values_and_marks_are_failures() -> None:
    def nothing(value: int) -> None:
        del value

    assert "the test would check nothing" in failure_of(for_each("value", [])(nothing))
    assert "has marks" in failure_of(for_each("value", [pytest.param(1, marks=pytest.mark.skip)])(nothing))
    with pytest.raises(TypeError, match="does not take other"):
        for_each("other", [1])(nothing)


def test_fixtures_and_marks_are_left_for_pytest() -> None:
    @for_each("number", [1])
    @pytest.mark.timeout(77)
    def test(number: int, tmp_path: Path) -> None:
        """What it says."""

    assert list(inspect.signature(test).parameters) == ["tmp_path", "request"]
    assert [mark.args for mark in test.pytestmark] == [(77,)]  # type: ignore[attr-defined]
    assert test.__doc__ == "What it says."


class TestMethods:
    @for_each("number", [1, 2])
    def test_methods_too(self, number: int, request: pytest.FixtureRequest) -> None:
        assert isinstance(self, TestMethods)
        assert number in (1, 2)
        assert request.node.originalname == "test_methods_too"


def test_no_async_tests() -> None:
    async def nothing(number: int) -> None:
        del number

    with pytest.raises(TypeError, match="use parametrize"):
        for_each("number", [1])(nothing)


class Made:
    """Counts the fixtures of this file that live."""

    living: ClassVar[list[str]] = []
    numbers = itertools.count()


@contextmanager
def living(name: str) -> Iterator[str]:
    Made.living.append(name)
    yield f"{name} {next(Made.numbers)}"
    Made.living.remove(name)


@pytest.fixture
def below() -> Iterator[str]:
    with living("below") as name:
        yield name


@pytest.fixture
def above(below: str) -> Iterator[str]:
    with living("above") as name:
        yield f"{name} on {below}"


@pytest.fixture(scope="module")
def whole() -> int:
    return next(Made.numbers)


@pytest.fixture(autouse=True)
def _around(request: pytest.FixtureRequest) -> Iterator[None]:
    with living("around"):
        yield


class TestFixturesOfACase:
    seen: ClassVar[list[tuple[str, str, int]]] = []

    @pytest.fixture
    def below(self, below: str) -> str:
        """It replaces the one of the file, and uses it."""
        return f"class's {below}"

    @for_each("number", range(3))
    @pytest.mark.parametrize("letter", ["x"])
    def test_they_are_made_for_each(self, number: int, letter: str, above: str, below: str, whole: int) -> None:
        assert Made.living == ["around", "below", "above"]
        assert below.startswith("class's below ")
        assert above.endswith(f" on {below}")
        self.seen.append((above, below, whole))
        assert number < 3

    def test_all_were_different(self) -> None:
        for kind in (0, 1):
            assert len({names[kind] for names in self.seen}) == 3
        assert len({whole for *_, whole in self.seen}) == 1
        assert Made.living == ["around"]


@pytest.fixture
def words() -> Iterator[list[str]]:
    written: list[str] = []
    yield written
    assert "bad" not in written


def test_a_fixture_that_fails_is_a_failure_of_its_case(request: pytest.FixtureRequest, words: list[str]) -> None:
    @for_each("word", ["good", "bad", "better"])
    def test(word: str, words: list[str]) -> None:
        assert words == []
        words.append(word)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.support.failures._ends_after", None)  # as without -x
        message = failure_of(test, request=request, words=words)
    assert message.startswith("1 of 3 cases failed: bad\n")
    assert "assert 'bad' not in ['bad']" in message


@for_each("number", range(3))
def test_a_case_has_fixtures_of_its_own(
    number: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    assert "BARNABAS_NUMBER" not in os.environ
    monkeypatch.setenv("BARNABAS_NUMBER", str(number))
    print(number)
    assert capsys.readouterr().out == f"{number}\n"
    print(number)
    logging.getLogger(__name__).warning("case %d", number)
    assert caplog.messages == [f"case {number}"]


@for_each(("most", "seen"), [(1, [0, 1]), (2, [0, 1, 2]), (9, [0, 1, 2, 3])])
def test_maxfail_ends_the_test(most: int, seen: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "_ends_after", most)
    ran = []

    @for_each("number", range(4))
    def failing(number: int) -> None:
        ran.append(number)
        assert number == 0

    message = failure_of(failing)
    assert ran == seen
    assert message.startswith(f"{min(most, 3)} of {len(seen)} cases failed: 1")
    assert message.count("AssertionError") + message.count("E   assert") == min(most, 3)


def test_what_ends_the_test_is_not_kept() -> None:
    seen = []

    @for_each("number", range(3))
    def interrupted(number: int) -> None:
        seen.append(number)
        assert number
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as interrupt:
        interrupted()
    assert seen == [0, 1]
    assert "1 of 2 cases failed: 0\n" in interrupt.value.__notes__[0]


def test_a_timeout_ends_the_test_and_says_in_which_case() -> None:
    seen = []

    @for_each("number", range(3))
    def slow(number: int) -> None:
        seen.append(number)
        pytest.fail("Timeout (>120.0s) from pytest-timeout.")

    with pytest.raises(
        pytest.fail.Exception, match=r"^Timeout \(>120.0s\) from pytest-timeout. It was in the case 0.$"
    ):
        slow()
    assert seen == [0]


def test_what_pytest_fails_is_kept() -> None:
    @for_each("number", range(2))
    def failing(number: int) -> None:
        pytest.fail(f"not {number}")

    message = failure_of(failing)
    assert "2 of 2 cases failed: 0, 1" in message
    assert "not 1" in message


def test_a_skipped_case_is_said_but_hides_no_failure() -> None:
    @for_each("number", range(3))
    def skipping(number: int, broken: int) -> None:
        if number == 1:
            pytest.skip("needs two")
        assert number != broken

    with pytest.raises(pytest.skip.Exception, match=r"1 of 3 cases were skipped: 1: needs two"):
        skipping(broken=9)
    assert failure_of(skipping, broken=2).startswith("1 of 3 cases failed: 2\n")


def test_of_many_failures_all_names_and_some_tracebacks_are_shown() -> None:
    collected = Failures()
    for number in range(MOST_SHOWN + 5):
        with collected.case(f"case {number}"):
            raise ValueError(number)
    message = failure_of(collected.check)
    assert message.count("ValueError: ") == MOST_SHOWN
    assert f"case {MOST_SHOWN + 4}" in message.splitlines()[0]
    assert message.endswith("---- and 5 more")


def test_a_name_that_is_there_twice_hides_nothing() -> None:
    collected = Failures()
    for _ in range(2):
        with collected.case("same"):
            raise ValueError
    assert failure_of(collected.check).startswith("2 of 2 cases failed: same, same (case 2)\n")


def test_a_loop_without_cases_is_a_failure() -> None:
    with pytest.raises(AssertionError, match="no case was run"), Failures():
        pass
