"""The offsets of a group: where each would go (the preview), the change of exactly what was shown, deletion."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Literal
from urllib.parse import quote

from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound, raise_first
from barnabas.client.groups.consumer_groups import committed_offsets, delete_offsets
from barnabas.client.groups.seek import Goal, current_offsets, move_group, resolve_goals
from barnabas.client.groups.share_groups import forget_share_topics
from barnabas.client.groups.views import group_type
from barnabas.client.offsets import TopicPartition
from barnabas.client.positions import OffsetSpec
from barnabas.console.console import Call
from barnabas.console.failures import Refused
from barnabas.console.resources import Done, action, resource
from barnabas.console.screens.groups.one import busy, viewed
from barnabas.console.values import BadInput
from barnabas.terminal.plural import plural

Where = Literal["", "earliest", "latest", "time", "offset", "shift", "group"]


@dataclass(frozen=True)
class OffsetsQuery:
    """Where the offsets of a group would go; `to` empty: nothing is asked yet."""

    group: str
    to: Where = ""
    """earliest, latest, time, offset, shift (by a distance) or group (another group's offsets)."""
    value: str = ""
    """Of time: a date, in UTC without a zone, or milliseconds since 1970; of offset and shift a number; of group a
    group."""
    topic: str = ""
    """Only this topic, which may be one that the group has no offsets of; empty: all topics of the group."""
    partitions: str = ""
    """Only these partitions of the topic, as `0,3`."""


@dataclass(frozen=True)
class MoveRow:
    """Where one offset would go."""

    topic: str
    partition: int
    before: int | None
    after: int
    change: int | None


@dataclass(frozen=True)
class OffsetsView:
    """The offsets of a group, and where they would go."""

    group: str
    kind: str
    busy: str
    """Why they cannot be changed now; empty if they can."""
    topics: list[str]
    moves: list[MoveRow]
    notes: list[str]
    """Sentences about offsets that are outside their partitions."""
    unchanged: int


@resource("/groups/{group}/offsets", template="groups/offsets.html", summary="Where the offsets of a group would go.")
def preview(cluster: Cluster, call: Call, query: OffsetsQuery) -> OffsetsView:
    """Nothing is changed. A group that does not exist may get its first offsets."""
    kind, reason = _kind_and_members(cluster, call, query.group)
    before = current_offsets(cluster, query.group, is_share=kind == "share")
    topics = sorted({topic for topic, _ in before})
    if not query.to:
        return OffsetsView(query.group, kind, reason, topics, [], [], 0)
    notes: list[str] = []
    after = resolve_goals(cluster, _goals(cluster, query, before), before, notes.append)
    moves = [_move(which, before.get(which), offset) for which, offset in sorted(after.items())]
    unchanged = sum(move.change == 0 for move in moves)
    return OffsetsView(query.group, kind, reason, topics, moves, notes, unchanged)


def _move(which: TopicPartition, before: int | None, after: int) -> MoveRow:
    known = None if before is None or before < 0 else before
    return MoveRow(*which, known, after, None if known is None else after - known)


def _kind_and_members(cluster: Cluster, call: Call, group: str) -> tuple[str, str]:
    """The kind of a group, and the sentence about its members; classic without members if it does not exist."""
    try:
        view = viewed(cluster, call, group)
        return view.group_type, busy(view)
    except NotFound:
        return "classic", ""


def _goals(cluster: Cluster, query: OffsetsQuery, before: dict[TopicPartition, int]) -> dict[TopicPartition, Goal]:
    chosen = _partitions(cluster, query, before)
    if query.to == "group":
        if not query.value:
            raise BadInput("value: name the other group")
        others = committed_offsets(cluster, query.value)
        goals = {
            which: Goal(OffsetSpec("offset", others[which])) for which in others if not query.topic or which in chosen
        }
        if not goals:
            raise BadInput(f"value: group {query.value!r} has no committed offsets there")
        return goals
    if not chosen:
        raise BadInput("topic: the group has no offsets yet: name a topic")
    return dict.fromkeys(chosen, _goal(query))


def _goal(query: OffsetsQuery) -> Goal:
    if query.to in ("earliest", "latest"):
        return Goal(OffsetSpec("start" if query.to == "earliest" else "end"))
    if query.to == "time":
        return Goal(OffsetSpec("time", _time_ms(query.value)))
    try:
        value = int(query.value.replace("\u202f", ""))
    except ValueError:
        raise BadInput(f"value: expected a number, not {query.value!r}") from None
    if query.to == "shift":
        return Goal(None, value)
    if value < 0:
        raise BadInput("value: an offset is 0 or more")
    return Goal(OffsetSpec("offset", value))


def _time_ms(text: str) -> int:
    text = text.strip()
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"value: expected a date as 2026-12-24T18:00, not {text!r}") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _partitions(cluster: Cluster, query: OffsetsQuery, before: dict[TopicPartition, int]) -> list[TopicPartition]:
    if not query.topic:
        if query.partitions:
            raise BadInput("partitions: name their topic as well")
        return sorted(before)
    count = len(cluster.find_topic(query.topic).leaders)
    if not query.partitions.strip():
        return [(query.topic, index) for index in range(count)]
    indexes = [text.strip() for text in query.partitions.split(",")]
    if not all(text.isascii() and text.isdigit() for text in indexes):
        raise BadInput(f"partitions: expected numbers as 0,3, not {query.partitions!r}")
    for text in indexes:
        if int(text) >= count:
            raise BadInput(f"partitions: topic {query.topic!r} has no partition {int(text)}, it has {count}")
    return sorted({(query.topic, int(text)) for text in indexes})


# --- changes


@dataclass(frozen=True)
class MoveOffsets:
    """The offsets that a group gets."""

    group: str
    moves: list[str] = field(default_factory=list)
    """Each as `TOPIC:PARTITION=OFFSET`; one text may have several, a line each."""


@action("/groups/{group}/offsets", summary="Set the offsets of a group without members.")
def move(cluster: Cluster, call: Call, form: MoveOffsets) -> Done:
    """Exactly these offsets, as a preview has shown them."""
    offsets = dict(_parsed(line) for text in form.moves for line in text.splitlines() if line.strip())
    if not offsets:
        raise BadInput("moves: there is nothing to change")
    kind, reason = _kind_and_members(cluster, call, form.group)
    if reason:
        raise Refused(HTTPStatus.CONFLICT, reason)
    move_group(cluster, form.group, offsets, is_share=kind == "share")
    count = f"{len(offsets)} {plural('offset', len(offsets))}"
    return Done(f"{count} of group {form.group} {'was' if len(offsets) == 1 else 'were'} set.", _page(form.group))


def _parsed(line: str) -> tuple[TopicPartition, int]:
    place, _, offset = line.strip().rpartition("=")
    topic, _, index = place.rpartition(":")
    if not (topic and index.isascii() and index.isdigit() and offset.isascii() and offset.isdigit()):
        raise BadInput(f"moves: expected TOPIC:PARTITION=OFFSET, not {line!r}")
    return (topic, int(index)), int(offset)


@dataclass(frozen=True)
class ForgetTopic:
    """The topic whose offsets are deleted."""

    group: str
    topic: str


@action("/groups/{group}/forget", summary="Delete a group's offsets of a topic that no member reads.")
def forget(cluster: Cluster, form: ForgetTopic) -> Done:
    """A share group must have no members at all."""
    if group_type(cluster, form.group) == "share":
        raise_first(forget_share_topics(cluster, form.group, [form.topic]).values())
    else:
        known = [which for which in committed_offsets(cluster, form.group) if which[0] == form.topic]
        raise_first(delete_offsets(cluster, form.group, known).values())
    return Done(f"Group {form.group} has no offsets of {form.topic} any more.", _page(form.group))


def _page(group: str) -> str:
    return f"/groups/{quote(group, safe='')}"
