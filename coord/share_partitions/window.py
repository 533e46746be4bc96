"""The offsets of a share partition that were acquired and are not all finished, as runs of equal records (rule G6).

A window covers [start offset, end offset) without holes. A run is a range of offsets of one batch with equal state,
delivery count, member and deadline. A batch is one run until its records are treated differently; runs that have become
equal again are merged. `finished` counts the records of the window that are in a final state.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from barnabas.coord.machine import check_transition
from barnabas.coord.share_partitions.states import FINISHED, PREDECESSORS, RecordState

if TYPE_CHECKING:
    from barnabas.coord.share_partitions.change import StateChange

NO_MEMBER = ""
NEVER = float("inf")


class Undo(NamedTuple):
    """A transition of a run that is not written yet, and the state and member before it."""

    change: StateChange
    state: RecordState
    member_id: str


class Run:
    """The records from `first` to `last`, which are equal."""

    __slots__ = ("batch", "deadline", "delivery_count", "first", "last", "member_id", "state", "undo")

    def __init__(
        self,
        first: int,
        last: int,
        state: RecordState,
        delivery_count: int,
        *,
        member_id: str = NO_MEMBER,
        deadline: float = NEVER,
        batch: tuple[int, int] | None = None,
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        """The member that has acquired the records."""
        self.deadline = deadline
        """End of the lock, in monotonic seconds."""
        self.batch = (first, last) if batch is None else batch
        """The range that the records were first acquired in."""
        self.undo: Undo | None = None

    def __len__(self) -> int:
        return self.last - self.first + 1

    @property
    def is_available(self) -> bool:
        """Whether these records can be acquired."""
        return self.state is RecordState.AVAILABLE and self.undo is None

    def split(self, offset: int) -> Run:
        """Shorten the run to end before `offset`; return a new run with the records from there on."""
        tail = Run(
            offset,
            self.last,
            self.state,
            self.delivery_count,
            member_id=self.member_id,
            deadline=self.deadline,
            batch=self.batch,
        )
        tail.undo = self.undo
        self.last = offset - 1
        return tail

    def can_merge(self, other: Run) -> bool:
        """Whether the two can be merged into one run."""
        return (
            self.batch is other.batch
            and self.state is other.state
            and self.delivery_count == other.delivery_count
            and self.member_id == other.member_id
            and self.deadline == other.deadline
            and self.undo is other.undo
        )

    def __repr__(self) -> str:
        return f"<{self.first}-{self.last} {self.state} {self.delivery_count} {self.member_id}>"


class Window:
    """The runs from the start offset to the end offset, which is not included."""

    __slots__ = ("_runs", "end_offset", "finished", "start_offset")

    def __init__(self, start_offset: int) -> None:
        self._runs: list[Run] = []
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.finished = 0

    def __len__(self) -> int:
        return self.end_offset - self.start_offset

    def runs(self) -> tuple[Run, ...]:
        """All runs, in order."""
        return tuple(self._runs)

    def touching(self, first: int, last: int) -> list[Run]:
        """The runs that overlap [first, last]."""
        runs = self._runs
        low = bisect_left(runs, first, key=_last)
        high = low
        while high < len(runs) and runs[high].first <= last:
            high += 1
        return runs[low:high]

    def within(self, first: int, last: int) -> list[Run]:
        """The runs of the window inside [first, last]; runs that cross its ends are split first."""
        self._split_at(first)
        self._split_at(last + 1)
        return self.touching(first, last)

    def _split_at(self, offset: int) -> None:
        runs = self._runs
        at = bisect_left(runs, offset, key=_last)
        if at < len(runs) and runs[at].first < offset:
            runs.insert(at + 1, runs[at].split(offset))

    def append(self, run: Run) -> None:
        """Add a run at the end of the window; offsets between the two are not in the log and are archived."""
        if run.first > self.end_offset:
            if self._runs:
                self.append(Run(self.end_offset, run.first - 1, RecordState.ARCHIVED, 0))
            else:
                self.start_offset = run.first
        self._runs.append(run)
        self.end_offset = run.last + 1
        if run.state in FINISHED:
            self.finished += len(run)

    def become(self, run: Run, state: RecordState, member_id: str = NO_MEMBER) -> None:
        """Change the state of a whole run. AssertionError when the table of states does not allow it."""
        check_transition(PREDECESSORS, run.state, state)
        self.finished += len(run) * ((state in FINISHED) - (run.state in FINISHED))
        run.state = state
        run.member_id = member_id

    def restore(self, run: Run, state: RecordState, member_id: str) -> None:
        """Undo the transition of a whole run that could not be written."""
        self.finished += len(run) * ((state in FINISHED) - (run.state in FINISHED))
        run.state = state
        run.member_id = member_id

    def merge(self, first: int, last: int) -> None:
        """Merge equal neighbours among the runs in [first, last] and those next to it."""
        runs = self._runs
        at = max(bisect_left(runs, first, key=_last) - 1, 0)
        while at + 1 < len(runs) and runs[at].first <= last:
            following = runs[at + 1]
            if runs[at].can_merge(following):
                runs[at].last = following.last
                del runs[at + 1]
            else:
                at += 1

    def advance(self) -> None:
        """Move the start past the runs that are finished and written."""
        finished_runs = 0
        for run in self._runs:
            if run.undo is not None or run.state not in FINISHED:
                break
            finished_runs += 1
            self.finished -= len(run)
        if finished_runs:
            del self._runs[:finished_runs]
            self.start_offset = self._runs[0].first if self._runs else self.end_offset

    def drop_below(self, offset: int) -> None:
        """Remove all records below an offset, in any state."""
        if offset <= self.start_offset:
            return
        self._split_at(offset)
        dropped = bisect_left(self._runs, offset, key=_last)
        for run in self._runs[:dropped]:
            if run.state in FINISHED:
                self.finished -= len(run)
        del self._runs[:dropped]
        self.start_offset = offset
        self.end_offset = max(self.end_offset, offset)


def _last(run: Run) -> int:
    return run.last
