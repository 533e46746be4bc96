"""KIP-1071: one step of a member towards its target assignment, on plain values."""

from __future__ import annotations

import pytest

from barnabas.coord.groups.modern.states import MemberState
from barnabas.coord.groups.streams.group import StreamsGroup
from barnabas.coord.groups.streams.member import StreamsMember
from barnabas.coord.groups.streams.reconciliation import Holders, reconciled
from barnabas.coord.groups.streams.tasks import HeldTasks, Task, Tasks
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.coord.groups.streams.streams_driver import tasks
from tests.support.cases import for_each

TASK = Task("1", 0)
ONE = tasks("1_0")
NOTHING = HeldTasks()


def member(name, process="p", *, epoch=5, active=(), standby=(), revoking=NOTHING, state=MemberState.STABLE):
    assigned = HeldTasks(dict.fromkeys(tasks(*active), epoch), tasks(*standby))
    return StreamsMember(
        name,
        process_id=process,
        epoch=epoch,
        previous_epoch=epoch - 1,
        state=state,
        assigned=assigned,
        revoking=revoking,
    )


def step(me, *others, epoch=6, owned=None, active=(), standby=(), warmup=()):
    """The member after a heartbeat, in a group with these others."""
    group = StreamsGroup("g")
    for each in (me, *others):
        group.put_member(each)
    target = Tasks(tasks(*active), tasks(*standby), tasks(*warmup))
    return reconciled(me, epoch, target, Holders(group, me), owned)


def test_nothing_to_do():
    me = member("a", epoch=6, active=["1_0"])
    assert step(me, active=["1_0"]) is me


def test_a_free_task_is_granted_in_the_new_epoch():
    after = step(member("a", active=["1_1"]), active=["1_0", "1_1"])
    assert (after.epoch, after.previous_epoch, after.state) == (6, 5, MemberState.STABLE)
    assert after.assigned.active == {Task("1", 0): 6, Task("1", 1): 5}, "with the epoch that it was assigned in"


def test_a_task_that_goes_is_waited_for():
    me = step(member("a", active=["1_0"]))
    assert (me.epoch, me.state) == (5, MemberState.UNREVOKED)
    assert (me.assigned.tasks, me.revoking.tasks) == (Tasks(), Tasks(ONE))
    assert step(me) is me, "it has not said anything"
    assert step(me, owned=Tasks(ONE)) is me
    after = step(me, owned=Tasks())
    assert (after.epoch, after.state, after.revoking) == (6, MemberState.STABLE, HeldTasks())


def test_a_task_that_the_member_never_had_is_given_up_at_once():
    after = step(member("a", active=["1_0"]), owned=Tasks())
    assert (after.epoch, after.state) == (6, MemberState.STABLE)


@pytest.mark.parametrize("other", [member("b", "q", active=["1_0"]), member("b", "q", revoking=HeldTasks({TASK: 5}))])
def test_a_task_that_another_runs_or_gives_up_is_not_free(other):
    after = step(member("a"), other, active=["1_0"])
    assert (after.epoch, after.state, after.assigned.tasks) == (6, MemberState.UNRELEASED, Tasks())


@for_each("role", ["active", "standby", "warmup"])
@for_each(
    "held",
    [{"active": ["1_0"]}, {"standby": ["1_0"]}, {"revoking": HeldTasks({}, ONE)}, {"revoking": HeldTasks({TASK: 5})}],
)
def test_no_process_has_a_task_twice(role, held):
    """Its threads share one state directory."""
    after = step(member("a"), member("b", **held), **{role: ["1_0"]})
    assert (after.state, after.assigned.tasks) == (MemberState.UNRELEASED, Tasks())


@pytest.mark.parametrize("held", [{"active": ["1_0"]}, {"standby": ["1_0"]}])
def test_another_process_may_keep_a_copy(held):
    after = step(member("a"), member("b", "q", **held), standby=["1_0"])
    assert (after.state, after.assigned.standby) == (MemberState.STABLE, ONE)


def test_a_standby_becomes_active_without_being_given_up():
    after = step(member("a", standby=["1_0"]), active=["1_0"])
    assert (after.state, after.assigned.tasks, after.revoking) == (MemberState.STABLE, Tasks(ONE), HeldTasks())


def test_a_standby_is_kept_until_the_task_is_free():
    me, runner = member("a", standby=["1_0"]), member("b", "q", active=["1_0"])
    waiting = step(me, runner, active=["1_0"])
    assert (waiting.epoch, waiting.state) == (6, MemberState.UNRELEASED)
    assert waiting.assigned.tasks == Tasks(standby=ONE)
    after = step(waiting, active=["1_0"])
    assert (after.state, after.assigned.tasks) == (MemberState.STABLE, Tasks(ONE))


def test_a_standby_is_kept_while_other_tasks_are_given_up():
    me = step(member("a", active=["1_1"], standby=["1_0"]), active=["1_0"])
    assert me.state is MemberState.UNREVOKED
    assert (me.assigned.tasks, me.revoking.tasks) == (Tasks(standby=ONE), Tasks(tasks("1_1")))
    assert step(me, active=["1_0"], owned=Tasks(standby=ONE)).assigned.tasks == Tasks(ONE)


def test_an_active_task_becomes_a_standby_and_stops_running():
    me = step(member("a", active=["1_0"]), standby=["1_0"])
    assert me.state is MemberState.UNREVOKED
    assert (me.assigned.tasks, me.revoking.tasks) == (Tasks(standby=ONE), Tasks(ONE))
    after = step(me, standby=["1_0"], owned=Tasks(standby=ONE))
    assert (after.state, after.assigned.tasks) == (MemberState.STABLE, Tasks(standby=ONE))


def test_a_state_of_a_later_release():
    me = member("a", active=["1_0"], state=MemberState.UNKNOWN)
    with pytest.raises(KafkaError) as refused:
        step(me, owned=Tasks(ONE))
    assert refused.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert step(me, owned=Tasks(), active=["1_1"]).assigned.tasks == Tasks(tasks("1_1"))
