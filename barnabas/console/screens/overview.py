"""The overview: the cluster at one glance, and how clients connect to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.console.collector.views import OverviewView, TopicRow, overview, topic_rows
from barnabas.console.console import Call
from barnabas.console.resources import resource
from barnabas.console.screens.clients import ClientText, client_texts

if TYPE_CHECKING:
    from barnabas.console.collector.figures import Figures

BUSIEST = 8
BOOTSTRAP_MAX = 3
"""Brokers that the configurations of clients name."""


@dataclass(frozen=True)
class Overview:
    """The cluster at one glance."""

    figures: OverviewView
    busiest: list[TopicRow]
    """The topics with the highest rates."""
    has_rates: bool
    """Whether rates are known: they need two looks at the cluster, and looks begin with the first viewer."""
    clients: list[ClientText]


@resource("/overview", template="overview/overview.html", summary="The cluster at one glance.")
def overview_of_cluster(call: Call) -> Overview:
    """As the collector has it."""
    figures, busiest, has_rates = call.collector.read(_read)
    brokers = [f"{broker.host}:{broker.port}" for broker in figures.brokers if broker.answers is not False]
    bootstrap = ",".join(brokers[:BOOTSTRAP_MAX]) or call.settings.bootstrap
    return Overview(figures, busiest, has_rates, client_texts(bootstrap, call.settings.properties))


def _read(figures: Figures, now_s: float) -> tuple[OverviewView, list[TopicRow], bool]:
    known = [row for row in topic_rows(figures) if row.in_per_s is not None]
    rows = [row for row in known if (row.in_per_s or 0) + (row.out_per_s or 0) > 0]
    rows.sort(key=lambda row: -((row.in_per_s or 0) + (row.out_per_s or 0)))
    return overview(figures, now_s), rows[:BUSIEST], bool(known) or not figures.topics
