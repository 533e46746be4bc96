"""Pages of records of one or several partitions, merged by time, forwards or backwards from given positions.

A page is read in rounds. A round reads a range of offsets of each partition that is not at its bound, keeps the wanted
records, and merges them by timestamp; the order of each partition is kept. What was not taken is read again later, so
a page is described by the positions it begins and ends at, and the next page needs no memory of this one.

Every page is bounded: in records, in bytes that are read, and in time. So a scan of a large topic with a filter is a
sequence of pages, each of which says how far it came; the caller asks for the next one, or does not (that is the stop
button). Without a filter the merge is strict: a record is taken only if no partition may have one that comes earlier.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from time import monotonic

from barnabas.client.cluster import Cluster
from barnabas.client.errors import ResponseTooLarge, TimedOut
from barnabas.console.messages.criteria import Matcher
from barnabas.console.messages.found_records import (
    ABORTED,
    CONTROL,
    MAX_KEPT_BYTES,
    FoundRecord,
    found_record,
    unreadable_batch,
)
from barnabas.console.messages.starts import Positions, Span
from barnabas.console.messages.stored_batches import StoredBatches, read_ranges
from barnabas.wire.batches.compression import MAX_DECOMPRESSED_SIZE
from barnabas.wire.batches.records import MAX_INT32, BatchView, Record, iter_record_fields
from barnabas.wire.errors import CorruptRecord, RecordsTooLarge

FIRST_SCAN_OFFSETS = 20_000
"""Offsets that the first round of a scan reads, of all partitions together; later rounds read more."""
MOST_SCAN_OFFSETS = 200_000
ROUND_BYTES = 64 * 1024 * 1024
"""A round backwards that reads more than this is begun again with fewer records."""
PAGE_BYTES = 256 * 1024 * 1024
KEPT_BYTES = 32 * 1024 * 1024
"""Of the keys and values of a page; after that they are cut to `SHORT_BYTES`."""
SHORT_BYTES = 4 * 1024
LARGEST_ANSWER_BYTES = 20 * 1024 * 1024
"""Of a broker, and of a batch decompressed, that the console's own process reads: a larger one would stop its pages."""
WAIT_S = 1.0
"""A round forwards has at least this time."""
PATIENCE_S = 20.0
"""A page without any progress for so long fails."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What is wanted. `limit` is the most records; `seconds` the longest time; `backwards`: before the positions.

    Without `shows_control`, control records and records of aborted transactions are left out where `committed_only`,
    and control records otherwise.
    """

    topic: str
    positions: Mapping[int, int]
    limit: int
    backwards: bool
    seconds: float = 5.0
    committed_only: bool = False
    shows_control: bool = False
    is_whole: bool = False
    """Keys and values are not cut."""


@dataclass(slots=True)
class Page:
    """Records, in the order of reading, and the range of offsets of each partition that they are from.

    `low` and `high` are the positions of the next page backwards and forwards. `remaining` offsets lie beyond the page
    in its direction. `ended_by`: limit, end, time or size. `unusable`: records that the filter could not be used on.
    """

    records: list[FoundRecord] = field(default_factory=list)
    low: Positions = field(default_factory=dict)
    high: Positions = field(default_factory=dict)
    scanned: int = 0
    size: int = 0
    remaining: int = 0
    ended_by: str = "end"
    unusable: int = 0


def read_page(cluster: Cluster, span: Span, request: PageRequest, matcher: Matcher) -> Page:
    """Read a page of the partitions in `request.positions`.

    Errors: KafkaError, NotFound, TimedOut, Unreachable; ResponseTooLarge if a batch is, also decompressed, larger than
    the cluster is limited to.
    """
    return _PageReader(cluster, span, request, matcher).read()


@dataclass(slots=True)
class _Part:
    """A partition in a round: the range to read, the wanted records of it, and how far they go in the direction."""

    first: int
    end: int
    reached: int
    records: deque[FoundRecord]
    is_full: bool = False


class _PageReader:
    """Reads one page."""

    def __init__(self, cluster: Cluster, span: Span, request: PageRequest, matcher: Matcher) -> None:
        self.cluster = cluster
        self.span = span
        self.request = request
        self.matcher = matcher
        self.positions = span.clamped(request.positions)
        self.page = Page(low=dict(self.positions), high=dict(self.positions))
        self.started = monotonic()
        self.deadline = self.started + request.seconds
        self.patience = self.started + max(PATIENCE_S, request.seconds)
        self.round_offsets = FIRST_SCAN_OFFSETS if matcher.selects else request.limit * max(1, len(self.positions))
        self.kept_bytes = 0
        self.largest_batch = min(cluster.max_frame_bytes, MAX_DECOMPRESSED_SIZE)

    def read(self) -> Page:
        """Read rounds until a bound is reached."""
        page = self.page
        while not (end := self._end()):
            if monotonic() > self.patience:
                raise TimedOut(f"no record could be read in {monotonic() - self.started:.0f} s")
            parts = self._read_round([partition for partition in self.positions if self._distance(partition)])
            if parts is not None:
                self._merge(parts)
                for partition, part in parts.items():
                    self._move(partition, part)
                self._plan_next_round()
        page.ended_by = end
        page.unusable = self.matcher.unusable
        page.remaining = sum(self._distance(partition) for partition in self.positions)
        return page

    def _end(self) -> str:
        """Which bound is reached; empty if none is."""
        page = self.page
        if not any(self._distance(partition) for partition in self.positions):
            return "end"
        if len(page.records) >= self.request.limit:
            return "limit"
        if page.size > PAGE_BYTES and page.scanned:
            return "size"
        return "time" if page.scanned and monotonic() >= self.deadline else ""

    def _distance(self, partition: int) -> int:
        """The offsets between a partition's position and its bound."""
        position = self.positions[partition]
        return position - self.span.first[partition] if self.request.backwards else self.span.end[partition] - position

    def _plan_next_round(self) -> None:
        """Twice as many offsets, but not more than there is time for, as far as the rounds before tell."""
        now = monotonic()
        rate = self.page.scanned / max(now - self.started, 0.001)
        in_time = int(rate * max(self.deadline - now, 0.05))
        self.round_offsets = max(min(2 * self.round_offsets, MOST_SCAN_OFFSETS, in_time), len(self.positions), 100)

    # --- one round

    def _read_round(self, partitions: list[int]) -> dict[int, _Part] | None:
        """Read a range of each partition; None if it has to be tried again with fewer offsets."""
        parts = self._new_parts(partitions, max(1, self.round_offsets // len(partitions)))
        ranges = {partition: (part.first, part.end) for partition, part in parts.items()}
        backwards = self.request.backwards
        is_divisible = any(part.end - part.first > 1 for part in parts.values())
        size = covered = 0
        until = self.patience if backwards else max(self.deadline, monotonic() + WAIT_S)
        for stored in read_ranges(self.cluster, self.request.topic, ranges, self.span.stable, until):
            size += stored.size
            covered += stored.reached - stored.first
            self.page.size += stored.size
            part = parts[stored.partition]
            if not part.is_full:
                self._collect(part, stored)
            if backwards and size > ROUND_BYTES and is_divisible:
                wanted = sum(end - first for first, end in ranges.values())
                if size * (wanted - covered) > 2 * ROUND_BYTES * covered:  # as much again is still to come
                    self.round_offsets = max(len(partitions), min(covered * ROUND_BYTES // (2 * size), wanted // 2))
                    return None
            if not backwards and (all(part.is_full for part in parts.values()) or size > ROUND_BYTES):
                break
        for part in parts.values():
            if backwards:
                self._turn_round(part)
        return parts

    def _new_parts(self, partitions: list[int], share: int) -> dict[int, _Part]:
        parts: dict[int, _Part] = {}
        for partition in partitions:
            position = self.positions[partition]
            if self.request.backwards:
                first = max(position - share, self.span.first[partition])
                # The last records of the range are those that come first.
                parts[partition] = _Part(first, position, first, deque(maxlen=self.request.limit))
            else:
                end = min(position + share, self.span.end[partition])
                parts[partition] = _Part(position, end, position, deque())
        return parts

    def _turn_round(self, part: _Part) -> None:
        """Put what was read into the order of reading backwards; a range whose end was not read is not used."""
        if part.reached < part.end:
            part.records.clear()
            part.reached = part.end
            return
        is_limited = len(part.records) == self.request.limit
        part.reached = part.records[0].offset if is_limited else part.first
        part.records = deque(reversed(part.records))

    def _collect(self, part: _Part, stored: StoredBatches) -> None:
        """Keep the wanted records of fetched batches."""
        shows_control, committed_only = self.request.shows_control, self.request.committed_only
        for batch, state in stored.batches:
            if (state == CONTROL or (state == ABORTED and committed_only)) and not shows_control:
                continue
            try:
                self._collect_batch(part, stored, batch, state)
            except CorruptRecord as error:
                if isinstance(error, RecordsTooLarge) and self.largest_batch < MAX_DECOMPRESSED_SIZE:
                    raise ResponseTooLarge(str(error)) from None
                kept = part.records[-1].offset + 1 if part.records else 0
                first = max(batch.base_offset, stored.first, kept)
                part.records.append(unreadable_batch(stored.partition, first, batch, state, error))
            if part.is_full:
                return
        part.reached = max(part.reached, stored.reached)

    def _collect_batch(self, part: _Part, stored: StoredBatches, batch: BatchView, state: str) -> None:
        topic, partition, first, end = self.request.topic, stored.partition, stored.first, stored.end
        matches, limit = self.matcher.matches, 0 if self.request.backwards else self.request.limit
        for fields in iter_record_fields(batch, self.largest_batch):
            offset, timestamp, key, value, headers, _ = fields
            if not matches(topic, partition, offset, timestamp, key, value, headers) or not first <= offset < end:
                continue
            part.records.append(self._found(partition, Record(*fields), batch, state))
            if len(part.records) == limit:
                part.reached = offset + 1
                part.is_full = True
                return

    def _found(self, partition: int, record: Record, batch: BatchView, state: str) -> FoundRecord:
        """The record as it is kept: cut more when the page has many bytes."""
        kept_bytes = MAX_KEPT_BYTES if self.kept_bytes < KEPT_BYTES else SHORT_BYTES
        if self.request.is_whole:
            kept_bytes = MAX_INT32
        kept = found_record(partition, record, batch, state, kept_bytes)
        self.kept_bytes += len(kept.value or b"") + len(kept.key or b"")
        return kept

    # --- merging

    def _merge(self, parts: dict[int, _Part]) -> None:
        """Move the records of a round to the page, in the order of time, up to the limit."""
        page, is_strict = self.page, not self.matcher.selects
        sign = -1 if self.request.backwards else 1
        heads = [(sign * part.records[0].timestamp, partition) for partition, part in parts.items() if part.records]
        heapify(heads)
        waits = is_strict and any(
            not part.records and self._has_more(partition, part) for partition, part in parts.items()
        )
        while heads and not waits and len(page.records) < self.request.limit:
            _, partition = heads[0]
            part = parts[partition]
            page.records.append(part.records.popleft())
            if part.records:
                heapreplace(heads, (sign * part.records[0].timestamp, partition))
            else:
                heappop(heads)
                waits = is_strict and self._has_more(partition, part)

    def _has_more(self, partition: int, part: _Part) -> bool:
        """Whether the partition has records beyond the round, which may come before those of others."""
        bound = self.span.first[partition] if self.request.backwards else self.span.end[partition]
        return part.reached != bound

    def _move(self, partition: int, part: _Part) -> None:
        """Set the position: behind what was taken, or as far as was read."""
        before = self.positions[partition]
        backwards = self.request.backwards
        position = part.reached if not part.records else part.records[0].offset + (1 if backwards else 0)
        self.positions[partition] = position
        (self.page.low if backwards else self.page.high)[partition] = position
        self.page.scanned += abs(position - before)
