"""KIP-1071: the sticky task assignor, on random groups that change and on a few fixed ones.

BARNABAS_EXAMPLES sets the number of examples.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.coord.groups.streams.assignor import MemberSpec, Spec, SubtopologySpec, assign
from barnabas.coord.groups.streams.tasks import Task, Tasks
from tests.support.volume import how_many

EXAMPLES = how_many("BARNABAS_EXAMPLES", 40)


def spec(processes: list[int], subtopologies: list[tuple[int, bool]], **more: Any) -> Spec:
    """Numbers of members by process, and of tasks by subtopology, with state or not."""
    members = {f"p{p}-m{m}": MemberSpec(f"p{p}") for p, count in enumerate(processes) for m in range(count)}
    return Spec(members, {str(i): SubtopologySpec(*each) for i, each in enumerate(subtopologies)}, **more)


def after(before: Spec, assigned: dict[str, Tasks], **changed: Any) -> Spec:
    """The same group later: the assignment is the previous one."""
    members = {name: member._replace(before=assigned.get(name, Tasks())) for name, member in before.members.items()}
    return before._replace(**{"members": members, **changed})


def all_tasks(of: Spec) -> set[Task]:
    return {Task(name, n) for name, each in of.subtopologies.items() for n in range(each.task_count)}


def check(of: Spec, assigned: dict[str, Tasks]) -> None:
    """Check the properties of every assignment."""
    assert assigned.keys() == of.members.keys()
    active = Counter(task for tasks in assigned.values() for task in tasks.active)
    assert active == Counter(all_tasks(of))
    by_process: dict[str, Counter[Task]] = {}
    for name, tasks in assigned.items():
        assert not tasks.warmup
        held = by_process.setdefault(of.members[name].process_id, Counter())
        held.update([*tasks.active, *tasks.standby])
    assert all(count == 1 for held in by_process.values() for count in held.values()), "twice in one process"
    standbys = Counter(task for tasks in assigned.values() for task in tasks.standby)
    expected = min(of.standbys, len(by_process) - 1)
    for task in all_tasks(of):
        stateful = of.subtopologies[task.subtopology].is_stateful
        assert standbys[task] == (expected if stateful else 0), task


def counts(assigned: dict[str, Tasks], of: Spec, *, stateful_only: bool = False) -> list[int]:
    return [
        sum(1 for task in tasks.active if not stateful_only or of.subtopologies[task.subtopology].is_stateful)
        for tasks in assigned.values()
    ]


groups = st.builds(
    spec,
    st.lists(st.integers(1, 4), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=4),
    standbys=st.integers(0, 2),
)


@settings(max_examples=EXAMPLES)
@given(groups)
def test_every_task_runs_once_and_evenly(group: Spec) -> None:
    assigned = assign(group)
    check(group, assigned)
    spread = counts(assigned, group)
    assert max(spread) - min(spread) <= 1


@settings(max_examples=EXAMPLES)
@given(groups)
def test_nothing_moves_when_nothing_changes(group: Spec) -> None:
    assigned = assign(group)
    assert assign(after(group, assigned)) == assigned


@settings(max_examples=EXAMPLES)
@given(groups, st.data())
def test_members_come_and_go(group: Spec, data: st.DataObject) -> None:
    """Remaining members keep their tasks up to an even share; the others' tasks are assigned to them."""
    assigned = assign(group)
    later = after(group, assigned)
    members = dict(later.members)
    for name in data.draw(st.lists(st.sampled_from(sorted(members)), unique=True, max_size=len(members) - 1)):
        del members[name]
    for number in range(data.draw(st.integers(0 if members else 1, 3))):
        members[f"new{number}"] = MemberSpec(f"p{number}")
    later = later._replace(members=members)
    moved = assign(later)
    check(later, moved)
    spread = counts(moved, later)
    assert max(spread) - min(spread) <= 1
    stateful = counts(moved, later, stateful_only=True)
    assert max(stateful) - min(stateful) <= 1
    even = min(stateful)
    for name in members.keys() & assigned.keys():
        had = {task for task in assigned[name].active if later.subtopologies[task.subtopology].is_stateful}
        assert len(had & moved[name].active) >= min(len(had), even), f"{name} lost what it might have kept"


@settings(max_examples=EXAMPLES)
@given(groups, st.integers(1, 5))
def test_a_topology_that_grows(group: Spec, more: int) -> None:
    assigned = assign(group)
    grown = {name: each._replace(task_count=each.task_count + more) for name, each in group.subtopologies.items()}
    later = after(group, assigned, subtopologies=grown)
    check(later, assign(later))


def test_tasks_with_state_are_shared_out_evenly_by_themselves() -> None:
    group = spec([1, 1], [(4, False), (4, True)])
    assigned = assign(group)
    assert counts(assigned, group) == [4, 4]
    assert counts(assigned, group, stateful_only=True) == [2, 2]


def test_a_task_goes_where_its_state_is() -> None:
    """When its owner leaves, it is assigned to its standby rather than to a member without the state."""
    group = spec([1, 1, 1], [(3, True)], standbys=1)
    assigned = assign(group)
    (lost,) = assigned["p0-m0"].active
    (heir,) = [name for name, tasks in assigned.items() if lost in tasks.standby]
    later = after(group, assigned)
    members = {name: member for name, member in later.members.items() if name != "p0-m0"}
    assert lost in assign(later._replace(members=members))[heir].active


def test_a_task_goes_where_offsets_tell_of_state() -> None:
    """A restarted member has a new id and no tasks, but reports the offsets on its disk."""
    task = Task("0", 2)
    group = spec([1, 1], [(4, True)])
    members = dict(group.members)
    members["p1-m0"] = members["p1-m0"]._replace(offsets={task: 100})
    assert task in assign(group._replace(members=members))["p1-m0"].active
    members["p0-m0"] = members["p0-m0"]._replace(offsets={task: 200})
    assert task in assign(group._replace(members=members))["p0-m0"].active


def test_a_process_without_room_for_standbys_beside_it() -> None:
    group = spec([3], [(3, True)], standbys=1)
    assert all(not tasks.standby for tasks in assign(group).values())


def test_standbys_are_spread_over_racks() -> None:
    group = spec([1, 1, 1, 1], [(4, True)], standbys=1, tags=("zone",))
    zones = {"p0-m0": "a", "p1-m0": "a", "p2-m0": "b", "p3-m0": "b"}
    members = {name: member._replace(client_tags={"zone": zones[name]}) for name, member in group.members.items()}
    group = group._replace(members=members)
    assigned = assign(group)
    check(group, assigned)
    for name, tasks in assigned.items():
        for task in tasks.active:
            (standby,) = [other for other, theirs in assigned.items() if task in theirs.standby]
            assert zones[standby] != zones[name]


def test_two_tags_are_better_than_one() -> None:
    group = spec([1, 1, 1], [(1, True)], standbys=1, tags=("cluster", "zone"))
    tags = {"p0-m0": ("k1", "a"), "p1-m0": ("k1", "b"), "p2-m0": ("k2", "b")}
    members = {
        name: member._replace(client_tags=dict(zip(("cluster", "zone"), tags[name], strict=True)))
        for name, member in group.members.items()
    }
    members["p0-m0"] = members["p0-m0"]._replace(before=Tasks(frozenset({Task("0", 0)})))
    assert assign(group._replace(members=members))["p2-m0"].standby == {Task("0", 0)}


def test_nobody_has_nothing() -> None:
    assert assign(spec([], [(3, True)])) == {}
