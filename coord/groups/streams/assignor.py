"""The sticky task assignor: which member runs which task, and who keeps copies of state (KIP-1071).

Pure: `assign(spec)` gives every task to exactly one member. Active tasks with state are shared out first, then those
without, each evenly: a member keeps what it had as long as that is even; else a task goes where its state is, else to
the member with the least to do. Standbys go to processes that do not have the task yet, first to such as differ in
their client tags (racks), then to such as had it, then to those with the least to do. A process is one instance of an
application; its threads are members. Source: the behaviour of Kafka 4.4 `StickyTaskAssignor`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from barnabas.coord.groups.streams.tasks import NO_TASKS, Task, Tasks


class MemberSpec(NamedTuple):
    """What the assignor knows of one member."""

    process_id: str
    client_tags: Mapping[str, str] = {}
    before: Tasks = Tasks()
    """What it was to have by the last assignment."""
    offsets: Mapping[Task, int] = {}
    """How far the copies of state on its disk are; tasks it does not have may be among them."""


class SubtopologySpec(NamedTuple):
    """What the assignor knows of one subtopology."""

    task_count: int
    is_stateful: bool


class Spec(NamedTuple):
    """All that an assignment depends on."""

    members: Mapping[str, MemberSpec]
    subtopologies: Mapping[str, SubtopologySpec]
    standbys: int = 0
    """How many standbys each task with state shall have."""
    tags: Sequence[str] = ()
    """The client tags over which standbys are spread."""


def assign(spec: Spec) -> dict[str, Tasks]:
    """What each member shall have; nothing when there are no members."""
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
    """An even share: so many for everybody, and one more for a few."""

    def __init__(self, total: int, members: int) -> None:
        self._base, self._extra = divmod(total, members)

    def has_room(self, count: int) -> bool:
        """Whether a member that has `count` may take one more."""
        return count < self._base or (count == self._base and self._extra > 0)

    def took(self, count: int) -> None:
        """A member has `count` now, one more than before."""
        if count == self._base + 1:
            self._extra -= 1


class _Member:
    """A member while tasks are given out."""

    def __init__(self, member_id: str, process: _Process) -> None:
        self.member_id = member_id
        self.process = process
        self.active: set[Task] = set()
        self.standby: set[Task] = set()

    @property
    def count(self) -> int:
        """How many tasks it has."""
        return len(self.active) + len(self.standby)


class _Process:
    """One instance of the application while tasks are given out."""

    def __init__(self, process_id: str, tags: Mapping[str, str]) -> None:
        self.process_id = process_id
        self.tags = tags
        self.members: list[_Member] = []
        self.tasks: set[Task] = set()

    @property
    def load(self) -> float:
        """Tasks for each thread."""
        return len(self.tasks) / len(self.members)

    def idlest(self) -> _Member:
        """The member with the fewest tasks."""
        return min(self.members, key=lambda member: member.count)

    def rank(self) -> tuple[int, float, str]:
        """Before others in order when it has a member with less to do, or else less to do for each of them."""
        return self.idlest().count, self.load, self.process_id


class _Board:
    """Everything about an assignment in the making."""

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
        self.kept = self._previous()

    def _previous(self) -> dict[Task, list[_Member]]:
        """Who has state of each task: standbys before others, each with the most of it first."""
        ranked: dict[Task, list[tuple[bool, int, str, _Member]]] = {}
        for member_id, told in sorted(self.spec.members.items()):
            process = self.processes.get(told.process_id)
            if process is None:
                process = self.processes[told.process_id] = _Process(told.process_id, told.client_tags)
            member = _Member(member_id, process)
            process.members.append(member)
            for task in told.before.active:
                self.ran[task] = member
            copies = told.before.copies
            for task in copies | told.offsets.keys():
                entry = (task not in copies, -told.offsets.get(task, 0), member_id, member)
                ranked.setdefault(task, []).append(entry)
        return {task: [entry[3] for entry in sorted(found, key=_rank)] for task, found in ranked.items()}

    def run(self, task: Task, member: _Member) -> None:
        """Have a member run a task."""
        member.active.add(task)
        self.runner[task] = member.process
        if self.spec.subtopologies[task.subtopology].is_stateful:
            self.stateful_quota.took(len(member.active))  # tasks without state are given out later
        self.active_quota.took(len(member.active))
        self._has(task, member)

    def stand_by(self, task: Task, member: _Member) -> None:
        """Have a member keep a copy of a task's state."""
        member.standby.add(task)
        self._has(task, member)

    def _has(self, task: Task, member: _Member) -> None:
        member.process.tasks.add(task)
        self.total_quota.took(member.count)


def _rank(entry: tuple[bool, int, str, _Member]) -> tuple[bool, int, str]:
    return entry[:3]


def _tasks(spec: Spec, *, is_stateful: bool) -> Iterator[Task]:
    """By subtopology and partition: that makes a first assignment ranges."""
    for name, subtopology in sorted(spec.subtopologies.items()):
        if subtopology.is_stateful == is_stateful:
            for partition in range(subtopology.task_count):
                yield Task(name, partition)


def _assign_active(board: _Board, tasks: Iterable[Task], quota: _Quota) -> None:
    """Have each task run: where it ran, else where its state is, else where there is least to do."""
    homeless = []
    for task in sorted(tasks, key=lambda task: (task.partition, task.subtopology)):
        member = board.ran.get(task)
        if member is not None and quota.has_room(len(member.active)):
            board.run(task, member)
        else:
            homeless.append(task)
    moved = []
    for task in homeless:
        holders = [member for member in board.kept.get(task, ()) if quota.has_room(len(member.active))]
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
    """The processes, the one with the least to do first, again and again."""

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
        """Put those that came out in place again, by what they have now."""
        for process in self._taken:
            heappush(self._heap, (process.rank(), process))
        self._taken.clear()


def _assign_standbys(board: _Board) -> None:
    """Copies of state: as before, unless another way is more even or puts them into more racks."""
    _place_standbys(board)
    members = [member for process in board.processes.values() for member in process.members]
    anew = {member.member_id: member.standby for member in members}
    before = None if board.spec.tags else _as_before(board)
    if before is not None and _unevenness(board, before) <= _unevenness(board, anew):
        for member in members:
            member.standby = before[member.member_id]


def _place_standbys(board: _Board) -> None:
    """Other racks first, then who had it, then who has least to do."""
    lacking: list[tuple[Task, int]] = []
    for task in sorted(board.stateful, key=lambda task: (task.partition, task.subtopology), reverse=True):
        placed = _spread(board, task) if board.spec.tags else 0
        for member in [*board.kept.get(task, ()), *_former_runner(board, task)]:
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
    """Everybody's standbys of the last assignment, if these are all that is needed now."""
    needed = set(board.stateful)
    found: dict[str, set[Task]] = {}
    processes: dict[Task, list[_Process]] = {task: [process] for task, process in board.runner.items()}
    for process in board.processes.values():
        for member in process.members:
            found[member.member_id] = needed & board.spec.members[member.member_id].before.standby
            for task in found[member.member_id]:
                processes[task].append(process)
    wanted = 1 + min(board.spec.standbys, len(board.processes) - 1)
    are_enough = all(len(processes[task]) == len(set(processes[task])) == wanted for task in needed)
    return found if are_enough else None


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
    """Place standbys on processes with client tags that no holder of the task has; gives how many."""
    holders = [board.runner[task]]
    former = {member.process.process_id: member for member in [*board.kept.get(task, ()), *_former_runner(board, task)]}
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
    """In how many of the tags a process differs from every holder."""
    return sum(
        1
        for tag in tags
        if tag in process.tags and all(holder.tags.get(tag) != process.tags[tag] for holder in holders)
    )
