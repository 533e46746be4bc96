"""State batches: ranges of offsets with a delivery state and count, sorted and without overlap.

Where two batches contain the same offset, the higher delivery count wins, and with equal counts the higher state.
Contiguous ranges with equal state and count are merged. Offsets below the start offset are removed (rule G6). Source:
Kafka 4.4 `PersisterStateBatchCombiner`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NO_OFFSET = -1


class StateBatch(NamedTuple):
    """The offsets from `first_offset` to `last_offset`, both included."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class BatchFields(Protocol):
    """A state batch in any request, response or record."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


def state_batches(fields: Iterable[BatchFields]) -> list[StateBatch]:
    """The batches of a message, unchanged."""
    return [
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
        for batch in fields
    ]


def combine(batches: Sequence[StateBatch], new: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """Merge `new` batches, in any order, into sorted and disjoint `batches`, from `start_offset` on (-1: all)."""
    combined = list(batches)
    for batch in new:
        _insert(combined, batch)
    if start_offset != NO_OFFSET:
        _prune(combined, start_offset)
    return combined


def _insert(batches: list[StateBatch], new: StateBatch) -> None:
    """Merge one batch with those it overlaps or adjoins. Usually it is behind all of them."""
    if not batches or batches[-1].last_offset + 1 < new.first_offset:
        batches.append(new)
        return
    low = bisect_left(batches, new.first_offset - 1, key=attrgetter("last_offset"))
    high = bisect_right(batches, new.last_offset + 1, lo=low, key=attrgetter("first_offset"))
    batches[low:high] = _overlay(batches[low:high], new)


def _overlay(old_batches: Sequence[StateBatch], new: StateBatch) -> list[StateBatch]:
    out: list[StateBatch] = []
    cursor = new.first_offset  # the first offset of `new` that is not handled yet
    for old in old_batches:
        _add(out, old, old.first_offset, min(old.last_offset, new.first_offset - 1))
        _add(out, new, cursor, min(old.first_offset - 1, new.last_offset))
        first, last = max(old.first_offset, new.first_offset), min(old.last_offset, new.last_offset)
        _add(out, new if _rank(new) > _rank(old) else old, first, last)
        _add(out, old, max(old.first_offset, new.last_offset + 1), old.last_offset)
        cursor = max(cursor, last + 1)
    _add(out, new, cursor, new.last_offset)
    return out


def _add(out: list[StateBatch], batch: StateBatch, first: int, last: int) -> None:
    """Append a range of `batch` unless it is empty; extend the last range when state and count are equal."""
    if first > last:
        return
    if out and out[-1].last_offset + 1 == first and _rank(out[-1]) == _rank(batch):
        out[-1] = out[-1]._replace(last_offset=last)
    else:
        out.append(batch._replace(first_offset=first, last_offset=last))


def _prune(batches: list[StateBatch], start_offset: int) -> None:
    del batches[: bisect_left(batches, start_offset, key=attrgetter("last_offset"))]
    if batches and batches[0].first_offset < start_offset:
        batches[0] = batches[0]._replace(first_offset=start_offset)


def _rank(batch: StateBatch) -> tuple[int, int]:
    return batch.delivery_count, batch.delivery_state
