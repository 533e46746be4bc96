"""Folding events into a state: every operation, and Python functions."""

from __future__ import annotations

import pytest

from barnabas.spark.errors import MistakeError
from barnabas.spark.frames.fold import fold_of
from tests.support.cases import for_each

EVENTS = [{"a": 3, "s": "m"}, {"a": 1}, {"s": "z"}, {"a": 7, "s": "a"}, {"a": None, "s": None}]
TYPES = {"a": "int", "s": "string", "d": "decimal(5,2)", "st": "struct<x:int>"}


def folded(fields, events=EVENTS, state=None):
    fold = fold_of(fields, "")
    for event in events:
        state = fold(state, event)
    return state


@for_each(
    ("operation", "expected"),
    [
        ("count()", 5), ("count(a)", 3), ("sum(a)", 11), ("min(a)", 1), ("max(a)", 7), ("first(a)", 3),
        ("last(a)", 7), ("min(s)", "a"), ("max(s)", "z"), ("first(s)", "m"), ("last(s)", "a"), (" last ( s ) ", "a"),
    ],
)  # fmt: skip
def test_operations_skip_events_without_the_field(operation, expected):
    assert folded({"x": operation}) == {"x": expected}


def test_an_operation_without_events_has_no_field():
    assert folded({"n": "count()", "x": "last(none)"}) == {"n": 5}


def test_a_fold_does_not_modify_its_arguments():
    before = {"n": 1}
    assert fold_of({"n": "count()"}, "")(before, {}) == {"n": 2}
    assert before == {"n": 1}


def test_folding_in_parts_equals_folding_all():
    fields = {"n": "count()", "s": "sum(a)", "l": "last(s)", "f": "first(s)", "m": "min(a)"}
    for cut in range(len(EVENTS) + 1):
        assert folded(fields, EVENTS[cut:], folded(fields, EVENTS[:cut])) == folded(fields)


@for_each(
    ("operation", "message"),
    [
        ("average(a)", r"\[state.fields\] x is one of count\(column\), .*not 'average\(a\)'"),
        ("a", "is one of"),
        ("sum()", r"sum needs a column, as in sum\(amount\)"),
        ("sum(b)", "there is no column b; there are a, s, d, st"),
        ("sum(s)", "sum needs a number, and s is string"),
        ("min(st)", "which does not support min"),
    ],
)
def test_an_invalid_operation_is_one_sentence(operation, message):
    with pytest.raises(MistakeError, match=message):
        fold_of({"x": operation}, "", TYPES)


def test_numbers_of_any_kind_have_a_sum():
    fold_of({"x": "sum(d)", "y": "sum(a)", "z": "max(s)"}, "", TYPES)


def test_a_python_function(tmp_path, monkeypatch):
    tmp_path.joinpath("own_fold.py").write_text("def fold(state, event):\n    return event.get('keep') and event\n")
    monkeypatch.chdir(tmp_path)
    fold = fold_of({}, "own_fold:fold")
    assert fold(None, {"keep": 1}) == {"keep": 1}
    assert fold({"keep": 1}, {}) is None


@for_each(
    ("function", "message"),
    [
        ("no_such_module:fold", "no_such_module:fold cannot be imported: .*searched in"),
        ("json:no_such", "json has no function no_such"),
        ("json:__doc__", "json has no function __doc__"),
        ("json", "'json' is not a function: write module:function"),
        ("json:", "is not a function"),
        (":dumps", "is not a function"),
        ("broken_fold:fold", "broken_fold:fold cannot be imported: SyntaxError"),
        ("raising_fold:fold", "raising_fold:fold cannot be imported: ZeroDivisionError: division by zero"),
    ],
)
def test_an_invalid_function_is_one_sentence(tmp_path, monkeypatch, function, message):
    tmp_path.joinpath("broken_fold.py").write_text("def fold(:\n")
    tmp_path.joinpath("raising_fold.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MistakeError, match=message) as caught:
        fold_of({}, function)
    assert "\n" not in str(caught.value)
