"""Where a page of messages begins: newest, oldest, an offset, a time, or a group's committed offsets.

A `Span` has what can be read of each partition; a start gives the offset in each from which pages go on in a direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound
from barnabas.client.groups.consumer_groups import committed_offsets
from barnabas.client.offsets import end_offsets, list_offsets, stable_offsets, start_offsets
from barnabas.client.records.offset_spec import parse_offset_spec

NEWEST, OLDEST, OFFSET, TIME, GROUP = "newest", "oldest", "offset", "time", "group"
STARTS = (NEWEST, OLDEST, OFFSET, TIME, GROUP)

Positions = dict[int, int]
"""An offset for each partition."""


@dataclass(frozen=True, slots=True)
class Span:
    """What can be read of each partition: the first offset, the high watermark, the last stable offset."""

    first: Positions
    end: Positions
    stable: Positions

    def clamped(self, positions: Mapping[int, int]) -> Positions:
        """The positions, each moved into its partition; partitions without one are left out."""
        return {
            partition: min(max(positions[partition], first), self.end[partition])
            for partition, first in self.first.items()
            if partition in positions
        }


def partitions_of(cluster: Cluster, topic: str, requested: Sequence[int]) -> list[int]:
    """The requested partitions, or all of the topic that have a leader. NotFound if one does not exist."""
    leaders = cluster.find_topic(topic).leaders
    for partition in requested:
        if not 0 <= partition < len(leaders):
            raise NotFound(f"topic {topic!r} has no partition {partition}; it has {len(leaders)}")
    return sorted(set(requested)) or [partition for partition, leader in enumerate(leaders) if leader >= 0]


def read_span(cluster: Cluster, topic: str, partitions: Sequence[int], *, committed_only: bool) -> Span:
    """The offsets that can be read now; with `committed_only` they end at the last stable offset."""
    named = [(topic, partition) for partition in partitions]
    first = {index: offset for (_, index), offset in start_offsets(cluster, named).items()}
    stable = {index: offset for (_, index), offset in stable_offsets(cluster, named).items()}
    if committed_only:
        return Span(first, stable, stable)
    return Span(first, {index: offset for (_, index), offset in end_offsets(cluster, named).items()}, stable)


def start_positions(cluster: Cluster, topic: str, span: Span, start: str, at: str) -> Positions:
    """The position in each partition of the span. ValueError with a sentence if `at` is wrong.

    `at` is the offset, the time (ms, seconds, a date, or -1h) or the group. A group without a committed offset in a
    partition starts at its first record; a time after the last record at its end.
    """
    if start == NEWEST:
        return dict(span.end)
    if start == OLDEST:
        return dict(span.first)
    if start == OFFSET:
        if not (at.isascii() and at.isdigit()) or int(at) >= 2**63:
            raise ValueError(f"{at!r} is not an offset")
        return span.clamped(dict.fromkeys(span.first, int(at)))
    if start == TIME:
        times = {(topic, partition): parse_time(at) for partition in span.first}
        offsets = {index: offset for (_, index), offset in list_offsets(cluster, times).items()}
        return span.clamped({index: span.end[index] if offset < 0 else offset for index, offset in offsets.items()})
    if start == GROUP:
        if not at:
            raise ValueError("name the group whose position is wanted")
        committed = committed_offsets(cluster, at)
        return span.clamped({index: committed.get((topic, index), first) for index, first in span.first.items()})
    raise ValueError(f"{start!r} is not a place to start at; there are {', '.join(STARTS)}")


def parse_time(text: str) -> int:
    """A time in ms since 1970: ms (13 digits), seconds (10 digits), a date or time (UTC without a zone), or -1h."""
    try:
        return parse_offset_spec(f"@{text.strip().removeprefix('@')}").value
    except ValueError:
        raise ValueError(
            f"{text!r} is not a time: ms (13 digits), seconds (10 digits), 2026-11-21T09:00 (UTC), or -1h"
        ) from None


# --- positions in addresses


def format_positions(positions: Mapping[int, int]) -> str:
    """`0:123,1:456`."""
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(positions.items()))


def parse_positions(text: str) -> Positions:
    """The positions of `format_positions`. ValueError with a sentence."""
    positions: Positions = {}
    for part in text.split(","):
        partition, _, offset = part.partition(":")
        if not all(number.isascii() and number.isdigit() and len(number) < 20 for number in (partition, offset)):
            raise ValueError(f"{part!r} is not a position such as 0:123 (partition and offset)")
        positions[int(partition)] = int(offset)
    return positions
