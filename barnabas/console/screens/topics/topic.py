"""One topic: its partitions, the groups that read it, and what it is configured to."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.client.admin.cluster import is_offline, is_under_replicated
from barnabas.client.admin.configs import topic_configs
from barnabas.client.admin.log_dirs import partition_sizes
from barnabas.client.admin.topics import describe_topics
from barnabas.client.cluster import Cluster
from barnabas.client.offsets import TopicPartition, end_offsets, start_offsets
from barnabas.console.collector.figures import Figures
from barnabas.console.console import Call
from barnabas.console.failures import unless_refused
from barnabas.console.resources import resource
from barnabas.console.tables import Page, TableQuery, paged
from barnabas.wire.messages.metadata import MetadataResponsePartition
from barnabas.wire.types import uuid_to_text

COLUMNS = ("partition", "leader", "start", "end", "records", "size")
CONSUMERS_MAX = 200
SHOWN_CONFIGS = ("cleanup.policy", "retention.ms", "retention.bytes", "min.insync.replicas", "max.message.bytes")
"""Keys that the page of a topic shows beside those that are set."""


@dataclass(frozen=True, kw_only=True)
class TopicQuery(TableQuery):
    """Which topic is shown, and which of its partitions."""

    topic: str


@dataclass(frozen=True)
class PartitionRow:
    """One partition."""

    partition: int
    leader: int | None
    """None: no broker leads it."""
    replicas: list[int]
    in_sync: list[int]
    offline: list[int]
    """Replicas whose broker or directory does not serve them."""
    start: int | None
    end: int | None
    records: int | None
    """The offsets between start and end."""
    size: int | None
    """Bytes of the largest replica."""


@dataclass(frozen=True)
class Consumer:
    """A group that has offsets in the topic."""

    group: str
    kind: str
    state: str
    partitions: int
    lag: int | None


@dataclass(frozen=True)
class Setting:
    """A config key of the topic."""

    key: str
    value: str | None
    is_set: bool
    """Set for the topic, not a default."""


@dataclass(frozen=True)
class Topic:
    """One topic."""

    name: str
    topic_id: str
    is_internal: bool
    replication_factor: int
    under_replicated: int
    leaderless: int
    records: int
    size: int | None
    in_per_s: float | None
    out_per_s: float | None
    partitions: Page[PartitionRow]
    consumers: list[Consumer]
    """The groups that read it, at most 200, the largest lag first."""
    settings: list[Setting]


@resource("/topics/{topic}", template="topics/topic.html", summary="One topic: partitions, consumers, settings.")
def one_topic(cluster: Cluster, call: Call, query: TopicQuery) -> Topic:
    """Offsets of partitions without a leader are unknown."""
    name = query.topic
    described = describe_topics(cluster, [name])[0]
    served = [(name, each.partition_index) for each in described.partitions if not is_offline(each)]
    starts, ends = start_offsets(cluster, served), end_offsets(cluster, served)
    sizes: dict[TopicPartition, int] = unless_refused(lambda: partition_sizes(cluster, [name]), {})
    rows = [_row(name, each, starts, ends, sizes) for each in described.partitions]
    rates = call.collector.read(lambda figures, _: figures.topics.get(name))
    return Topic(
        name=name,
        topic_id=uuid_to_text(described.topic_id),
        is_internal=described.is_internal,
        replication_factor=max((len(row.replicas) for row in rows), default=0),
        under_replicated=sum(is_under_replicated(each) for each in described.partitions),
        leaderless=sum(is_offline(each) for each in described.partitions),
        records=sum(row.records or 0 for row in rows),
        size=sum(sizes.values()) if sizes else None,
        in_per_s=None if rates is None else rates.in_per_s,
        out_per_s=None if rates is None else rates.out_per_s,
        partitions=paged(rows, query, columns=COLUMNS, search=lambda row: str(row.partition), sort="partition"),
        consumers=call.collector.read(lambda figures, _: _consumers(figures, name)),
        settings=unless_refused(lambda: _settings(cluster, name), []),
    )


def _row(
    topic: str,
    described: MetadataResponsePartition,
    starts: dict[TopicPartition, int],
    ends: dict[TopicPartition, int],
    sizes: dict[TopicPartition, int],
) -> PartitionRow:
    which = (topic, described.partition_index)
    start, end = starts.get(which), ends.get(which)
    return PartitionRow(
        partition=described.partition_index,
        leader=None if is_offline(described) else described.leader_id,
        replicas=list(described.replica_nodes),
        in_sync=list(described.isr_nodes),
        offline=list(described.offline_replicas),
        start=start,
        end=end,
        records=None if start is None or end is None else end - start,
        size=sizes.get(which),
    )


def _consumers(figures: Figures, topic: str) -> list[Consumer]:
    consumers = []
    for group in figures.groups.values():
        partitions = sum(name == topic for name, _ in group.offsets)
        if partitions:
            lags = [lag for (name, _), lag in group.lags.items() if name == topic]
            consumers.append(Consumer(group.group, group.kind, group.state, partitions, sum(lags) if lags else None))
    return sorted(consumers, key=lambda consumer: (-(consumer.lag or 0), consumer.group))[:CONSUMERS_MAX]


def _settings(cluster: Cluster, topic: str) -> list[Setting]:
    return [
        Setting(config.name, None if config.is_sensitive else config.value, config.config_source == 1)
        for config in topic_configs(cluster, [topic])[topic]
        if config.config_source == 1 or config.name in SHOWN_CONFIGS
    ]
