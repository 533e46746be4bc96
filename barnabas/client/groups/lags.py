"""The lag of a group in each partition, and in all."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.groups.consumer_groups import committed_offsets
from barnabas.client.groups.share_groups import share_offsets
from barnabas.client.groups.views import GroupView, MemberView
from barnabas.client.offsets import TopicPartition, end_offsets
from barnabas.terminal.plural import plural

SHARE = "share"


class Lag(NamedTuple):
    """A partition with a committed offset (of a share group: a start offset) or a member of the group."""

    topic: str
    partition: int
    committed: int | None
    end: int | None
    lag: int | None
    member: str | None
    client: str | None
    host: str | None


def lags_of(cluster: Cluster, view: GroupView) -> list[Lag]:
    """A row for each partition with a committed offset or a member."""
    readers: dict[TopicPartition, list[MemberView]] = {}
    for member in view.members:
        for partition in member.partitions:
            readers.setdefault(partition, []).append(member)
    committed, known = _committed(cluster, view)
    partitions = sorted(committed.keys() | readers.keys())
    ends = _ends(cluster, partitions)
    return [
        Lag(
            *partition,
            committed.get(partition),
            ends.get(partition),
            known.get(partition, _difference(committed.get(partition), ends.get(partition))),
            _together([reader.member_id for reader in readers.get(partition, [])]),
            _together([reader.client_id for reader in readers.get(partition, [])]),
            _together([reader.client_host for reader in readers.get(partition, [])]),
        )
        for partition in partitions
    ]


def total_lag(lags: list[Lag]) -> int:
    """The sum over the partitions whose lag is known."""
    return sum(row.lag for row in lags if row.lag is not None)


def headline(view: GroupView, lags: list[Lag]) -> str:
    """A group in one line: state, members, assignor, total lag."""
    members = len(view.members)
    kind = "" if view.group_type == "classic" else f"{view.group_type} "
    return (
        f"{kind}group {view.group_id}: {view.state}, {members} {plural('member', members)}, "
        f"assignor {view.assignor or '-'}, total lag {total_lag(lags)}"
    )


def _committed(cluster: Cluster, view: GroupView) -> tuple[dict[TopicPartition, int | None], dict[TopicPartition, int]]:
    """The committed or start offset of each partition, and the lags that the broker itself knows (share groups)."""
    if view.group_type != SHARE:
        return {**committed_offsets(cluster, view.group_id)}, {}
    shared = share_offsets(cluster, view.group_id)
    starts = {partition: state.start_offset if state.start_offset >= 0 else None for partition, state in shared.items()}
    return starts, {partition: state.lag for partition, state in shared.items() if state.lag >= 0}


def _difference(committed: int | None, end: int | None) -> int | None:
    return None if committed is None or end is None else max(0, end - committed)


def _ends(cluster: Cluster, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    """The end offset of each partition that exists and has a leader."""
    names = sorted({name for name, _ in partitions})
    if not names:
        return {}
    response = cluster.retry(lambda deadline: cluster.metadata(names, deadline))
    led = {
        (topic.name, part.partition_index)
        for topic in response.topics
        for part in topic.partitions
        if part.leader_id >= 0
    }
    return end_offsets(cluster, [partition for partition in partitions if partition in led])


def _together(texts: list[str]) -> str | None:
    """The distinct texts of a partition's members, joined; share groups have several."""
    return ",".join(dict.fromkeys(texts)) or None
