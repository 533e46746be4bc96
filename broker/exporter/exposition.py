"""The metrics that clients push, in Prometheus' text format (version 0.0.4), in pieces of at most about `LINES` lines.

A client's metric that has the name of one of the broker's is left out: a page has each name once.

What is shown may change between two pieces: a scrape is no snapshot, but each line is true when it is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from barnabas.broker.exporter.declarations import METRICS
from barnabas.broker.exporter.page import LINES, joined, number

if TYPE_CHECKING:
    from barnabas.coord.client_metrics.kept import KeptMetrics

_OWN: Final = frozenset(metric.name + ending for metric in METRICS for ending in ("", "_bucket", "_sum", "_count"))


def text_of_clients(metrics: KeptMetrics) -> Iterator[str]:
    """The lines of all metrics of clients, piece by piece."""
    lines: list[str] = []
    for name in list(metrics.families):
        family = metrics.families.get(name)
        if family is None or name in _OWN:
            continue
        lines.append(f"# TYPE {name} {family.kind}")
        for client, values in list(family.of.items()):
            for series, value in list(values.items()):
                labels = f"{client.labels},{series}" if series else client.labels
                lines.append(f"{name}{{{labels}}} {number(value)}")
                if len(lines) >= LINES:
                    yield joined(lines)
                    lines = []
        if len(lines) >= LINES:
            yield joined(lines)
            lines = []
    if lines:
        yield joined(lines)
