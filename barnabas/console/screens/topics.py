"""Topics: the list, and one topic."""

from __future__ import annotations

from dataclasses import dataclass, replace

from barnabas.client.admin.cluster import is_offline, is_under_replicated
from barnabas.client.admin.configs import topic_configs
from barnabas.client.admin.log_dirs import describe_log_dirs
from barnabas.client.admin.topics import describe_topics, list_topics
from barnabas.client.cluster import Cluster
from barnabas.client.offsets import end_offsets, start_offsets
from barnabas.console.resources import resource
from barnabas.console.tables import Page, TableQuery, paged
from barnabas.wire.messages.metadata import MetadataResponseTopic


@dataclass(frozen=True)
class TopicRow:
    """One topic of the list."""

    name: str
    partitions: int
    replication_factor: int
    under_replicated: int
    """Partitions with a replica that is not in sync."""
    offline: int
    """Partitions without a leader."""
    is_internal: bool
    size: int | None = None
    """Bytes of all replicas; None if no broker says."""
    records: int | None = None
    """The offsets between start and end of all partitions."""
    cleanup_policy: str = ""


@dataclass(frozen=True, kw_only=True)
class TopicsQuery(TableQuery):
    """Which topics are shown."""

    internal: bool = False
    """Internal topics too."""


@dataclass(frozen=True)
class Topics:
    """The list of topics."""

    topics: Page[TopicRow]
    hidden: int
    """Internal topics that are not shown."""


@resource("/topics", template="topics/list.html", summary="The topics of the cluster.")
def list_of_topics(cluster: Cluster, query: TopicsQuery) -> Topics:
    """Sizes, records and policies are asked for the shown rows only."""
    described = [topic for topic in list_topics(cluster) if not topic.error_code]
    chosen = [topic for topic in described if query.internal or not topic.is_internal]
    page = paged(
        [_row(topic) for topic in chosen],
        query,
        columns=("name", "partitions", "replication_factor", "under_replicated", "offline"),
        search=lambda row: row.name,
        sort="name",
    )
    return Topics(_with_details(cluster, page), len(described) - len(chosen))


def _row(topic: MetadataResponseTopic) -> TopicRow:
    return TopicRow(
        topic.name or "",
        len(topic.partitions),
        max((len(partition.replica_nodes) for partition in topic.partitions), default=0),
        sum(is_under_replicated(partition) for partition in topic.partitions),
        sum(is_offline(partition) for partition in topic.partitions),
        topic.is_internal,
    )


def _with_details(cluster: Cluster, page: Page[TopicRow]) -> Page[TopicRow]:
    names = [row.name for row in page.rows]
    if not names:
        return page
    sizes: dict[str, int] = {}
    for log_dir in describe_log_dirs(cluster, names):
        for replica in log_dir.replicas:
            sizes[replica.topic] = sizes.get(replica.topic, 0) + replica.size
    policies = {
        name: next((config.value for config in configs if config.name == "cleanup.policy"), None) or ""
        for name, configs in topic_configs(cluster, names).items()
    }
    served = [(row.name, index) for row in page.rows if not row.offline for index in range(row.partitions)]
    starts, ends = start_offsets(cluster, served), end_offsets(cluster, served)
    records: dict[str, int] = {}
    for (name, index), end in ends.items():
        records[name] = records.get(name, 0) + end - starts[name, index]
    return page.map(
        lambda row: replace(
            row,
            size=sizes.get(row.name),
            records=records.get(row.name),
            cleanup_policy=policies.get(row.name, ""),
        )
    )


@dataclass(frozen=True)
class TopicQuery:
    """Which topic is shown."""

    topic: str


@dataclass(frozen=True)
class PartitionRow:
    """One partition."""

    partition: int
    leader: int | None
    replicas: list[int]
    in_sync: list[int]
    start: int | None
    end: int | None


@dataclass(frozen=True)
class Topic:
    """One topic."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: list[PartitionRow]


@resource("/topics/{topic}", template="topics/topic.html", summary="One topic: its partitions and offsets.")
def one_topic(cluster: Cluster, query: TopicQuery) -> Topic:
    """Offsets of partitions without a leader are unknown."""
    described = describe_topics(cluster, [query.topic])[0]
    served = [(query.topic, each.partition_index) for each in described.partitions if not is_offline(each)]
    starts, ends = start_offsets(cluster, served), end_offsets(cluster, served)
    rows = [
        PartitionRow(
            each.partition_index,
            None if is_offline(each) else each.leader_id,
            list(each.replica_nodes),
            list(each.isr_nodes),
            starts.get((query.topic, each.partition_index)),
            ends.get((query.topic, each.partition_index)),
        )
        for each in described.partitions
    ]
    return Topic(query.topic, str(described.topic_id), described.is_internal, rows)
