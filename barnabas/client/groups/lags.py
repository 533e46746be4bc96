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
    """A partition of a topic that the group has an offset of (a share group: a start offset), or that a member reads.

    What is not known is None: the lag of a partition without a committed offset depends on `auto.offset.reset`.
    """

    topic: str
    partition: int
    committed: int | None
    end: int | None
    lag: int | None
    member: str | None
    client: str | None
    host: str | None


def lags_of(cluster: Cluster, view: GroupView) -> list[Lag]:
    """A row for each partition of the topics with a committed offset or a member."""
    readers: dict[TopicPartition, list[MemberView]] = {}
    for member in view.members:
        for partition in member.partitions:
            readers.setdefault(partition, []).append(member)
    committed, known = _committed(cluster, view)
    ends = _ends(cluster, {topic for topic, _ in committed.keys() | readers.keys()})
    partitions = sorted(committed.keys() | readers.keys() | ends.keys())
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


def total_lag(lags: list[Lag]) -> int | None:
    """The sum over the partitions whose lag is known; None if there are only others."""
    known = [row.lag for row in lags if row.lag is not None]
    return sum(known) if known or not lags else None


def lag_text(lags: list[Lag]) -> str:
    """The total lag for people: `7`, `unknown`, or `7 and unknown of 2 partitions`."""
    total, unknown = total_lag(lags), sum(row.lag is None for row in lags)
    if total is None:
        return "unknown"
    return f"{total}" + (f" and unknown of {unknown} {plural('partition', unknown)}" if unknown else "")


def headline(view: GroupView, lags: list[Lag]) -> str:
    """A group in one line: state, members, assignor, total lag."""
    members = len(view.members)
    kind = "" if view.group_type == "classic" else f"{view.group_type} "
    return (
        f"{kind}group {view.group_id}: {view.state}, {members} {plural('member', members)}, "
        f"assignor {view.assignor or '-'}, total lag {lag_text(lags)}"
    )


def _committed(cluster: Cluster, view: GroupView) -> tuple[dict[TopicPartition, int | None], dict[TopicPartition, int]]:
    """The committed or start offset of each partition, and the lags that the broker itself knows (share groups)."""
    if view.group_type != SHARE:
        return {**committed_offsets(cluster, view.group_id)}, {}
    shared = share_offsets(cluster, view.group_id)
    starts = {partition: state.start_offset if state.start_offset >= 0 else None for partition, state in shared.items()}
    return starts, {partition: state.lag for partition, state in shared.items() if state.lag >= 0}


def _difference(committed: int | None, end: int | None) -> int | None:
    if committed is None:
        return 0 if end == 0 else None  # there never was a record
    return None if end is None else max(0, end - committed)


def _ends(cluster: Cluster, topics: set[str]) -> dict[TopicPartition, int]:
    """The end offset of each partition of these topics that has a leader."""
    if not topics:
        return {}
    response = cluster.retry(lambda deadline: cluster.metadata(sorted(topics), deadline))
    led = [
        (topic.name or "", part.partition_index)
        for topic in response.topics
        for part in topic.partitions
        if part.leader_id >= 0
    ]
    return end_offsets(cluster, led)


def _together(texts: list[str]) -> str | None:
    """The distinct texts of a partition's members, joined; share groups have several."""
    return ",".join(dict.fromkeys(texts)) or None
