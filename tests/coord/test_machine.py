"""Timers, results and the placement of keys: what all coordinators share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coord.machine import Moment, Result
from barnabas.coord.partitioning import coordinator_partition, java_hash
from barnabas.coord.timers import Timers
from barnabas.wire.errors import ErrorCode

AT = Moment(0.0, 0)


def test_timers_come_out_by_deadline_then_by_order_of_setting():
    timers = Timers()
    for key, deadline in [("b", 2.0), ("a", 1.0), ("c", 2.0)]:
        timers.set(key, deadline)
    assert timers.next_deadline() == 1.0
    assert [timers.pop_due(5.0) for _ in range(4)] == ["a", "b", "c", None]


def test_nothing_is_due_before_its_deadline():
    timers = Timers()
    timers.set("a", 1.0)
    assert timers.pop_due(0.999) is None
    assert timers.pop_due(1.0) == "a"
    assert timers.next_deadline() is None


def test_a_deadline_moved_later_does_not_fire_at_its_first_moment():
    timers = Timers()
    timers.set("a", 1.0)
    timers.set("a", 3.0)
    assert timers.pop_due(2.0) is None
    assert timers.next_deadline() == 3.0
    assert timers.pop_due(3.0) == "a"


def test_a_deadline_moved_earlier_fires_once():
    timers = Timers()
    timers.set("a", 3.0)
    timers.set("a", 1.0)
    assert timers.pop_due(1.0) == "a"
    assert timers.pop_due(9.0) is None


def test_a_cancelled_key_does_not_fire():
    timers = Timers()
    timers.set("a", 1.0)
    timers.cancel("a")
    assert timers.next_deadline() is None
    assert timers.pop_due(2.0) is None


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 3), st.integers(0, 9)),
        st.tuples(st.just("cancel"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("pop"), st.just(0), st.integers(0, 9)),
    )
)


@given(STEPS)
def test_timers_equal_a_dictionary_of_deadlines(steps):
    timers, model = Timers(), {}
    for step, key, moment in steps:
        if step == "set":
            timers.set(key, float(moment))
            model[key] = float(moment)
        elif step == "cancel":
            timers.cancel(key)
            model.pop(key, None)
        else:
            due = min(model.values(), default=99.0)
            popped = timers.pop_due(float(moment))
            assert (popped is not None) == (due <= moment)
            if popped is not None:
                assert model.pop(popped) == due
        assert timers.next_deadline() == min(model.values(), default=None)
        assert len(timers) == len(model)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 97), ("group", 98629247), ("polygenelubricants", -(2**31)), ("𝄞", 1772394), ("é", 233)],
)
def test_java_hash_is_that_of_java(text, expected):
    assert java_hash(text) == expected


@pytest.mark.parametrize(("key", "partition"), [("group", 98629247 % 50), ("polygenelubricants", 0), ("", 0)])
def test_a_key_is_served_by_the_partition_that_kafka_chooses(key, partition):
    """T1, G2: |hashCode| % partitions, and 0 for the number that has no absolute value."""
    assert coordinator_partition(key, 50) == partition


def test_a_failed_result_answers_with_the_error_where_the_reply_has_a_form_for_it():
    result = Result()
    result.reply("plain", "answer")
    result.reply("erring", "answer", lambda error: f"error {error.value}")

    def undo(at):
        undone = Result()
        undone.reply("undone", at.now_ms)
        return undone

    result.on_failure(undo)
    instead = result.failed(ErrorCode.NOT_COORDINATOR, AT)
    assert [(ticket, message) for ticket, message, _ in instead.replies] == [
        ("plain", "answer"),
        ("erring", "error 16"),
        ("undone", 0),
    ]
    assert not instead.records
