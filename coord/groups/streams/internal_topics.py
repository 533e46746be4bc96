"""Configures a topology over the existing topics: the number of tasks, and the internal topics that are missing.

Repartition topics get as many partitions as the largest topic that is read to write them, copartitioned topics the same
number, changelogs one for each task (KIP-1071). Problems of topics are a status for the members and not an error of
their heartbeat; only a topology that cannot work with any topics is refused
(STREAMS_INVALID_TOPOLOGY). Source: Kafka 4.4 `InternalTopicManager` and its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from barnabas.coord.groups.streams.topology import is_stateful
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.coord.groups.streams.topology import Topology
    from barnabas.coord.groups.topics import Topics
    from barnabas.wire.messages.records.coordinator_records import (
        StreamsGroupTopologyValueCopartitionGroup,
        StreamsGroupTopologyValueSubtopology,
        StreamsGroupTopologyValueTopicInfo,
    )

NAMES_SHOWN = 5
"""Maximum number of topics that a status lists by name."""


class Status(IntEnum):
    """Status codes of StreamsGroupHeartbeat responses."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


class InternalTopic(NamedTuple):
    """A repartition or changelog topic that has to be created."""

    name: str
    partitions: int
    replication_factor: int
    """-1: the broker's default."""
    configs: tuple[tuple[str, str], ...]


class ConfiguredSubtopology(NamedTuple):
    """One subtopology, configured over the present topics."""

    task_count: int
    is_stateful: bool
    topics: Mapping[str, int]
    """The topics that its tasks read, with their number of partitions: task n reads partition n of each."""


class ConfiguredTopology(NamedTuple):
    """A topology, configured over the present topics."""

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] = {}
    missing: tuple[InternalTopic, ...] = ()
    problem: tuple[Status, str] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether tasks can be assigned."""
        return self.problem is None


class _Mismatch(Exception):  # noqa: N818 - a finding about topics, which becomes a status
    """Topics that do not have the partitions that the topology needs."""


def configure(topology: Topology, topics: Topics) -> ConfiguredTopology:
    """Configure the topology. KafkaError STREAMS_INVALID_TOPOLOGY if it cannot work with any topics."""
    missing_sources = _missing(topology, topics)
    if missing_sources:
        detail = f"Source topics {_summary(missing_sources)} are missing."
        return ConfiguredTopology(topology.epoch, problem=(Status.MISSING_SOURCE_TOPICS, detail))
    try:
        counts = _PartitionCounts(topology, topics)
        subtopologies = {name: counts.subtopology(each) for name, each in sorted(topology.subtopologies.items())}
        to_create = counts.to_create()
    except _Mismatch as mismatch:
        return ConfiguredTopology(topology.epoch, problem=(Status.INCORRECTLY_PARTITIONED_TOPICS, str(mismatch)))
    problem = None
    if to_create:
        detail = f"Internal topics are missing: {_summary(topic.name for topic in to_create)}"
        problem = (Status.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(topology.epoch, subtopologies, to_create, problem)


def _missing(topology: Topology, topics: Topics) -> list[str]:
    sources = {name for each in topology.subtopologies.values() for name in each.source_topics}
    return [name for name in sorted(sources) if topics.by_name(name) is None]


def _summary(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = len(ordered) - NAMES_SHOWN
    return ", ".join(ordered[:NAMES_SHOWN]) + (f" and {more} additional topics" if more > 0 else "")


class _PartitionCounts:
    """The present or required number of partitions of every topic of a topology."""

    def __init__(self, topology: Topology, topics: Topics) -> None:
        self._subtopologies = topology.subtopologies
        self._topics = topics
        self._repartition = {
            info.name: info for each in self._subtopologies.values() for info in each.repartition_source_topics
        }
        self._decided = {name: info.partitions for name, info in self._repartition.items() if info.partitions}
        self._follow_writers()
        for each in self._subtopologies.values():
            for group in each.copartition_groups:
                self._make_alike(_names(each, group))

    def of(self, name: str) -> int | None:
        """The required number, else the present one; None if neither is known."""
        decided = self._decided.get(name)
        if decided is not None:
            return decided
        topic = self._topics.by_name(name)
        return None if topic is None or name in self._repartition else topic.partitions

    def subtopology(self, each: StreamsGroupTopologyValueSubtopology) -> ConfiguredSubtopology:
        """One of the subtopologies, with a task for each partition of its largest topic."""
        read = {name: self.of(name) or 0 for name in _read_topics(each)}
        if not read:
            raise KafkaError(
                ErrorCode.STREAMS_INVALID_TOPOLOGY, f"No source topics found for subtopology {each.subtopology_id}"
            )
        return ConfiguredSubtopology(max(read.values()), is_stateful(each), read)

    def to_create(self) -> tuple[InternalTopic, ...]:
        """The internal topics that do not exist; _Mismatch when one exists with other partitions."""
        topics = {
            info.name: _internal(info, count)
            for each in self._subtopologies.values()
            for info, count in self._internal_topics(each)
        }
        for name, topic in sorted(topics.items()):
            existing = self._topics.by_name(name)
            if existing is not None and existing.partitions != topic.partitions:
                raise _Mismatch(
                    f"Existing topic {name} has different number of partitions: "
                    f"expected {topic.partitions}, found {existing.partitions}"
                )
        return tuple(topic for name, topic in sorted(topics.items()) if self._topics.by_name(name) is None)

    def _internal_topics(
        self, each: StreamsGroupTopologyValueSubtopology
    ) -> list[tuple[StreamsGroupTopologyValueTopicInfo, int]]:
        tasks = self.subtopology(each).task_count
        repartition = [(info, self.of(info.name) or 0) for info in each.repartition_source_topics]
        return repartition + [(info, tasks) for info in each.state_changelog_topics]

    def _follow_writers(self) -> None:
        """A repartition topic without a number of partitions: the largest number that its writers read."""
        fixed = set(self._decided)
        has_grown = True
        while has_grown:  # terminates: every number is one of the given ones, and none decreases
            has_grown = False
            for each in self._subtopologies.values():
                count = max((self.of(name) or 0 for name in _read_topics(each)), default=0)
                for sink in each.repartition_sink_topics:
                    if sink in self._repartition and sink not in fixed and count > self._decided.get(sink, 0):
                        self._decided[sink] = count
                        has_grown = True
        undecided = sorted(name for name in self._repartition if name not in self._decided)
        if undecided:
            raise KafkaError(
                ErrorCode.STREAMS_INVALID_TOPOLOGY,
                f"The number of partitions of repartition topics {_summary(undecided)} cannot be told: "
                "no subtopology writes to them, or only such as read them.",
            )

    def _make_alike(self, names: set[str]) -> None:
        """Joined topics: repartition topics get the number of the others, or the largest among them."""
        internal = {name for name in names if name in self._repartition}
        fixed = {name for name in internal if self._repartition[name].partitions}
        count = self._count_in_common((names - internal) or fixed, internal)
        for name in sorted(internal):
            if name in fixed and self._decided[name] != count:
                raise _Mismatch(
                    f"Number of partitions [{self._decided[name]}] of repartition topic [{name}] "
                    f"doesn't match number of partitions [{count}] of the source topic."
                )
            self._decided[name] = count

    def _count_in_common(self, external: set[str], internal: set[str]) -> int:
        counts = {name: self.of(name) or 0 for name in sorted(external)}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{name}={count}" for name, count in counts.items())
            raise _Mismatch(f"Following topics do not have the same number of partitions: [{{{listed}}}]")
        return max(counts.values(), default=max((self.of(name) or 0 for name in internal), default=0))


def _read_topics(each: StreamsGroupTopologyValueSubtopology) -> list[str]:
    return [*each.source_topics, *(info.name for info in each.repartition_source_topics)]


def _names(each: StreamsGroupTopologyValueSubtopology, group: StreamsGroupTopologyValueCopartitionGroup) -> set[str]:
    """The topics of a copartition group, which has indexes into the subtopology's lists."""
    try:
        return {
            *(each.source_topics[place] for place in group.source_topics),
            *(each.repartition_source_topics[place].name for place in group.repartition_source_topics),
        }
    except IndexError:
        raise KafkaError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"A copartition group of subtopology {each.subtopology_id} names a topic that it does not have.",
        ) from None


def _internal(info: StreamsGroupTopologyValueTopicInfo, count: int) -> InternalTopic:
    configs = tuple((each.key, each.value) for each in info.topic_configs)
    return InternalTopic(info.name, count, info.replication_factor or -1, configs)
