"""The records that arrive from now on, at most so many a second; what is more is skipped and counted.

A tail reads from given positions. Of what arrives in a step it keeps the newest wanted records that the rate allows, so
that a reader of the page sees the present and memory is bounded. Without a filter only the batches of those are
decompressed; a tail that falls too far behind goes on at the end, also behind records too large for the console's own
process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from time import monotonic

from barnabas.client.cluster import Cluster
from barnabas.client.errors import ResponseTooLarge
from barnabas.client.offsets import TopicPartition, end_offsets
from barnabas.client.reader import Fetched, Reader, with_outcomes
from barnabas.console.messages.criteria import Matcher
from barnabas.console.messages.found_records import (
    NOT_TRANSACTIONAL,
    UNDECIDED,
    FoundRecord,
    found_record,
    unreadable_batch,
)
from barnabas.console.messages.pages import LARGEST_ANSWER_BYTES
from barnabas.wire.batches.records import BatchView, Record, iter_batches, iter_record_fields
from barnabas.wire.errors import CorruptRecord

PER_SECOND = 50
STEP_S = 0.25
KEPT_BYTES = 4096
"""Of a key or value: the list shows less, and the rest is loaded when a record is opened."""
FETCHED_BYTES = 128 * 1024
"""Of a partition at once: every tail has such buffers."""
MOST_BYTES_OF_A_STEP = 16 * 1024 * 1024
MOST_BEHIND = 200_000
"""Records of a partition; a tail that is farther behind goes on at the end."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """What a step of a tail gave: records, how many more were wanted but not shown, and how many were looked at."""

    records: list[FoundRecord]
    skipped: int
    seen: int


def tail(
    cluster: Cluster,
    topic: str,
    positions: Mapping[int, int],
    matcher: Matcher,
    *,
    committed_only: bool,
    per_second: int = PER_SECOND,
) -> Iterator[Arrived]:
    """The records after the positions; a step takes at most about a second. Errors as `Reader`."""
    starts: dict[TopicPartition, int] = {(topic, partition): offset for partition, offset in positions.items()}
    reader = Reader(
        cluster,
        starts,
        committed_only=committed_only,
        on_note=lambda _: None,
        partition_max_bytes=FETCHED_BYTES,
    )
    allowance = float(per_second)
    looked_at = monotonic()
    while True:
        kept: deque[FoundRecord] = deque(maxlen=per_second)
        wanted = seen = size = 0
        until = monotonic() + STEP_S
        behind = 0
        while (now := monotonic()) < until and size < MOST_BYTES_OF_A_STEP:
            try:
                with cluster.limited_to(LARGEST_ANSWER_BYTES):
                    arrived = reader.poll(until - now)
            except ResponseTooLarge:
                behind += _skip_to_end(cluster, reader)
                break
            for fetched in arrived:
                size += len(fetched.batches)
                matched, read = _collect(fetched, topic, matcher, kept)
                wanted += matched
                seen += read
        behind += _catch_up(reader)
        now = monotonic()
        allowance = min(per_second, allowance + (now - looked_at) * per_second)
        looked_at = now
        while len(kept) > allowance:
            kept.popleft()
        allowance -= len(kept)
        yield Arrived(sorted(kept, key=lambda record: record.timestamp), wanted - len(kept) + behind, seen + behind)


def _catch_up(reader: Reader) -> int:
    """Go on at the end of partitions that are too far behind; how many records that skips."""
    skipped = 0
    for position in reader.positions.values():
        behind = position.readable_end - position.offset
        if behind > MOST_BEHIND:
            position.offset = position.readable_end
            skipped += behind
    return skipped


def _skip_to_end(cluster: Cluster, reader: Reader) -> int:
    """Go on at the end of every partition; how many records that skips."""
    skipped = 0
    for partition, end in end_offsets(cluster, list(reader.positions)).items():
        position = reader.positions[partition]
        skipped += max(0, end - position.offset)
        position.offset = max(end, position.offset)
    return skipped


def _collect(fetched: Fetched, topic: str, matcher: Matcher, kept: deque[FoundRecord]) -> tuple[int, int]:
    """Keep the wanted records; how many were wanted, and how many there are."""
    partition, first = fetched.partition[1], fetched.first
    outcomes = with_outcomes(iter_batches(fetched.batches, partial_ok=True), fetched.aborted)
    batches = [
        batch for batch, is_aborted in outcomes if not is_aborted and not batch.is_control and batch.next_offset > first
    ]
    wanted = seen = 0 if matcher.selects else _drop_all_but_the_last(batches, kept.maxlen or 0)
    for batch in batches:
        state = UNDECIDED if batch.is_transactional else NOT_TRANSACTIONAL
        try:
            for fields in iter_record_fields(batch, LARGEST_ANSWER_BYTES):
                if fields[0] < first:
                    continue
                seen += 1
                if matcher.matches(topic, partition, *fields[:5]):
                    wanted += 1
                    kept.append(found_record(partition, Record(*fields), batch, state, KEPT_BYTES))
        except CorruptRecord as error:
            wanted += 1
            kept.append(unreadable_batch(partition, max(batch.base_offset, first), batch, state, error))
    return wanted, seen


def _drop_all_but_the_last(batches: list[BatchView], count: int) -> int:
    """Leave the last batches, which have at least `count` records; how many records the others have."""
    at = len(batches)
    while at > 0 and count > 0:
        at -= 1
        count -= batches[at].record_count
    dropped = sum(batch.record_count for batch in batches[:at])
    del batches[:at]
    return dropped
