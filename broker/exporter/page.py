"""The text of a scrape: the samples of each metric, then all of them in Prometheus' text format (version 0.0.4).

The format wants all samples of a metric together, and the broker knows its values by topic, group or API. So samples
are kept as lines by metric until all are there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.broker.exporter.declarations import HISTOGRAM, LABELS, METRICS, Metric
from barnabas.broker.metrics.histogram import Histogram

if TYPE_CHECKING:
    from barnabas.coord.client_metrics.kept import KeptMetrics

LINES: Final = 200
"""How many lines a piece of the page has."""

Values = Mapping[str, "float | Histogram | None"]
"""The values of one source by field; None: there is no value."""

_BY_SOURCE: Final[dict[str, list[Metric]]] = {
    source: [metric for metric in METRICS if metric.source == source] for source in LABELS
}
_SUMMED: Final[dict[str, list[str]]] = {
    source: list(dict.fromkeys(metric.field for metric in metrics if metric.is_summed))
    for source, metrics in _BY_SOURCE.items()
}
"""By source, the fields that are summed for topics and groups beyond the limit of labels."""

_OWN: Final = frozenset(metric.name + ending for metric in METRICS for ending in ("", "_bucket", "_sum", "_count"))


class Page:
    """The samples of one scrape."""

    def __init__(self) -> None:
        self._lines: defaultdict[str, list[str]] = defaultdict(list)
        self._sums: dict[tuple[str, tuple[str, ...]], defaultdict[str, float]] = {}

    def add(self, source: str, labels: Sequence[str], values: Values) -> None:
        """The samples of one topic, group ..., whose labels have these values."""
        pairs = [f'{name}="{escaped(value)}"' for name, value in zip(LABELS[source], labels, strict=True)]
        text = f"{{{','.join(pairs)}}}" if pairs else ""
        for metric in _BY_SOURCE[source]:
            value = values.get(metric.field)
            if value is None:
                continue
            if isinstance(value, Histogram):
                self._add_histogram(metric, pairs, value)
            else:
                self._lines[metric.name].append(f"{metric.name}{text} {number(value)}")

    def _add_histogram(self, metric: Metric, pairs: list[str], histogram: Histogram) -> None:
        name, lines = metric.name, self._lines[metric.name]
        if metric.kind == HISTOGRAM:
            start = f"{name}_bucket{{{''.join(f'{pair},' for pair in pairs)}"
            lines += [f'{start}le="{bound}"}} {count}' for bound, count in histogram.cumulative()]
        text = f"{{{','.join(pairs)}}}" if pairs else ""
        lines += [f"{name}_sum{text} {number(histogram.seconds)}", f"{name}_count{text} {histogram.count}"]

    def add_to_sum(self, source: str, labels: Sequence[str], values: Values) -> None:
        """Values of a topic or group that has no series of its own: `labels` has `OTHER` in its place."""
        key = (source, tuple(labels))
        sums = self._sums.get(key)
        if sums is None:
            sums = self._sums[key] = defaultdict(float)
        for field in _SUMMED[source]:
            value = values.get(field)
            if value is not None:
                sums[field] += value  # type: ignore[operator]  # histograms are of APIs

    def add_sums(self) -> None:
        """Add the samples of the sums."""
        for (source, labels), values in self._sums.items():
            self.add(source, labels, values)
        self._sums.clear()

    def pieces(self) -> Iterator[str]:
        """The text, piece by piece."""
        piece: list[str] = []
        for name, metric in {metric.name: metric for metric in METRICS}.items():
            lines = self._lines.get(name)
            if not lines:
                continue
            piece += [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}"]
            for start in range(0, len(lines), LINES):
                piece += lines[start : start + LINES]
                if len(piece) >= LINES:
                    yield joined(piece)
                    piece = []
        if piece:
            yield joined(piece)


def text_of_clients(metrics: KeptMetrics) -> Iterator[str]:
    """The lines of the metrics that clients push, in pieces of about `LINES` lines.

    A client's metric with the name of one of the broker's is left out: a page has each name once. What is shown may
    change between two pieces: a scrape is no snapshot, but each line is true when it is written.
    """
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


def joined(lines: list[str]) -> str:
    """The lines as text."""
    return "\n".join(lines) + "\n"


def escaped(value: str) -> str:
    """A label's value as it is written between quotes."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def number(value: float) -> str:
    """A value as it is written."""
    if value != value:
        return "NaN"
    if value in {float("inf"), float("-inf")}:
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))
