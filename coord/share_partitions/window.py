"""The offsets of a share partition that have been given out and are not all done with, as runs of equal records (G6).

A window covers [start offset, end offset) without holes, by runs: neighbouring offsets of one batch that stand alike. A
batch is one run until members treat its records differently, then as many as there are differences, and runs that
have become alike again are joined. `finished` counts the records in the window that nothing follows for.
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
    """A step of a run that is not written yet, and how the run stood before."""

    change: StateChange
    state: RecordState
    member_id: str


class Run:
    """Records from `first` to `last` that stand alike."""

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
        """Who has acquired the records."""
        self.deadline = deadline
        """End of the lock, in monotonic seconds."""
        self.batch = (first, last) if batch is None else batch
        """The range that the records were first given out in."""
        self.undo: Undo | None = None

    def __len__(self) -> int:
        return self.last - self.first + 1

    @property
    def is_free(self) -> bool:
        """Whether a member may be given these records."""
        return self.state is RecordState.AVAILABLE and self.undo is None

    def split(self, offset: int) -> Run:
        """Give up the records from `offset` on: they are the run returned."""
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

    def is_like(self, other: Run) -> bool:
        """Whether the two may be one run."""
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
        """The runs with a record in [first, last]."""
        runs = self._runs
        low = bisect_left(runs, first, key=_last)
        high = low
        while high < len(runs) and runs[high].first <= last:
            high += 1
        return runs[low:high]

    def within(self, first: int, last: int) -> list[Run]:
        """Runs that cover just the records of the window in [first, last]: those that reach across are split."""
        self._split_at(first)
        self._split_at(last + 1)
        return self.touching(first, last)

    def _split_at(self, offset: int) -> None:
        runs = self._runs
        at = bisect_left(runs, offset, key=_last)
        if at < len(runs) and runs[at].first < offset:
            runs.insert(at + 1, runs[at].split(offset))

    def append(self, run: Run) -> None:
        """Add a run at the end offset; behind it where there is nothing between: such offsets count as archived."""
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
        """Take a step of the table of states with a whole run."""
        check_transition(PREDECESSORS, run.state, state)
        self.finished += len(run) * ((state in FINISHED) - (run.state in FINISHED))
        run.state = state
        run.member_id = member_id

    def restore(self, run: Run, state: RecordState, member_id: str) -> None:
        """Take back the step of a whole run that could not be written."""
        self.finished += len(run) * ((state in FINISHED) - (run.state in FINISHED))
        run.state = state
        run.member_id = member_id

    def join(self, first: int, last: int) -> None:
        """Make one of neighbours in [first, last], and next to it, that stand alike."""
        runs = self._runs
        at = max(bisect_left(runs, first, key=_last) - 1, 0)
        while at + 1 < len(runs) and runs[at].first <= last:
            following = runs[at + 1]
            if runs[at].is_like(following):
                runs[at].last = following.last
                del runs[at + 1]
            else:
                at += 1

    def advance(self) -> None:
        """Move the start past what is finished and written."""
        done = 0
        for run in self._runs:
            if run.undo is not None or run.state not in FINISHED:
                break
            done += 1
            self.finished -= len(run)
        if done:
            del self._runs[:done]
            self.start_offset = self._runs[0].first if self._runs else self.end_offset

    def drop_below(self, offset: int) -> None:
        """Forget all records below an offset, however they stand."""
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
