"""The quorum of the controllers, and the log directories of the brokers."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.client.admin.cluster import describe_quorum
from barnabas.client.admin.log_dirs import describe_log_dirs
from barnabas.client.cluster import Cluster
from barnabas.console.resources import resource
from barnabas.console.tables import Page, TableQuery, paged
from barnabas.wire.messages.raft import DescribeQuorumResponseReplicaState

TOPICS_SHOWN = 5
COLUMNS = ("broker", "path", "used", "total", "usable", "replicas")


@dataclass(frozen=True)
class QuorumMember:
    """A voter or an observer."""

    node_id: int
    role: str
    """leader, voter or observer."""
    log_end: int
    lag: int
    """Offsets behind the leader."""
    fetched_ms: int | None
    """When it fetched last; None: never, or the leader itself."""
    caught_up_ms: int | None


@dataclass(frozen=True)
class Quorum:
    """The controllers."""

    leader: int
    epoch: int
    high_watermark: int
    members: list[QuorumMember]


@resource("/cluster/quorum", template="cluster/quorum.html", summary="The quorum: leader, voters, observers.")
def quorum(cluster: Cluster) -> Quorum:
    """As the leader tells it."""
    described = describe_quorum(cluster).topics[0].partitions[0]
    end = max((voter.log_end_offset for voter in described.current_voters), default=described.high_watermark)
    members = [_member(state, described.leader_id, end, "voter") for state in described.current_voters]
    members += [_member(state, described.leader_id, end, "observer") for state in described.observers]
    return Quorum(described.leader_id, described.leader_epoch, described.high_watermark, members)


def _member(state: DescribeQuorumResponseReplicaState, leader: int, end: int, role: str) -> QuorumMember:
    return QuorumMember(
        node_id=state.replica_id,
        role="leader" if state.replica_id == leader else role,
        log_end=state.log_end_offset,
        lag=max(0, end - state.log_end_offset),
        fetched_ms=state.last_fetch_timestamp if state.last_fetch_timestamp > 0 else None,
        caught_up_ms=state.last_caught_up_timestamp if state.last_caught_up_timestamp > 0 else None,
    )


@dataclass(frozen=True)
class TopicSize:
    """A topic in a directory."""

    topic: str
    bytes: int


@dataclass(frozen=True)
class LogDirRow:
    """One log directory."""

    broker: int
    path: str
    error: str | None
    """The error if it is offline."""
    used: int
    """Bytes of its replicas."""
    total: int | None
    """Bytes of its file system; None if the broker does not say."""
    usable: int | None
    replicas: int
    arriving: int
    """Replicas that are moved here."""
    largest: list[TopicSize]


@dataclass(frozen=True, kw_only=True)
class LogDirsQuery(TableQuery):
    """Which directories."""


@dataclass(frozen=True)
class LogDirs:
    """The log directories of the cluster."""

    directories: Page[LogDirRow]


@resource("/cluster/log-dirs", template="cluster/log_dirs.html", summary="The log directories of the brokers.")
def log_dirs(cluster: Cluster, query: LogDirsQuery) -> LogDirs:
    """With the largest topics of each."""
    rows = []
    for described in describe_log_dirs(cluster):
        sizes: dict[str, int] = {}
        for replica in described.replicas:
            sizes[replica.topic] = sizes.get(replica.topic, 0) + replica.size
        largest = sorted(sizes.items(), key=lambda item: -item[1])[:TOPICS_SHOWN]
        rows.append(
            LogDirRow(
                broker=described.broker,
                path=described.path,
                error=described.error,
                used=sum(sizes.values()),
                total=described.total_bytes if described.total_bytes >= 0 else None,
                usable=described.usable_bytes if described.usable_bytes >= 0 else None,
                replicas=len(described.replicas),
                arriving=sum(replica.is_future for replica in described.replicas),
                largest=[TopicSize(topic, size) for topic, size in largest],
            )
        )
    return LogDirs(paged(rows, query, columns=COLUMNS, search=lambda row: f"{row.broker} {row.path}", sort="broker"))
