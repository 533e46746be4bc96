"""The topology of a Kafka Streams application: subtopologies, their topics, and copartition groups.

A `Topology` is the content of its record; the first member that joins sends it, and all others must send the same
(KIP-1071). Source: Kafka 4.4 `StreamsTopology`.
"""

from __future__ import annotations

from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING

from barnabas.wire.messages.groups.streams_groups import (
    StreamsGroupDescribeResponseKeyValue,
    StreamsGroupDescribeResponseSubtopology,
    StreamsGroupDescribeResponseTopicInfo,
    StreamsGroupDescribeResponseTopology,
)
from barnabas.wire.messages.records.coordinator_records import (
    StreamsGroupTopologyValue,
    StreamsGroupTopologyValueCopartitionGroup,
    StreamsGroupTopologyValueSubtopology,
    StreamsGroupTopologyValueTopicInfo,
    TopicConfig,
)

if TYPE_CHECKING:
    from barnabas.wire.messages.groups.streams_groups import (
        StreamsGroupHeartbeatRequestSubtopology,
        StreamsGroupHeartbeatRequestTopicInfo,
        StreamsGroupHeartbeatRequestTopology,
    )


class Topology:
    """One version of an application's topology; equal to another with the same content."""

    def __init__(self, value: StreamsGroupTopologyValue) -> None:
        self.value = value
        self.epoch = value.epoch
        self.subtopologies = {each.subtopology_id: each for each in value.subtopologies}

    @classmethod
    def from_request(cls, topology: StreamsGroupHeartbeatRequestTopology) -> Topology:
        """The topology of a request; lists are sorted, so that equal topologies compare equal."""
        subtopologies = sorted(topology.subtopologies, key=lambda each: each.subtopology_id)
        return cls(
            StreamsGroupTopologyValue(
                epoch=topology.epoch, subtopologies=[_subtopology(each) for each in subtopologies]
            )
        )

    @cached_property
    def required_topics(self) -> frozenset[str]:
        """Every topic that must exist before a task can run."""
        return frozenset(
            topic
            for each in self.subtopologies.values()
            for topic in [
                *each.source_topics,
                *(info.name for info in each.repartition_source_topics),
                *(info.name for info in each.state_changelog_topics),
            ]
        )

    @cached_property
    def readers(self) -> dict[str, str]:
        """The topics that tasks read, with the subtopology of the tasks."""
        return {
            topic: subtopology_id
            for subtopology_id, each in self.subtopologies.items()
            for topic in [*each.source_topics, *(info.name for info in each.repartition_source_topics)]
        }

    def describe(self) -> StreamsGroupDescribeResponseTopology:
        """The topology in a StreamsGroupDescribe response."""
        return StreamsGroupDescribeResponseTopology(
            epoch=self.epoch,
            subtopologies=[
                StreamsGroupDescribeResponseSubtopology(
                    subtopology_id=each.subtopology_id,
                    source_topics=sorted(each.source_topics),
                    repartition_sink_topics=sorted(each.repartition_sink_topics),
                    state_changelog_topics=[_described(info) for info in each.state_changelog_topics],
                    repartition_source_topics=[_described(info) for info in each.repartition_source_topics],
                )
                for each in self.subtopologies.values()
            ],
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topology) and self.value == other.value

    __hash__ = None  # type: ignore[assignment]


def is_stateful(subtopology: StreamsGroupTopologyValueSubtopology) -> bool:
    """Whether its tasks have changelogs; only such tasks have standbys."""
    return bool(subtopology.state_changelog_topics)


def _subtopology(requested: StreamsGroupHeartbeatRequestSubtopology) -> StreamsGroupTopologyValueSubtopology:
    """Copartition groups have indexes into the lists of topics, so these lists keep their order."""
    return StreamsGroupTopologyValueSubtopology(
        subtopology_id=requested.subtopology_id,
        source_topics=list(requested.source_topics),
        source_topic_regex=list(requested.source_topic_regex),
        state_changelog_topics=sorted(map(_topic_info, requested.state_changelog_topics), key=attrgetter("name")),
        repartition_sink_topics=sorted(requested.repartition_sink_topics),
        repartition_source_topics=[_topic_info(info) for info in requested.repartition_source_topics],
        copartition_groups=[
            StreamsGroupTopologyValueCopartitionGroup(
                source_topics=list(group.source_topics),
                source_topic_regex=list(group.source_topic_regex),
                repartition_source_topics=list(group.repartition_source_topics),
            )
            for group in requested.copartition_groups
        ],
    )


def _topic_info(requested: StreamsGroupHeartbeatRequestTopicInfo) -> StreamsGroupTopologyValueTopicInfo:
    return StreamsGroupTopologyValueTopicInfo(
        name=requested.name,
        partitions=requested.partitions,
        replication_factor=requested.replication_factor,
        topic_configs=sorted(
            (TopicConfig(key=each.key, value=each.value) for each in requested.topic_configs), key=attrgetter("key")
        ),
    )


def _described(info: StreamsGroupTopologyValueTopicInfo) -> StreamsGroupDescribeResponseTopicInfo:
    return StreamsGroupDescribeResponseTopicInfo(
        name=info.name,
        partitions=info.partitions,
        replication_factor=info.replication_factor,
        topic_configs=[
            StreamsGroupDescribeResponseKeyValue(key=each.key, value=each.value) for each in info.topic_configs
        ],
    )
