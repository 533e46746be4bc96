"""Where every partition is: a column for each broker, with leaders, replicas in sync, behind and offline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from barnabas.client.admin.cluster import describe_cluster, is_offline
from barnabas.client.admin.reassignments import (
    PREFERRED,
    UNCLEAN,
    Reassignment,
    elect_leaders,
    ongoing,
    reassign,
)
from barnabas.client.admin.topics import describe_topics, list_topics
from barnabas.client.cluster import Cluster
from barnabas.console.failures import unless_refused
from barnabas.console.pages import link
from barnabas.console.resources import Done, action, resource
from barnabas.console.tables import Page, TableQuery, paged
from barnabas.console.values import BadInput
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.metadata import MetadataResponsePartition

State = Literal["all", "under-replicated", "offline", "not-preferred", "moving"]
HERE = "/cluster/partitions"
COLUMNS = ("topic", "partition", "leader")
Index = Annotated[int, msgspec.Meta(ge=0)]


@dataclass(frozen=True, kw_only=True)
class PartitionsQuery(TableQuery):
    """Which partitions are shown."""

    state: State = "all"
    topic: str = ""
    """The partitions of this topic alone."""
    edit: str = ""
    """TOPIC-PARTITION: a partition whose form is shown."""


@dataclass(frozen=True)
class PlacedPartition:
    """One partition, and what each broker has of it."""

    topic: str
    partition: int
    leader: int | None
    replicas: list[int]
    """The first is the preferred leader."""
    in_sync: list[int]
    offline: list[int]
    adding: list[int]
    removing: list[int]
    is_preferred: bool
    """Whether the first replica leads."""

    def cell(self, broker: int) -> str:
        """What a broker has of it: leader, in sync, behind, offline, adding; empty: nothing."""
        if broker not in self.replicas:
            return ""
        if broker == self.leader:
            return "leader"
        if broker in self.offline:
            return "offline"
        if broker in self.in_sync:
            return "in sync"
        return "adding" if broker in self.adding else "behind"


@dataclass(frozen=True)
class Partitions:
    """The partitions of the cluster."""

    brokers: list[int]
    partitions: Page[PlacedPartition]
    edited: PlacedPartition | None


@resource(HERE, template="cluster/partitions.html", summary="Replicas of every partition on every broker.")
def partitions(cluster: Cluster, query: PartitionsQuery) -> Partitions:
    """One page."""
    moves: dict[tuple[str, int], Reassignment] = unless_refused(lambda: ongoing(cluster), {})
    rows = list(_rows(cluster, query.topic, moves))
    brokers = {broker.broker_id for broker in describe_cluster(cluster).brokers}
    brokers |= {replica for row in rows for replica in row.replicas}
    page = paged(
        [row for row in rows if _is_chosen(row, query.state)],
        query,
        columns=COLUMNS,
        search=lambda row: f"{row.topic}-{row.partition}",
    )
    edited = next((row for row in rows if f"{row.topic}-{row.partition}" == query.edit), None)
    return Partitions(sorted(brokers), page, edited)


def _rows(cluster: Cluster, topic: str, moves: dict[tuple[str, int], Reassignment]) -> Iterator[PlacedPartition]:
    for described in describe_topics(cluster, [topic]) if topic else list_topics(cluster):
        for partition in sorted(described.partitions, key=lambda each: each.partition_index):
            yield _row(described.name or "", partition, moves)


def _row(
    topic: str, partition: MetadataResponsePartition, moves: dict[tuple[str, int], Reassignment]
) -> PlacedPartition:
    move = moves.get((topic, partition.partition_index))
    return PlacedPartition(
        topic=topic,
        partition=partition.partition_index,
        leader=None if is_offline(partition) else partition.leader_id,
        replicas=list(partition.replica_nodes),
        in_sync=list(partition.isr_nodes),
        offline=list(partition.offline_replicas),
        adding=move.adding if move else [],
        removing=move.removing if move else [],
        is_preferred=bool(partition.replica_nodes) and partition.replica_nodes[0] == partition.leader_id,
    )


def _is_chosen(row: PlacedPartition, state: State) -> bool:
    return {
        "all": True,
        "under-replicated": row.leader is not None and len(row.in_sync) < len(row.replicas),
        "offline": row.leader is None,
        "not-preferred": not row.is_preferred,
        "moving": bool(row.adding or row.removing),
    }[state]


@dataclass(frozen=True)
class Elect:
    """Which leaders are elected."""

    topic: str = ""
    """Empty: of all topics."""
    partition: Index | None = None
    """None: all of the topic."""
    unclean: bool = False
    """Elect a replica that is not in sync where no other is left: records may be lost."""


@action("/cluster/elect", summary="Have the preferred replicas elected as leaders; or, unclean, any replica.")
def elect(cluster: Cluster, form: Elect) -> Done:
    """An unclean election is for one topic."""
    if form.unclean and not form.topic:
        raise BadInput("topic: an unclean election is for one topic or partition, and loses records")
    chosen = None if not form.topic else _chosen(cluster, form.topic, form.partition)
    failed = elect_leaders(cluster, chosen, UNCLEAN if form.unclean else PREFERRED)
    if failed:
        (topic, index), error = min(failed.items())
        more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
        raise KafkaError(error, f"no leader was elected for {topic}-{index}: {error.name}{more}")
    return Done("The leaders are elected.", link(HERE, topic=form.topic))


@dataclass(frozen=True)
class Reassign:
    """Which brokers a partition gets."""

    topic: str
    partition: Index
    replicas: list[Index] | None = None
    """The brokers, the leader first."""
    brokers: str = ""
    """The same as a text with commas, of a form."""


@action("/cluster/reassign", summary="Give a partition other replicas: they get the records first.")
def reassign_partition(cluster: Cluster, form: Reassign) -> Done:
    """Progress is on the page of the cluster."""
    replicas = form.replicas if form.replicas is not None else _numbers(form.brokers)
    reassign(cluster, {(form.topic, form.partition): replicas})
    where = ", ".join(map(str, replicas))
    return Done(f"{form.topic}-{form.partition} moves to {where}.", link(HERE, topic=form.topic))


@dataclass(frozen=True)
class CancelMoves:
    """Which reassignments are cancelled."""

    topic: str = ""
    """Empty: of all topics."""
    partition: Index | None = None


@action("/cluster/cancel", summary="Cancel reassignments: the replicas stay where they were.")
def cancel(cluster: Cluster, form: CancelMoves) -> Done:
    """All that are under way, or those of a topic or partition."""
    moving = [
        which for which in ongoing(cluster) if form.topic in ("", which[0]) and form.partition in (None, which[1])
    ]
    if moving:
        reassign(cluster, dict.fromkeys(moving))
    count = len(moving)
    return Done(
        f"{count} reassignment{' is' if count == 1 else 's are'} cancelled." if count else "Nothing is on the move.",
        "/cluster",
    )


def _chosen(cluster: Cluster, topic: str, partition: int | None) -> list[tuple[str, int]]:
    known = [each.partition_index for each in describe_topics(cluster, [topic])[0].partitions]
    if partition is not None and partition not in known:
        raise BadInput(f"partition: topic {topic!r} has no partition {partition}")
    return [(topic, index) for index in known if partition in (None, index)]


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise BadInput(f"brokers: must be ids of brokers with commas, the leader first, as 1,2,3; not {text!r}")
    return [int(part) for part in parts]
