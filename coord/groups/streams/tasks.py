"""Tasks of a Kafka Streams application, and sets of them (KIP-1071).

A task is one partition of one subtopology. It runs on one member (active); others may keep copies of its state,
permanently (standby) or until they run the task (warm-up). Kafka's messages list tasks by subtopology; here they are
sets, since the order has no meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

L = TypeVar("L")


class Task(NamedTuple):
    """One partition of one subtopology."""

    subtopology: str
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"


TaskSet = frozenset[Task]
NO_TASKS: TaskSet = frozenset()


class TaskList(Protocol):
    """The common fields of all `TaskIds` in messages and records."""

    subtopology_id: str
    partitions: list[int]


class TaskOffset(Protocol):
    """The common fields of all `TaskOffset`s in messages."""

    subtopology_id: str
    partition: int
    offset: int


class Tasks(NamedTuple):
    """The tasks of one member, by role."""

    active: TaskSet = NO_TASKS
    standby: TaskSet = NO_TASKS
    warmup: TaskSet = NO_TASKS

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    @property
    def copies(self) -> TaskSet:
        """Standby and warm-up tasks."""
        return self.standby | self.warmup


class HeldTasks(NamedTuple):
    """The tasks of one member, each active one with the member epoch in which it was assigned."""

    active: Mapping[Task, int] = {}
    standby: TaskSet = NO_TASKS
    warmup: TaskSet = NO_TASKS

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    @property
    def tasks(self) -> Tasks:
        """The same without epochs."""
        return Tasks(frozenset(self.active), self.standby, self.warmup)

    def overlaps(self, tasks: Tasks) -> bool:
        """Whether any of the tasks is among these, in the same role."""
        return not (
            tasks.active.isdisjoint(self.active)
            and tasks.standby.isdisjoint(self.standby)
            and tasks.warmup.isdisjoint(self.warmup)
        )

    def merge(self, other: HeldTasks) -> HeldTasks:
        """The tasks of both."""
        return HeldTasks({**self.active, **other.active}, self.standby | other.standby, self.warmup | other.warmup)

    def from_epoch_zero(self) -> HeldTasks:
        """The same, as if assigned in epoch 0, so that a returning member may commit for them in any epoch."""
        return self._replace(active=dict.fromkeys(self.active, 0))


def read_tasks(lists: Iterable[TaskList] | None) -> TaskSet:
    """The tasks of a list in a message."""
    return frozenset(Task(each.subtopology_id, partition) for each in lists or () for partition in each.partitions)


def read_offsets(offsets: Iterable[TaskOffset]) -> dict[Task, int]:
    """Offsets by task."""
    return {Task(each.subtopology_id, each.partition): each.offset for each in offsets}


def by_subtopology(tasks: Iterable[Task]) -> list[tuple[str, list[int]]]:
    """Subtopologies with their partitions, both in order."""
    partitions: dict[str, list[int]] = {}
    for task in sorted(tasks):
        partitions.setdefault(task.subtopology, []).append(task.partition)
    return list(partitions.items())


def write_tasks(tasks: Iterable[Task], make: type[L]) -> list[L]:
    """Lists of tasks for a message; `make` is its `TaskIds`."""
    return [make(subtopology_id=name, partitions=partitions) for name, partitions in by_subtopology(tasks)]  # type: ignore[call-arg]


def write_epochs(tasks: Mapping[Task, int], name: str, partitions: Sequence[int]) -> list[int]:
    """The epochs of one subtopology's tasks, in the order of `partitions`."""
    return [tasks[Task(name, partition)] for partition in partitions]
