"""Which records a member acquires with one ShareFetch (KIP-932, acquire modes KIP-1206).

Available records are acquired before new ones. Without a strict limit whole record batches are acquired, so the last
one may exceed `max_records`; ranges begin with record batches and contain at least `batch_size` records. A record that
was delivered half of the allowed times or more may make its consumer fail (a suspect): it is acquired with ever fewer
other records, and alone for its last delivery. Source: Kafka 4.4 `SharePartition.acquire`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import attrgetter
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


class AcquireRequest(NamedTuple):
    """The limits of a member's ShareFetch, and the record batches that were read for it."""

    member_id: str
    max_records: int
    batch_size: int
    is_strict: bool
    """Whether `max_records` is a hard limit (record_limit); otherwise the rest of a batch may exceed it."""
    fetch_offset: int
    batches: Sequence[RecordBatch]
    """Whole batches, read from `fetch_offset` on; the first may begin before it."""
    aborted: Sequence[tuple[int, int]] = ()
    """Ranges of these batches that are not delivered: records of aborted transactions under read_committed."""


class Acquired(NamedTuple):
    """Records that a member has acquired."""

    first: int
    last: int
    delivery_count: int


class Acquisition:
    """One pass over the records read for one member."""

    def __init__(self, window: Window, settings: GroupSettings, request: AcquireRequest, deadline: float) -> None:
        self._window = window
        self._request = request
        self._deadline = deadline
        self._delivery_limit = settings.share_delivery_count_limit
        self._suspect_from = max(2, -(-self._delivery_limit // 2))
        self._remaining = request.max_records
        self._free_locks = settings.share_partition_max_record_locks - len(window)
        self._acquired: list[Acquired] = []

    def run(self) -> list[Acquired]:
        """Acquire records; the ranges acquired, in order."""
        request, window = self._request, self._window
        if request.max_records <= 0 or not request.batches:
            return []
        base, last = request.batches[0].base_offset, request.batches[-1].last_offset
        if last < window.start_offset:
            return []
        if self._free_locks > 0:
            self._remaining = min(self._remaining, self._free_locks)
        else:  # the window is full: only records inside it can be acquired again
            last = min(last, window.end_offset - 1)
            self._remaining = min(self._remaining, window.end_offset - request.fetch_offset)
        if self._remaining <= 0:
            return []
        self._archive_missing(request.fetch_offset, base - 1)
        may_continue = self._acquire_available(max(base, window.start_offset), last)
        if may_continue and self._remaining > 0 and last >= window.end_offset:
            self._acquire_new(last)
        return self._without_aborted() if request.aborted else self._acquired

    def _archive_missing(self, first: int, last: int) -> None:
        """Archive available records in [first, last], which are no longer in the log."""
        if first > last:
            return
        for run in self._window.touching(first, last):
            if run.is_available:
                for part in self._window.within(max(first, run.first), min(last, run.last)):
                    self._window.become(part, RecordState.ARCHIVED)
        self._window.merge(first, last)

    # ---- available records of the window

    def _acquire_available(self, first: int, last: int) -> bool:
        """Acquire available records in [first, last]; whether new records may be acquired too."""
        for run in self._window.touching(first, last):
            if self._remaining <= 0:
                last = min(last, self._last_to_acquire())
            if run.first > last:
                return False
            if not run.is_available:
                continue
            begin, end = max(run.first, first), min(run.last, last)
            is_suspect = run.delivery_count >= self._suspect_from
            if is_suspect:
                if self._acquired:
                    return False
                end = min(end, begin + self._suspect_limit(run) - 1)
            if end - begin >= self._remaining > 0:
                end = min(end, self._last_within(begin, self._remaining))
            for part in self._window.within(begin, end):
                part.delivery_count += 1
                self._acquire(part)
            if is_suspect:
                return False
        return True

    def _last_to_acquire(self) -> int:
        """The last offset to acquire when `max_records` is reached: the end of its batch unless the limit is strict."""
        offset = self._acquired[-1].last
        return offset if self._request.is_strict else self._end_of_batch(offset)

    def _suspect_limit(self, run: Run) -> int:
        """How many records of a run of suspects are acquired together."""
        if self._delivery_limit >= SMALLEST_LIMIT_WITH_LONE_DELIVERY and run.delivery_count >= self._delivery_limit - 1:
            return 1
        first, last = run.batch
        return max(1, (last - first + 1) >> (run.delivery_count - self._suspect_from + 1))

    def _acquire(self, run: Run) -> None:
        run.deadline = self._deadline
        self._window.become(run, RecordState.ACQUIRED, self._request.member_id)
        self._acquired.append(Acquired(run.first, run.last, run.delivery_count))
        self._remaining -= len(run)

    # ---- new records

    def _acquire_new(self, last: int) -> None:
        """Acquire records behind the window, up to `last`, in ranges that begin with record batches."""
        batches = self._request.batches
        at = bisect_left(batches, self._window.end_offset, key=attrgetter("last_offset"))
        first = max(self._window.end_offset, batches[at].base_offset)
        if last - first >= self._remaining:
            last = min(last, self._end_of_batch(first + self._remaining - 1))
        if self._request.is_strict:
            self._add_to_window(first, min(last, first + self._remaining - 1), last)
            return
        for batch in batches[at + 1 :]:
            if batch.base_offset > last:
                break
            if batch.base_offset - first >= self._request.batch_size:
                self._add_to_window(first, batch.base_offset - 1)
                first = batch.base_offset
        self._add_to_window(first, last)

    def _add_to_window(self, first: int, last: int, window_last: int = -1) -> None:
        """Add new records to the window up to `window_last`, and acquire those up to `last`."""
        batch = (first, max(last, window_last))
        run = Run(
            first,
            last,
            RecordState.ACQUIRED,
            1,
            member_id=self._request.member_id,
            deadline=self._deadline,
            batch=batch,
        )
        self._window.append(run)
        self._acquired.append(Acquired(first, last, 1))
        self._remaining -= len(run)
        if last < window_last:  # the rest of a record batch stays available
            self._window.append(Run(last + 1, window_last, RecordState.AVAILABLE, 0, batch=batch))

    def _last_within(self, first: int, count: int) -> int:
        """The last of `count` offsets from `first` on, or the end of its batch unless the limit is strict."""
        offset = first + count - 1
        return offset if self._request.is_strict else self._end_of_batch(offset)

    def _end_of_batch(self, offset: int) -> int:
        batches = self._request.batches
        return max(offset, batches[bisect_right(batches, offset, key=attrgetter("base_offset")) - 1].last_offset)

    # ---- read_committed

    def _without_aborted(self) -> list[Acquired]:
        window = self._window
        for first, last in self._request.aborted:
            for run in window.touching(first, last):
                if run.state is RecordState.ACQUIRED and run.deadline == self._deadline and run.undo is None:
                    for part in window.within(max(first, run.first), min(last, run.last)):
                        window.become(part, RecordState.ARCHIVED)
            window.merge(first, last)
        visible = []
        for acquired in self._acquired:
            for run in window.touching(acquired.first, acquired.last):
                if run.state is RecordState.ACQUIRED:
                    first, last = max(run.first, acquired.first), min(run.last, acquired.last)
                    visible.append(Acquired(first, last, run.delivery_count))
        return visible
