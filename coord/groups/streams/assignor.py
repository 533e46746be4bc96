"""The sticky task assignor: assigns active tasks and standby tasks to members (KIP-1071).

Pure: `assign(spec)` assigns every active task to exactly one member, first tasks with state, then those without, each
evenly: a member keeps its tasks as long as that is even; other tasks are assigned where their state is, else to the
least loaded member. Standbys are assigned to processes that do not have the task, first to processes with other client
tags (racks), then to processes that had it, then to the least loaded. A process is one instance of an application; its
threads are members. Source: the behaviour of Kafka 4.4 `StickyTaskAssignor`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from barnabas.coord.groups.streams.tasks import NO_TASKS, Task, Tasks


class MemberSpec(NamedTuple):
    """One member, as input of the assignor."""

    process_id: str
    client_tags: Mapping[str, str] = {}
    before: Tasks = Tasks()
    """Its tasks by the last assignment."""
    offsets: Mapping[Task, int] = {}
    """Offsets of the task states on its disk, which may be of tasks that it does not have."""


class SubtopologySpec(NamedTuple):
    """One subtopology, as input of the assignor."""

    task_count: int
    is_stateful: bool


class Spec(NamedTuple):
    """The whole input of an assignment."""

    members: Mapping[str, MemberSpec]
    subtopologies: Mapping[str, SubtopologySpec]
    standbys: int = 0
    """The number of standbys of each task with state."""
    tags: Sequence[str] = ()
    """The client tags over which standbys are distributed."""


def assign(spec: Spec) -> dict[str, Tasks]:
    """The target assignment of each member."""
    if not spec.members:
        return {}
    board = _Board(spec)
    _assign_active(board, board.stateful, board.stateful_quota)
    _assign_active(board, board.stateless, board.active_quota)
    if spec.standbys:
        _assign_standbys(board)
    return {
        member.member_id: Tasks(frozenset(member.active), frozenset(member.standby), NO_TASKS)
        for process in board.processes.values()
        for member in process.members
    }


class _Quota:
    """An even share: a number for every member, and one more for some."""

    def __init__(self, total: int, members: int) -> None:
        self._base, self._extra = divmod(total, members)

    def has_room(self, count: int) -> bool:
        """Whether a member that has `count` may take one more."""
        return count < self._base or (count == self._base and self._extra > 0)

    def took(self, count: int) -> None:
        """A member has one more and so `count` now."""
        if count == self._base + 1:
            self._extra -= 1


@dataclass(slots=True, eq=False)
class _Member:
    """A member while tasks are assigned."""

    member_id: str
    process: _Process
    active: set[Task] = field(default_factory=set)
    standby: set[Task] = field(default_factory=set)

    @property
    def count(self) -> int:
        """The number of its tasks."""
        return len(self.active) + len(self.standby)


@dataclass(slots=True, eq=False)
class _Process:
    """One instance of the application while tasks are assigned."""

    process_id: str
    tags: Mapping[str, str]
    members: list[_Member] = field(default_factory=list)
    tasks: set[Task] = field(default_factory=set)

    @property
    def load(self) -> float:
        """Tasks per thread."""
        return len(self.tasks) / len(self.members)

    def idlest(self) -> _Member:
        """The member with the fewest tasks."""
        return min(self.members, key=lambda member: member.count)

    def rank(self) -> tuple[int, float, str]:
        """Ordered by the load of the least loaded member, then by tasks per thread."""
        return self.idlest().count, self.load, self.process_id


class _Board:
    """An assignment in progress."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.processes: dict[str, _Process] = {}
        self.runner: dict[Task, _Process] = {}
        self.stateful = list(_tasks(spec, is_stateful=True))
        self.stateless = list(_tasks(spec, is_stateful=False))
        members = len(spec.members)
        active = len(self.stateful) + len(self.stateless)
        self.stateful_quota = _Quota(len(self.stateful), members)
        self.active_quota = _Quota(active, members)
        self.total_quota = _Quota(active + len(self.stateful) * spec.standbys, members)
        self.ran: dict[Task, _Member] = {}
        self.previous_holders = self._previous()

    def _previous(self) -> dict[Task, list[_Member]]:
        """The members with state of each task: standbys before others, each with the highest offset first."""
        ranked: dict[Task, list[tuple[bool, int, str, _Member]]] = {}
        for member_id, spec in sorted(self.spec.members.items()):
            process = self.processes.get(spec.process_id)
            if process is None:
                process = self.processes[spec.process_id] = _Process(spec.process_id, spec.client_tags)
            member = _Member(member_id, process)
            process.members.append(member)
            for task in spec.before.active:
                self.ran[task] = member
            copies = spec.before.copies
            for task in copies | spec.offsets.keys():
                entry = (task not in copies, -spec.offsets.get(task, 0), member_id, member)
                ranked.setdefault(task, []).append(entry)
        return {task: [entry[3] for entry in sorted(entries, key=_rank)] for task, entries in ranked.items()}

    def run(self, task: Task, member: _Member) -> None:
        """Assign an active task to a member."""
        member.active.add(task)
        self.runner[task] = member.process
        if self.spec.subtopologies[task.subtopology].is_stateful:
            self.stateful_quota.took(len(member.active))  # tasks without state are assigned later
        self.active_quota.took(len(member.active))
        self._has(task, member)

    def stand_by(self, task: Task, member: _Member) -> None:
        """Assign a standby task to a member."""
        member.standby.add(task)
        self._has(task, member)

    def _has(self, task: Task, member: _Member) -> None:
        member.process.tasks.add(task)
        self.total_quota.took(member.count)


def _rank(entry: tuple[bool, int, str, _Member]) -> tuple[bool, int, str]:
    return entry[:3]


def _tasks(spec: Spec, *, is_stateful: bool) -> Iterator[Task]:
    """Ordered by subtopology and partition, so that a first assignment consists of ranges."""
    for name, subtopology in sorted(spec.subtopologies.items()):
        if subtopology.is_stateful == is_stateful:
            for partition in range(subtopology.task_count):
                yield Task(name, partition)


def _assign_active(board: _Board, tasks: Iterable[Task], quota: _Quota) -> None:
    """Assign each active task: to its last member, else where its state is, else to the least loaded member."""
    homeless = []
    for task in sorted(tasks, key=lambda task: (task.partition, task.subtopology)):
        member = board.ran.get(task)
        if member is not None and quota.has_room(len(member.active)):
            board.run(task, member)
        else:
            homeless.append(task)
    moved = []
    for task in homeless:
        holders = [member for member in board.previous_holders.get(task, ()) if quota.has_room(len(member.active))]
        if holders:
            board.run(task, min(holders, key=lambda member: member.process.load))
        else:
            moved.append(task)
    idlest = _Idlest(board.processes.values())
    for task in sorted(moved):
        process = next(iter(idlest))
        board.run(task, process.idlest())
        idlest.put_back()


class _Idlest:
    """The processes, each time the least loaded one."""

    def __init__(self, processes: Iterable[_Process]) -> None:
        self._heap = [(process.rank(), process) for process in processes]
        heapify(self._heap)
        self._taken: list[_Process] = []

    def __iter__(self) -> Iterator[_Process]:
        while self._heap:
            process = heappop(self._heap)[1]
            self._taken.append(process)
            yield process

    def put_back(self) -> None:
        """Put the processes that were taken back, ordered by their present loads."""
        for process in self._taken:
            heappush(self._heap, (process.rank(), process))
        self._taken.clear()


def _assign_standbys(board: _Board) -> None:
    """Assign standbys: as before, unless another assignment is more even or uses more racks."""
    _place_standbys(board)
    members = [member for process in board.processes.values() for member in process.members]
    fresh = {member.member_id: member.standby for member in members}
    before = None if board.spec.tags else _as_before(board)
    if before is not None and _unevenness(board, before) <= _unevenness(board, fresh):
        for member in members:
            member.standby = before[member.member_id]


def _place_standbys(board: _Board) -> None:
    """First processes with other tags, then processes that had the task, then the least loaded."""
    lacking: list[tuple[Task, int]] = []
    for task in sorted(board.stateful, key=lambda task: (task.partition, task.subtopology), reverse=True):
        placed = _spread(board, task) if board.spec.tags else 0
        for member in [*board.previous_holders.get(task, ()), *_former_runner(board, task)]:
            fits = task not in member.process.tasks and board.total_quota.has_room(member.count)
            if placed < board.spec.standbys and fits:
                board.stand_by(task, member)
                placed += 1
        if placed < board.spec.standbys:
            lacking.append((task, board.spec.standbys - placed))
    idlest = _Idlest(board.processes.values())
    for task, count in sorted(lacking, reverse=True):
        missing = count
        for process in idlest:
            if not missing:
                break
            if task not in process.tasks:
                board.stand_by(task, process.idlest())
                missing -= 1
        idlest.put_back()


def _as_before(board: _Board) -> dict[str, set[Task]] | None:
    """The standbys of the last assignment, if they are still sufficient."""
    needed = set(board.stateful)
    standbys: dict[str, set[Task]] = {}
    processes: dict[Task, list[_Process]] = {task: [process] for task, process in board.runner.items()}
    for process in board.processes.values():
        for member in process.members:
            standbys[member.member_id] = needed & board.spec.members[member.member_id].before.standby
            for task in standbys[member.member_id]:
                processes[task].append(process)
    copies = 1 + min(board.spec.standbys, len(board.processes) - 1)
    are_enough = all(len(processes[task]) == len(set(processes[task])) == copies for task in needed)
    return standbys if are_enough else None


def _unevenness(board: _Board, standbys: Mapping[str, set[Task]]) -> int:
    counts = [
        len(member.active) + len(standbys[member.member_id])
        for process in board.processes.values()
        for member in process.members
    ]
    return max(counts) - min(counts)


def _former_runner(board: _Board, task: Task) -> list[_Member]:
    member = board.ran.get(task)
    return [] if member is None else [member]


def _spread(board: _Board, task: Task) -> int:
    """Assign standbys to processes with client tags that no member with the task has; returns how many."""
    holders = [board.runner[task]]
    former = {
        member.process.process_id: member
        for member in [*board.previous_holders.get(task, ()), *_former_runner(board, task)]
    }
    for placed in range(board.spec.standbys):
        fresh = [
            (-new, process.process_id not in former, process.load, process.process_id)
            for process in board.processes.values()
            if task not in process.tasks and board.total_quota.has_room(process.idlest().count)
            if (new := _new_tags(board.spec.tags, process, holders))
        ]
        if not fresh:
            return placed
        process = board.processes[min(fresh)[3]]
        member = former.get(process.process_id)
        if member is None or not board.total_quota.has_room(member.count):
            member = process.idlest()
        board.stand_by(task, member)
        holders.append(process)
    return board.spec.standbys


def _new_tags(tags: Sequence[str], process: _Process, holders: Sequence[_Process]) -> int:
    """In how many tags a process differs from every process that has the task."""
    return sum(
        1
        for tag in tags
        if tag in process.tags and all(holder.tags.get(tag) != process.tags[tag] for holder in holders)
    )
