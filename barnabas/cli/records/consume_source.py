"""What `consume` reads: the partitions of named or matching topics from given positions, or those of a group's member.

A position outside a partition is moved to its nearest end, and that is said.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import click

from barnabas.cli.options.regex import compile_regex
from barnabas.client.admin.topics import list_topics
from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound
from barnabas.client.groups.consumer import GroupConsumer, Resolve
from barnabas.client.groups.member import GroupMember
from barnabas.client.offsets import READ_COMMITTED, READ_UNCOMMITTED, TopicPartition
from barnabas.client.positions import OffsetSpec, resolve_offset_specs
from barnabas.client.reader import Reader
from barnabas.wire.batches.records import Record

NAMED = 3
"""Partitions that a note names; of more it says how many."""


class Source(Protocol):
    """Where records come from."""

    def records(self, on_idle: Callable[[], None]) -> Iterator[tuple[TopicPartition, Record]]:
        """The records; `on_idle` is called before each wait, and may raise to end."""

    def progress(self) -> tuple[int, int | None]:
        """Offsets that were read, and their number in all if there is an end."""

    def processed(self, partition: TopicPartition, offset: int) -> None:
        """All records of the partition before `offset` were printed."""

    def close(self, commit: bool = True) -> None:
        """Commit what was printed, if wanted, and leave the group, if there is one."""


@dataclass
class Selection:
    """Which records of the partitions: from, to (None: no end), and only committed ones; `note` prints a sentence."""

    start: OffsetSpec
    end: OffsetSpec | None
    committed_only: bool
    note: Callable[[str], None]


def find_topics(cluster: Cluster, topics: Sequence[str], regex: bool) -> list[str]:
    """The names of the topics, or those that match; `NotFound` names what there is not."""
    names: dict[str, None] = {}
    every: list[str] | None = None
    for topic in topics:
        if not (regex or topic.startswith("^")):
            cluster.find_topic(topic)
            names[topic] = None
            continue
        if every is None:
            every = _topic_names(cluster)
        search = compile_regex(topic, "TOPIC").search
        matching = [name for name in every if search(name.encode()) is not None]
        if not matching:
            raise NotFound(f"no topic matches {topic!r}")
        names |= dict.fromkeys(matching)
    return list(names)


def _topic_names(cluster: Cluster) -> list[str]:
    """All topics but internal ones."""
    return [topic.name or "" for topic in list_topics(cluster) if not topic.is_internal]


def find_partitions(
    cluster: Cluster, topics: Sequence[str], indexes: Sequence[int], regex: bool
) -> list[TopicPartition]:
    """The partitions to read. `NotFound` if one does not exist."""
    partitions: list[TopicPartition] = []
    for name in find_topics(cluster, topics, regex):
        count = len(cluster.find_topic(name).leaders)
        for index in indexes:
            if index >= count:
                raise NotFound(f"topic {name!r} has no partition {index}; it has {count}")
        partitions += [(name, index) for index in indexes or range(count)]
    return partitions


class PlainSource:
    """Partitions without a group."""

    def __init__(
        self,
        cluster: Cluster,
        starts: dict[TopicPartition, int],
        ends: dict[TopicPartition, int] | None,
        selection: Selection,
    ) -> None:
        self.starts = starts
        self.ends = ends
        self.reader = Reader(cluster, starts, ends, committed_only=selection.committed_only, on_note=selection.note)

    def records(self, on_idle: Callable[[], None]) -> Iterator[tuple[TopicPartition, Record]]:
        """The records up to the ends."""
        return self.reader.records(on_idle)

    def progress(self) -> tuple[int, int | None]:
        """Offsets that were read, and their number in all if there is an end."""
        done = sum(self.reader.positions[partition].offset - start for partition, start in self.starts.items())
        if self.ends is None:
            return done, None
        return done, sum(max(0, self.ends[partition] - start) for partition, start in self.starts.items())

    def processed(self, partition: TopicPartition, offset: int) -> None:
        """Nothing is committed."""

    def close(self, commit: bool = True) -> None:
        """There is no group to leave."""


def plain_source(cluster: Cluster, partitions: Sequence[TopicPartition], selection: Selection) -> PlainSource:
    """Reads the partitions between the positions of the selection."""
    level = READ_COMMITTED if selection.committed_only else READ_UNCOMMITTED
    moved = Moved()
    ends = None
    if selection.end is not None:
        specs = dict.fromkeys(partitions, selection.end)
        ends = resolve_offset_specs(cluster, specs, isolation_level=level, on_moved=moved.add)
        moved.tell(selection.end, "ends", selection.note)
    moved = Moved()
    starts = resolve_offset_specs(
        cluster, dict.fromkeys(partitions, selection.start), isolation_level=level, on_moved=moved.add
    )
    moved.tell(selection.start, "begins", selection.note)
    return PlainSource(cluster, starts, ends, selection)


class Moved:
    """Collects the partitions whose position was outside, for one sentence for each reason."""

    def __init__(self) -> None:
        self._by_reason: dict[str, list[str]] = {}

    def add(self, partition: TopicPartition, offset: int, why: str) -> None:
        """A position of this partition was moved to `offset`."""
        self._by_reason.setdefault(why, []).append(f"{partition[0]}-{partition[1]} ({offset})")

    def tell(self, spec: OffsetSpec, verb: str, note: Callable[[str], None]) -> None:
        """Say what was moved where."""
        texts = {
            "beyond": f"offset {spec.value} is beyond the end of {{}}; reading {verb} at the end there",
            "before": f"offset {spec.value} is before the first record of {{}}; reading {verb} there",
            "late": f"no record at or after that time is in {{}}; reading {verb} at the end there",
        }
        for why, partitions in self._by_reason.items():
            more = f" and {len(partitions) - NAMED} more" if len(partitions) > NAMED else ""
            note(texts[why].format(", ".join(partitions[:NAMED]) + more))


@dataclass(eq=False)
class GroupSource:
    """The partitions of a member of a group."""

    consumer: GroupConsumer
    member_cluster: Cluster

    def records(self, on_idle: Callable[[], None]) -> Iterator[tuple[TopicPartition, Record]]:
        """The records of the partitions that the member has."""
        return self.consumer.records(on_idle)

    def progress(self) -> tuple[int, int | None]:
        """Records that were read; a rebalance may change how many there are."""
        return self.consumer.read, None

    def processed(self, partition: TopicPartition, offset: int) -> None:
        """To be committed."""
        self.consumer.processed(partition, offset)

    def close(self, commit: bool = True) -> None:
        """Commit and leave."""
        with self.member_cluster:
            self.consumer.close(commit)


def group_source(
    cluster: Cluster,
    member_cluster: Cluster,
    topics: Sequence[str],
    regex: bool,
    selection: Selection,
    group: str,
    instance_id: str | None,
) -> GroupSource:
    """Reads what a member of the group is given; `member_cluster` is for its membership alone."""
    if selection.start.kind not in ("start", "end") or (selection.end is not None and selection.end.kind != "end"):
        raise click.BadParameter(
            "with -g it is beginning or end, for partitions without a committed offset; "
            "'barnabas group seek' moves a group to a position",
            param_hint="-o",
        )
    level = READ_COMMITTED if selection.committed_only else READ_UNCOMMITTED

    def resolve(spec: OffsetSpec) -> Resolve:
        return lambda cluster, partitions: resolve_offset_specs(
            cluster, dict.fromkeys(partitions, spec), isolation_level=level
        )

    selection.note(f"joining group {group}")
    find_topics(cluster, topics, regex)  # a topic that does not exist is a mistake; one that is deleted later is not
    consumer = GroupConsumer(
        cluster,
        GroupMember(member_cluster, group, lambda cluster: find_topics(cluster, topics, regex), instance_id),
        resolve(selection.start),
        None if selection.end is None else resolve(selection.end),
        committed_only=selection.committed_only,
        before_commit=sys.stdout.buffer.flush,
        note=selection.note,
    )
    return GroupSource(consumer, member_cluster)
