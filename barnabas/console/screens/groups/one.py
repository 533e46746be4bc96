"""One group of any kind: members, lag by partition and over time; share groups' deliveries, streams groups' tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

import msgspec

from barnabas.client.cluster import Cluster
from barnabas.client.errors import ClientError, NotFound
from barnabas.client.groups.consumer_groups import delete_group as delete
from barnabas.client.groups.lags import Lag, lags_of, total_lag
from barnabas.client.groups.share_states import share_states
from barnabas.client.groups.streams import describe_streams
from barnabas.client.groups.views import GroupView, MemberView, view_group
from barnabas.client.offsets import TopicPartition
from barnabas.console.collector.figures import Figures
from barnabas.console.collector.views import FINE_SPAN_S, LiveView, chart
from barnabas.console.console import Call
from barnabas.console.events import Event
from barnabas.console.pages import number
from barnabas.console.resources import Done, action, resource, stream
from barnabas.console.screens.figures import samples
from barnabas.console.tables import Page, TableQuery, paged
from barnabas.terminal.plural import plural
from barnabas.wire.errors import KafkaError

LINES = 8
"""Partitions that the chart shows: those with the largest lags."""
SHARE_PARTITIONS = 100
"""Partitions of a share group whose stored states are read: two requests each."""
BATCHES = 20
"""Batches of one share partition that are shown."""
MEMBERS = 200
RANGES = 50
"""Ranges of partitions of one member that are shown."""


@dataclass(frozen=True)
class MemberRow:
    """A member of a group."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    epoch: int | None
    partitions: int
    assigned: list[str]
    """Ranges as `orders:0-3`."""
    target: list[str]
    """The ranges that it should have, where the group protocol tells them and they differ."""


@dataclass(frozen=True)
class LagRow:
    """A partition with an offset of the group, or that a member reads."""

    topic: str
    partition: int
    committed: int | None
    end: int | None
    lag: int | None
    client: str | None
    host: str | None


@dataclass(frozen=True)
class DeliveryRow:
    """Records of a share partition that were delivered and are not finished."""

    topic: str
    partition: int
    first: int
    last: int
    state: str
    deliveries: int


@dataclass(frozen=True)
class DeliveriesView:
    """The stored states of a share group."""

    rows: list[DeliveryRow] = field(default_factory=list)
    cut: int = 0
    """Batches and partitions that are not shown."""
    complete: int | None = None
    """Records after the start offsets whose delivery is complete; None if no coordinator tells."""
    refusal: str = ""
    """Why they cannot be read."""


@dataclass(frozen=True)
class SubtopologyRow:
    """A subtopology of a streams group."""

    subtopology: str
    sources: list[str]
    repartition_sinks: list[str]
    repartition_sources: list[str]
    changelogs: list[str]


@dataclass(frozen=True)
class TasksRow:
    """The tasks of a member of a streams group, as `SUBTOPOLOGY_PARTITION`."""

    member_id: str
    process_id: str
    active: list[str]
    standby: list[str]
    warmup: list[str]
    behind: int | None
    """Changelog offsets that its tasks have to restore; None if it does not tell."""


@dataclass(frozen=True)
class StreamsView:
    """The topology and the tasks of a streams group."""

    topology_epoch: int
    subtopologies: list[SubtopologyRow]
    tasks: list[TasksRow]


@dataclass(frozen=True)
class OneGroup:
    """One group."""

    group: str
    kind: str
    state: str
    protocol: str
    assignor: str
    epoch: int | None
    assignment_epoch: int | None
    lag: int
    members: list[MemberRow]
    members_in_all: int
    partitions: Page[LagRow]
    topics: list[str]
    busy: str
    """Why its offsets cannot be changed and it cannot be deleted: who is a member; empty if it has none."""
    deliveries: DeliveriesView | None
    streams: StreamsView | None


@dataclass(frozen=True, kw_only=True)
class GroupQuery(TableQuery):
    """Which group, and which of its partitions."""

    group: str


@resource("/groups/{group}", template="groups/group.html", summary="One group: members, lag, assignment.")
def one_group(cluster: Cluster, call: Call, query: GroupQuery) -> OneGroup:
    """Members and lags are asked for now; the chart comes from the collector."""
    view = viewed(cluster, call, query.group)
    lags = lags_of(cluster, view)
    rows = [LagRow(lag.topic, lag.partition, lag.committed, lag.end, lag.lag, lag.client, lag.host) for lag in lags]
    columns = ("topic", "partition", "committed", "end", "lag", "client", "host")
    return OneGroup(
        group=view.group_id,
        kind=view.group_type,
        state=view.state,
        protocol=view.protocol_type,
        assignor=view.assignor,
        epoch=view.epoch,
        assignment_epoch=view.assignment_epoch,
        lag=total_lag(lags),
        members=[_member(member) for member in view.members[:MEMBERS]],
        members_in_all=len(view.members),
        partitions=paged(rows, query, columns=columns, search=lambda row: f"{row.topic}-{row.partition}"),
        topics=sorted({lag.topic for lag in lags}),
        busy=busy(view),
        deliveries=_deliveries(cluster, view.group_id, lags) if view.group_type == "share" else None,
        streams=_streams(cluster, view.group_id) if view.group_type == "streams" else None,
    )


def viewed(cluster: Cluster, call: Call, group: str) -> GroupView:
    """A group with its members, asked for now. Of a group that the collector knows no list of all groups is asked."""
    kind = call.collector.read(partial(_look_at, group=group))
    if kind is not None:
        try:
            return view_group(cluster, group, kind)
        except NotFound:
            pass  # it was deleted, or made again as another kind
    return view_group(cluster, group)


def busy(view: GroupView) -> str:
    """The sentence that says who is a member; empty for a group without members."""
    if not view.members:
        return ""
    named = [f"{member.client_id or 'without a client id'} at {member.client_host}" for member in view.members[:3]]
    others = len(view.members) - len(named)
    also = f" and {others} more" if others else ""
    count = f"{len(view.members)} {plural('member', len(view.members))}"
    return f"Group {view.group_id} has {count}: {', '.join(named)}{also}. Stop them first."


def _member(member: MemberView) -> MemberRow:
    assigned, target = ranges(member.partitions), ranges(member.target)
    return MemberRow(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.epoch,
        len(member.partitions),
        assigned[:RANGES],
        target[:RANGES] if member.epoch is not None and target and target != assigned else [],
    )


def ranges(partitions: Sequence[TopicPartition]) -> list[str]:
    """`orders:0-3`, `orders:5` for partitions."""
    texts: list[str] = []
    run: list[TopicPartition] = []
    for topic, index in [*sorted(set(partitions)), ("", -1)]:
        if run and (topic, index) != (run[-1][0], run[-1][1] + 1):
            first, last = run[0], run[-1]
            texts.append(f"{first[0]}:{first[1]}" if first == last else f"{first[0]}:{first[1]}-{last[1]}")
            run = []
        run.append((topic, index))
    return texts


def _deliveries(cluster: Cluster, group: str, lags: Sequence[Lag]) -> DeliveriesView:
    partitions = [(lag.topic, lag.partition) for lag in lags]
    try:
        states = share_states(cluster, group, partitions[:SHARE_PARTITIONS])
    except (KafkaError, ClientError) as error:
        return DeliveriesView(refusal=f"The share coordinator does not tell its states: {error}.")
    rows = [
        DeliveryRow(*which, batch.first, batch.last, batch.state, batch.deliveries)
        for which, state in states.items()
        for batch in state.batches[:BATCHES]
    ]
    cut = sum(max(0, len(state.batches) - BATCHES) for state in states.values())
    complete = [state.complete for state in states.values() if state.complete >= 0]
    hidden = cut + max(0, len(partitions) - SHARE_PARTITIONS)
    return DeliveriesView(rows, hidden, sum(complete) if complete else None)


def _streams(cluster: Cluster, group: str) -> StreamsView:
    described = describe_streams(cluster, group)
    return StreamsView(
        described.topology_epoch,
        [SubtopologyRow(*subtopology) for subtopology in described.subtopologies],
        [TasksRow(*member) for member in described.members[:MEMBERS]],
    )


# --- over time


@dataclass(frozen=True)
class GroupEventsQuery:
    """Which group, and how far the chart reaches back."""

    group: str
    span_s: Annotated[float, msgspec.Meta(ge=10, le=3600)] = FINE_SPAN_S


@stream("/groups/{group}/events", summary="The lag of a group over time, with every sample.")
def group_events(call: Call, query: GroupEventsQuery) -> Iterator[Event | None]:
    """Chart `lag`: all partitions together, and those with the largest lags."""
    return samples(call, lambda figures, now_s: _live(figures, now_s, query))


@resource("/groups/{group}/lag", summary="The lag of a group over time: in all, and of its partitions.")
def group_lag(call: Call, query: GroupEventsQuery) -> LiveView:
    """As the collector has it; empty for a group that it has not seen."""
    return call.collector.read(lambda figures, now_s: _live(figures, now_s, query))


def _look_at(figures: Figures, now_s: float, group: str) -> str | None:
    """The kind of a known group; the series of its partitions are kept while it is looked at."""
    known = figures.groups.get(group)
    if known is None:
        return None
    known.looked_at_s = now_s
    return known.kind


def _live(figures: Figures, now_s: float, query: GroupEventsQuery) -> LiveView:
    _look_at(figures, now_s, query.group)
    known = figures.groups.get(query.group)
    if known is None:
        return LiveView({"lag": chart({}, now_s)})
    largest = sorted(known.partition_histories, key=lambda which: -known.lags.get(which, 0))[:LINES]
    lines = {"all": known.history} | {
        f"{topic}-{index}": known.partition_histories[topic, index] for topic, index in sorted(largest)
    }
    if len(known.lags) == 1:
        del lines["all"]  # it is the same line
    texts = {"lag": number(known.lag), "read": number(known.read_per_s), "state": known.state or "–"}
    return LiveView({"lag": chart(lines, now_s, query.span_s)}, texts)


# --- delete


@dataclass(frozen=True)
class DeleteGroup:
    """Which group is deleted."""

    group: str


@action("/groups/{group}/delete", summary="Delete a group without members, with its offsets.")
def delete_group(cluster: Cluster, form: DeleteGroup) -> Done:
    """The broker refuses a group with members."""
    delete(cluster, form.group)
    return Done(f"Group {form.group} was deleted.", "/groups")
