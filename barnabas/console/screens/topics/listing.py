"""The list of topics. Sizes, records, policies and groups are asked for the shown rows only.

Sorted by size or records, these are asked of all topics, up to `MAX_SORTED` partitions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial

from barnabas.client.admin.cluster import is_offline, is_under_replicated
from barnabas.client.admin.configs import topic_configs
from barnabas.client.admin.log_dirs import describe_log_dirs
from barnabas.client.admin.topics import list_topics
from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound
from barnabas.client.offsets import end_offsets, start_offsets
from barnabas.console.collector.figures import Figures
from barnabas.console.console import Call
from barnabas.console.failures import unless_refused, unless_unreachable
from barnabas.console.resources import resource
from barnabas.console.tables import Page, TableQuery, paged
from barnabas.console.values import BadInput
from barnabas.wire.messages.metadata import MetadataResponseTopic

OF_SHOWN = ("size", "records")
"""Columns that are known of the shown rows only, unless the list is sorted by them."""
MAX_SORTED = 10_000
COLUMNS = (
    *OF_SHOWN,
    "name",
    "partitions",
    "replication_factor",
    "under_replicated",
    "offline",
    "in_per_s",
    "out_per_s",
)
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
    groups: int = 0
    """Groups that have offsets in it."""


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
    unknown: str = ""
    """Why records, sizes and policies are not known."""


@resource("/topics", template="topics/list.html", summary="The topics of the cluster.")
def list_of_topics(cluster: Cluster, call: Call, query: TopicsQuery) -> Topics:
    """One page; a topic that is deleted meanwhile is left out."""
    rates = call.collector.read(_rates)
    try:
        listed = _listed(cluster, query, rates)
    except NotFound:
        listed = _listed(cluster, query, rates)
    names = {row.name for row in listed.topics.rows}
    groups = call.collector.read(lambda figures, _now_s: _groups(figures, names))
    return replace(listed, topics=listed.topics.map(lambda row: replace(row, groups=groups[row.name])))


def _groups(figures: Figures, names: set[str]) -> Counter[str]:
    """How many groups have offsets in each of these topics."""
    return Counter(name for group in figures.groups.values() for name in names & {topic for topic, _ in group.offsets})


def _rates(figures: Figures, _now_s: float) -> Rates:
    return {name: (topic.in_per_s, topic.out_per_s) for name, topic in figures.topics.items()}


def _listed(cluster: Cluster, query: TopicsQuery, rates: Rates) -> Topics:
    described = [topic for topic in list_topics(cluster) if not topic.error_code]
    chosen = [topic for topic in described if query.internal or not topic.is_internal]
    rows = [_row(topic, rates) for topic in chosen]
    if query.sort in OF_SHOWN:
        partitions = sum(row.partitions for row in rows)
        if partitions > MAX_SORTED:
            raise BadInput(f"sort: {partitions} partitions are too many to be sorted by {query.sort}")
        rows, unknown = unless_unreachable(cluster, partial(_with_sizes, cluster, rows), rows)
    page = paged(rows, query, columns=COLUMNS, search=lambda row: row.name, sort="name")
    if query.sort not in OF_SHOWN:
        shown, unknown = unless_unreachable(cluster, partial(_with_sizes, cluster, page.rows), page.rows)
        page = replace(page, rows=shown)
    names = [row.name for row in page.rows]
    policies: dict[str, str | None] = {}
    if names and not unknown:
        policies = unless_refused(lambda: _policies(cluster, names), {})
    page = page.map(lambda row: replace(row, cleanup_policy=policies.get(row.name)))
    return Topics(page, len(described) - len(chosen), unknown)


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


def _with_sizes(cluster: Cluster, rows: list[ListedTopic]) -> list[ListedTopic]:
    if not rows:
        return rows
    sizes: dict[str, int] = unless_refused(lambda: sizes_of(cluster, [row.name for row in rows]), {})
    records = _records(cluster, rows)
    return [replace(row, size=sizes.get(row.name), records=records.get(row.name)) for row in rows]


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
