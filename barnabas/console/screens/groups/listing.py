"""The list of groups of all kinds, from the collector's figures: no request waits for 2,000 coordinators' answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from zlib import crc32

from barnabas.console.collector.figures import Figures
from barnabas.console.collector.views import FINE_SPAN_S, GroupRow, LiveView, chart, group_rows
from barnabas.console.console import Call
from barnabas.console.events import Event
from barnabas.console.pages import number
from barnabas.console.resources import resource, stream
from barnabas.console.screens.figures import samples
from barnabas.console.tables import Page, TableQuery, paged

COLUMNS = ("group", "kind", "state", "lag", "read_per_s", "partitions", "coordinator")


@dataclass(frozen=True, kw_only=True)
class GroupsQuery(TableQuery):
    """Which groups are shown."""

    kind: Literal["", "classic", "consumer", "share", "streams"] = ""
    """Only groups of this kind."""


@dataclass(frozen=True)
class GroupsView:
    """The list of groups."""

    groups: Page[GroupRow]
    total_lag: int
    kinds: dict[str, int]
    """How many groups of each kind there are."""
    version: str
    """Changes with the rows that are shown, and with their order."""
    refusal: str
    """Why the cluster does not list its groups; empty if it does."""


@resource("/groups", template="groups/list.html", summary="The groups of the cluster, with their lag.")
def list_of_groups(call: Call, query: GroupsQuery) -> GroupsView:
    """Sorted by name unless the query says otherwise."""
    return call.collector.read(lambda figures, _now_s: _view(figures, query))


def _view(figures: Figures, query: GroupsQuery) -> GroupsView:
    rows = group_rows(figures)
    kinds: dict[str, int] = {}
    for row in rows:
        kinds[row.kind] = kinds.get(row.kind, 0) + 1
    chosen = [row for row in rows if not query.kind or row.kind == query.kind]
    page = paged(chosen, query, columns=COLUMNS, search=lambda row: row.group, sort="group")
    refusal = figures.failures.get("groups", "") or figures.failures.get("offsets", "")
    version = f"{crc32(repr([row.group for row in page.rows]).encode()):x}"
    return GroupsView(page, sum(row.lag or 0 for row in rows), kinds, version, refusal)


@stream("/groups/events", summary="The lag of the shown groups, and of all together, with every sample.")
def groups_events(call: Call, query: GroupsQuery) -> Iterator[Event | None]:
    """Texts `lag GROUP`, `read GROUP` and `state GROUP` of the page that the query selects."""
    return samples(call, lambda figures, now_s: _live(figures, now_s, query))


def _live(figures: Figures, now_s: float, query: GroupsQuery) -> LiveView:
    texts: dict[str, str] = {}
    view = _view(figures, query)
    for row in view.groups.rows:
        texts[f"lag {row.group}"] = number(row.lag)
        texts[f"read {row.group}"] = number(row.read_per_s)
        texts[f"state {row.group}"] = row.state or "–"
    return LiveView({"lag": chart({"lag of all groups": figures.lag}, now_s, FINE_SPAN_S)}, texts, view.version)
