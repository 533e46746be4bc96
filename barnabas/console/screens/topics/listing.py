"""The list of topics. Sizes, records, rates and policies are asked for the shown rows only."""

from __future__ import annotations

from dataclasses import dataclass, replace

from barnabas.client.admin.cluster import is_offline, is_under_replicated
from barnabas.client.admin.configs import topic_configs
from barnabas.client.admin.log_dirs import describe_log_dirs
from barnabas.client.admin.topics import list_topics
from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound
from barnabas.client.offsets import end_offsets, start_offsets
from barnabas.console.collector.figures import Figures
from barnabas.console.console import Call
from barnabas.console.failures import unless_refused
from barnabas.console.resources import resource
from barnabas.console.tables import Page, TableQuery, paged
from barnabas.wire.messages.metadata import MetadataResponseTopic

COLUMNS = ("name", "partitions", "replication_factor", "under_replicated", "offline", "in_per_s", "out_per_s")
Rates = dict[str, tuple[float | None, float | None]]


@dataclass(frozen=True)
class ListedTopic:
    """One topic of the list."""

    name: str
    partitions: int
    replication_factor: int
    under_replicated: int
    """Partitions with a replica that is not in sync."""
    offline: int
    """Partitions without a leader."""
    is_internal: bool
    in_per_s: float | None
    """Messages a second; None until the collector has read the topic twice."""
    out_per_s: float | None
    """Messages a second that groups read."""
    size: int | None = None
    """Bytes of all replicas; None if the user may not ask."""
    records: int | None = None
    """The offsets between start and end of all partitions; None if one has no leader."""
    cleanup_policy: str | None = None


@dataclass(frozen=True, kw_only=True)
class TopicsQuery(TableQuery):
    """Which topics are shown."""

    internal: bool = False
    """Internal topics too."""


@dataclass(frozen=True)
class Topics:
    """The list of topics."""

    topics: Page[ListedTopic]
    hidden: int
    """Internal topics that are not shown."""


@resource("/topics", template="topics/list.html", summary="The topics of the cluster.")
def list_of_topics(cluster: Cluster, call: Call, query: TopicsQuery) -> Topics:
    """One page; a topic that is deleted meanwhile is left out."""
    rates = call.collector.read(_rates)
    try:
        return _listed(cluster, query, rates)
    except NotFound:
        return _listed(cluster, query, rates)


def _rates(figures: Figures, _now_s: float) -> Rates:
    return {name: (topic.in_per_s, topic.out_per_s) for name, topic in figures.topics.items()}


def _listed(cluster: Cluster, query: TopicsQuery, rates: Rates) -> Topics:
    described = [topic for topic in list_topics(cluster) if not topic.error_code]
    chosen = [topic for topic in described if query.internal or not topic.is_internal]
    page = paged(
        [_row(topic, rates) for topic in chosen], query, columns=COLUMNS, search=lambda row: row.name, sort="name"
    )
    return Topics(_with_details(cluster, page), len(described) - len(chosen))


def _row(topic: MetadataResponseTopic, rates: Rates) -> ListedTopic:
    name = topic.name or ""
    in_per_s, out_per_s = rates.get(name, (None, None))
    return ListedTopic(
        name,
        len(topic.partitions),
        max((len(partition.replica_nodes) for partition in topic.partitions), default=0),
        sum(is_under_replicated(partition) for partition in topic.partitions),
        sum(is_offline(partition) for partition in topic.partitions),
        topic.is_internal,
        in_per_s,
        out_per_s,
    )


def _with_details(cluster: Cluster, page: Page[ListedTopic]) -> Page[ListedTopic]:
    names = [row.name for row in page.rows]
    if not names:
        return page
    sizes: dict[str, int] = unless_refused(lambda: sizes_of(cluster, names), {})
    policies: dict[str, str | None] = unless_refused(lambda: _policies(cluster, names), {})
    records = _records(cluster, page.rows)
    return page.map(
        lambda row: replace(
            row,
            size=sizes.get(row.name),
            records=records.get(row.name),
            cleanup_policy=policies.get(row.name),
        )
    )


def sizes_of(cluster: Cluster, names: list[str]) -> dict[str, int]:
    """The bytes of all replicas of topics."""
    sizes = dict.fromkeys(names, 0)
    for log_dir in describe_log_dirs(cluster, names):
        for replica in log_dir.replicas:
            sizes[replica.topic] += replica.size
    return sizes


def _policies(cluster: Cluster, names: list[str]) -> dict[str, str | None]:
    return {
        name: next((config.value for config in configs if config.name == "cleanup.policy"), None)
        for name, configs in topic_configs(cluster, names).items()
    }


def _records(cluster: Cluster, rows: list[ListedTopic]) -> dict[str, int]:
    served = [(row.name, index) for row in rows if not row.offline for index in range(row.partitions)]
    starts, ends = start_offsets(cluster, served), end_offsets(cluster, served)
    records: dict[str, int] = {}
    for (name, index), end in ends.items():
        records[name] = records.get(name, 0) + end - starts[name, index]
    return records
