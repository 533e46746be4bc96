"""Which records a member is given for one ShareFetch (KIP-932; acquire modes KIP-1206; bad records alone).

Records that were given back come before new ones. Without a strict limit whole record batches are given, so that the
last of them may go beyond the wish; ranges begin with record batches and hold at least `batch_size` records. A record
that was delivered half of the allowed times or more is likely to make its consumer fail, so it comes in ever smaller
company, and alone when it is for the last time. Source: Kafka 4.4 `SharePartition.acquire`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas.coord.share_partitions.states import RecordState
from barnabas.coord.share_partitions.window import Run, Window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.coord.groups.settings import GroupSettings

SMALLEST_LIMIT_WITH_LONE_DELIVERY = 3


class RecordBatch(Protocol):
    """A record batch of the log."""

    base_offset: int
    last_offset: int


class Wish(NamedTuple):
    """What a member wants, and what the log has for it."""

    member_id: str
    max_records: int
    batch_size: int
    is_strict: bool
    """Whether `max_records` must not be exceeded (record_limit), or only by what is left of a batch."""
    fetch_offset: int
    batches: Sequence[RecordBatch]
    """What was read from `fetch_offset` on: whole batches, of which the first may begin before it."""
    aborted: Sequence[tuple[int, int]] = ()
    """Ranges of these batches that nobody is to see: records of aborted transactions under read_committed."""


class Acquired(NamedTuple):
    """Records that are a member's from now on."""

    first: int
    last: int
    delivery_count: int


class Acquisition:
    """One pass over the records read for one member."""

    def __init__(self, window: Window, settings: GroupSettings, wish: Wish, deadline: float) -> None:
        self._window = window
        self._wish = wish
        self._deadline = deadline
        self._delivery_limit = settings.share_delivery_count_limit
        self._suspect_from = max(2, -(-self._delivery_limit // 2))
        self._left = wish.max_records
        self._room = settings.share_partition_max_record_locks - len(window)
        self._acquired: list[Acquired] = []

    def run(self) -> list[Acquired]:
        """Lock the records; what was locked, in order."""
        wish, window = self._wish, self._window
        if wish.max_records <= 0 or not wish.batches:
            return []
        base, last = wish.batches[0].base_offset, wish.batches[-1].last_offset
        if last < window.start_offset:
            return []
        if self._room > 0:
            self._left = min(self._left, self._room)
        else:  # the window does not grow any more, what is inside can be given out again
            last = min(last, window.end_offset - 1)
            self._left = min(self._left, window.end_offset - wish.fetch_offset)
        if self._left <= 0:
            return []
        self._archive_missing(wish.fetch_offset, base - 1)
        goes_on = self._again(max(base, window.start_offset), last)
        if goes_on and self._left > 0 and last >= window.end_offset:
            self._new(last)
        return self._without_aborted() if wish.aborted else self._acquired

    def _archive_missing(self, first: int, last: int) -> None:
        """Records that the log does not have any more where they should be."""
        if first > last:
            return
        for run in self._window.touching(first, last):
            if run.is_free:
                for part in self._window.within(max(first, run.first), min(last, run.last)):
                    self._window.become(part, RecordState.ARCHIVED)
        self._window.join(first, last)

    # ---- records that were given back

    def _again(self, first: int, last: int) -> bool:
        """Give out free records of the window; whether there may be more in this answer."""
        for run in self._window.touching(first, last):
            if self._left <= 0:
                last = min(last, self._end_of_answer())
            if run.first > last:
                return False
            if not run.is_free:
                continue
            begin, end = max(run.first, first), min(run.last, last)
            is_suspect = run.delivery_count >= self._suspect_from
            if is_suspect:
                if self._acquired:
                    return False
                end = min(end, begin + self._company(run) - 1)
            if end - begin >= self._left > 0:
                end = min(end, self._last_within(begin, self._left))
            for part in self._window.within(begin, end):
                part.delivery_count += 1
                self._give(part)
            if is_suspect:
                return False
        return True

    def _end_of_answer(self) -> int:
        """How far records are given out that the wish does not cover: to the end of the last batch, unless strict."""
        offset = self._acquired[-1].last
        return offset if self._wish.is_strict else self._end_of_batch(offset)

    def _company(self, run: Run) -> int:
        """How many of a run of suspects are given out together."""
        if self._delivery_limit >= SMALLEST_LIMIT_WITH_LONE_DELIVERY and run.delivery_count >= self._delivery_limit - 1:
            return 1
        first, last = run.batch
        return max(1, (last - first + 1) >> (run.delivery_count - self._suspect_from + 1))

    def _give(self, run: Run) -> None:
        run.deadline = self._deadline
        self._window.become(run, RecordState.ACQUIRED, self._wish.member_id)
        self._acquired.append(Acquired(run.first, run.last, run.delivery_count))
        self._left -= len(run)

    # ---- new records

    def _new(self, last: int) -> None:
        """Give out records behind the window, in ranges that begin with record batches."""
        batches = self._wish.batches
        at = bisect_left(batches, self._window.end_offset, key=_last_offset)
        first = max(self._window.end_offset, batches[at].base_offset)
        if last - first >= self._left:
            last = min(last, self._end_of_batch(first + self._left - 1))
        if self._wish.is_strict:
            self._add(first, min(last, first + self._left - 1), last)
            return
        for batch in batches[at + 1 :]:
            if batch.base_offset > last:
                break
            if batch.base_offset - first >= self._wish.batch_size:
                self._add(first, batch.base_offset - 1)
                first = batch.base_offset
        self._add(first, last)

    def _add(self, first: int, last: int, window_last: int = -1) -> None:
        """Take new records into the window, and give out those up to `last`."""
        batch = (first, max(last, window_last))
        run = Run(
            first,
            last,
            RecordState.ACQUIRED,
            1,
            member_id=self._wish.member_id,
            deadline=self._deadline,
            batch=batch,
        )
        self._window.append(run)
        self._acquired.append(Acquired(first, last, 1))
        self._left -= len(run)
        if last < window_last:  # the rest of a record batch, for the next who asks
            self._window.append(Run(last + 1, window_last, RecordState.AVAILABLE, 0, batch=batch))

    def _last_within(self, first: int, count: int) -> int:
        """The last offset for `count` records from `first` on: of their batch, unless the limit is strict."""
        offset = first + count - 1
        return offset if self._wish.is_strict else self._end_of_batch(offset)

    def _end_of_batch(self, offset: int) -> int:
        batches = self._wish.batches
        return max(offset, batches[bisect_right(batches, offset, key=_base_offset) - 1].last_offset)

    # ---- read_committed

    def _without_aborted(self) -> list[Acquired]:
        window = self._window
        for first, last in self._wish.aborted:
            for run in window.touching(first, last):
                if run.state is RecordState.ACQUIRED and run.deadline == self._deadline and run.undo is None:
                    for part in window.within(max(first, run.first), min(last, run.last)):
                        window.become(part, RecordState.ARCHIVED)
            window.join(first, last)
        visible = []
        for acquired in self._acquired:
            for run in window.touching(acquired.first, acquired.last):
                if run.state is RecordState.ACQUIRED:
                    first, last = max(run.first, acquired.first), min(run.last, acquired.last)
                    visible.append(Acquired(first, last, run.delivery_count))
        return visible


def _base_offset(batch: RecordBatch) -> int:
    return batch.base_offset


def _last_offset(batch: RecordBatch) -> int:
    return batch.last_offset
