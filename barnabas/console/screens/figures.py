"""The figures of the overview, for its page and for scripts: once, or whenever there is a new sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import msgspec

from barnabas.console.collector.figures import Figures
from barnabas.console.collector.views import FINE_SPAN_S, LiveView, OverviewView, TopicRow, chart, overview, topic_rows
from barnabas.console.console import Call
from barnabas.console.events import Event
from barnabas.console.pages import number
from barnabas.console.resources import resource, stream
from barnabas.console.tables import Page, TableQuery, paged

STEP_S = 1.0
"""How long a step of a stream waits for a sample, seconds."""


@dataclass(frozen=True)
class FiguresQuery:
    """How far the series reach back."""

    span_s: Annotated[float, msgspec.Meta(ge=10, le=3600)] = FINE_SPAN_S
    """Up to 300 s in steps of 2 s, more in steps of 30 s."""


@resource("/figures", summary="Load, throughput, lag and warnings of the cluster, with series.")
def figures(call: Call, query: FiguresQuery) -> OverviewView:
    """As the collector has them."""
    return call.collector.read(partial(overview, span_s=query.span_s))


@stream("/figures/events", summary="Charts of throughput and lag, with every sample.")
def figures_events(call: Call, query: FiguresQuery) -> Iterator[Event | None]:
    """Charts `messages`, `bytes` and `lag`, and the overview's figures as texts, as `static/live.js` shows them."""
    return samples(call, lambda known, now_s: _charts(known, now_s, query.span_s))


def _charts(known: Figures, now_s: float, span_s: float) -> LiveView:
    return LiveView(
        {
            "messages": chart({"in": known.messages_in, "out": known.messages_out}, now_s, span_s),
            "bytes": chart({"in": known.bytes_in}, now_s, span_s),
            "lag": chart({"lag": known.lag}, now_s, span_s),
        },
        {
            "topics": number(len(known.topics)),
            "groups": number(len(known.groups)),
            "in": number(sum(topic.in_per_s or 0.0 for topic in known.topics.values())),
            "out": number(sum(group.read_per_s or 0.0 for group in known.groups.values())),
            "lag": number(sum(group.lag or 0 for group in known.groups.values())),
        },
    )


def samples(call: Call, view: Callable[[Figures, float], object]) -> Iterator[Event | None]:
    """The steps of a stream: what `view` makes of each sample."""
    count = 0
    while True:
        collector = call.collector
        sampled = collector.wait_for_sample(count, STEP_S)
        if sampled > count:
            count = sampled
            yield Event(collector.read(view))
        else:
            yield None


@dataclass(frozen=True, kw_only=True)
class RatesQuery(TableQuery):
    """Which topics."""


@resource("/figures/topics", summary="Rates of topics: messages a second in and out.")
def topic_figures(call: Call, query: RatesQuery) -> Page[TopicRow]:
    """By topic."""
    rows = call.collector.read(lambda known, _now_s: topic_rows(known))
    columns = ("topic", "partitions", "in_per_s", "out_per_s", "under_replicated", "leaderless")
    return paged(rows, query, columns=columns, search=lambda row: row.topic, sort="topic")
