"""`for_each`: a test that runs all its cases, in place of one test for each.

`@for_each("version", range(12))` takes what `@pytest.mark.parametrize` takes, and several can stand above each other.
It is for cases that are cheap and alike: a test costs pytest milliseconds in each process that collects it. All cases
run; the failure names those that failed (`failures.py`). `BARNABAS_CASE=ID` runs the case of that id alone, as a
debugger needs it.

Each case has fixtures of its own, as a test has: fixtures of function scope are set up again for it.
"""

from __future__ import annotations

import enum
import functools
import inspect
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.failures import Failures
from tests.support.fixtures import begin, end

Test = Callable[..., Any]
Ids = Sequence[object | None] | Callable[[Any], object | None] | None
VARIABLE = "BARNABAS_CASE"
REQUEST = "request"
LONGEST_ID = 100
_ATTRIBUTE = "_cases_in_one_test"
_PARAM = type(pytest.param())


@dataclass
class Case:
    """The arguments of one case."""

    id: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class _Axis:
    """What one `for_each` was given. Values are read, and ids made, when the test runs."""

    names: list[str]
    values: Iterable[Any] | Callable[[], Iterable[Any]]
    ids: Ids
    are_tuples: bool

    def cases(self) -> list[Case]:
        values = list(self.values if isinstance(self.values, Iterable) else self.values())
        assert values, f"no values for {', '.join(self.names)}: the test would check nothing"
        return _with_unique_ids([self._case(at, value) for at, value in enumerate(values)])

    def _case(self, at: int, value: Any) -> Case:
        given_id = self.ids[at] if isinstance(self.ids, Sequence) else None
        if isinstance(value, _PARAM):
            assert not value.marks, f"{value} has marks, which no case can have: use parametrize"
            parts, given_id = tuple(value.values), value.id or given_id
        else:
            parts = tuple(value) if self.are_tuples else (value,)
        arguments = dict(zip(self.names, parts, strict=True))
        if given_id is None:
            say = self.ids if callable(self.ids) else lambda _: None
            given_id = "-".join(_said(name, at, part, say(part)) for name, part in arguments.items())
        return Case(str(given_id), arguments)


@dataclass(frozen=True)
class _Cases:
    """A test that runs its cases itself: the function of one case, and the axes of the cases."""

    function: Test
    axes: list[_Axis]

    def all(self) -> list[Case]:
        """Every combination of the axes."""
        return [
            Case("-".join(case.id for case in combined), {k: v for case in combined for k, v in case.arguments.items()})
            for combined in itertools.product(*(axis.cases() for axis in self.axes))
        ]

    def chosen(self) -> list[Case]:
        """All cases, or the one that the variable names."""
        if (requested := os.environ.get(VARIABLE)) is None:
            return self.all()
        chosen = [case for case in self.all() if case.id == requested]
        if not chosen:
            pytest.skip(f"{VARIABLE}: there is no case {requested}")
        return chosen


def for_each(
    names: str | Sequence[str], values: Iterable[Any] | Callable[[], Iterable[Any]], ids: Ids = None
) -> Callable[[Test], Test]:
    """Return a decorator that runs a test with each of the values. Names, values and ids are as for parametrize.

    Values that cost time to make can be a function, which is called when the test runs. No values are a failure.
    """
    listed = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    axis = _Axis(listed, values, ids, are_tuples=not isinstance(names, str) or len(listed) > 1)

    def decorate(test: Test) -> Test:
        inner: _Cases | None = getattr(test, _ATTRIBUTE, None)
        cases = _Cases(test, [axis]) if inner is None else _Cases(inner.function, [*inner.axes, axis])
        return _in_one_test(test, cases)

    return decorate


def cases_of(test: Test) -> list[Case]:
    """The cases of a test with `for_each`; none of another one."""
    cases: _Cases | None = getattr(test, _ATTRIBUTE, None)
    return cases.all() if cases is not None else []


def _in_one_test(test: Test, cases: _Cases) -> Test:
    taken = {name for axis in cases.axes for name in axis.names}
    parameters = inspect.signature(cases.function).parameters
    if missing := taken - set(parameters):
        raise TypeError(f"{cases.function.__name__} does not take {', '.join(sorted(missing))}")
    if inspect.iscoroutinefunction(cases.function):
        raise TypeError(f"{cases.function.__name__}: the fixtures of an async test are made once, use parametrize")

    @functools.wraps(test)
    def run(*args: Any, **fixtures: Any) -> None:
        __tracebackhide__ = True
        request = fixtures[REQUEST] if REQUEST in parameters else fixtures.pop(REQUEST, None)
        chosen = cases.chosen()
        with Failures() as failures:
            for number, case in enumerate(chosen, 1):
                with _kept(failures, case):
                    if request is not None and number > 1:
                        made = begin(request)
                        fixtures |= {name: made[name] for name in fixtures if name in made}
                    if "caplog" in fixtures:
                        fixtures["caplog"].clear()
                    try:
                        cases.function(*args, **fixtures, **case.arguments)
                    finally:
                        if request is not None and number < len(chosen):
                            end(request)

    taken_of_pytest = [parameter for name, parameter in parameters.items() if name not in taken]
    if REQUEST not in parameters:
        taken_of_pytest.append(inspect.Parameter(REQUEST, inspect.Parameter.KEYWORD_ONLY))
    run.__signature__ = inspect.Signature(taken_of_pytest)  # type: ignore[attr-defined]
    setattr(run, _ATTRIBUTE, cases)
    return run


def _kept(failures: Failures, case: Case) -> AbstractContextManager[None]:
    """Keep a failure of the case; raise it if the case was chosen by BARNABAS_CASE, for a debugger."""
    if os.environ.get(VARIABLE) is None:
        return failures.case(case.id)
    failures.count += 1
    return nullcontext()


def _said(name: str, at: int, value: Any, own: object | None) -> str:
    """What an id says of a value: as parametrize, the value itself if it is short, or its name and number."""
    value = value if own is None else own
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if isinstance(value, str):
        text = value.encode("unicode_escape").decode("ascii")
        return text if len(text) <= LONGEST_ID else f"{name}{at}"
    if isinstance(value, int | float | complex | bool | enum.Enum | None):
        return str(value)
    return str(getattr(value, "__name__", f"{name}{at}"))


def _with_unique_ids(cases: list[Case]) -> list[Case]:
    counts = Counter(case.id for case in cases)
    seen: Counter[str] = Counter()
    for case in cases:
        if counts[case.id] > 1:
            seen[case.id] += 1
            case.id = f"{case.id}#{seen[case.id]}"
    return cases
