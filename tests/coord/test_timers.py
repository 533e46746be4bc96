"""Timers of the coordinators."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.coord.timers import Timers


def test_timers_are_ordered_by_deadline_then_by_order_of_setting():
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


def test_a_deadline_moved_later_does_not_fire_early():
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


def test_set_if_unset_keeps_an_earlier_deadline():
    timers = Timers()
    timers.set_if_unset("a", 1.0)
    timers.set_if_unset("a", 0.5)
    assert timers.deadline("a") == 1.0
