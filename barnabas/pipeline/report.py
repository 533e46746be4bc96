"""A self-contained HTML page about a run: totals of each query, and plots."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
from matplotlib.figure import Figure

from barnabas.pipeline.errors import MistakeError, PipelineError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from barnabas.pipeline.progress import Batch
    from barnabas.pipeline.run import Run

TEMPLATE = Path(__file__).with_name("report.html")
SIZE = (9, 3)
COLORS = ("#0969da", "#bf3989", "#1a7f37", "#9a6700")


def check_writable(path: Path) -> None:
    """Check before the run that the report can be written; MistakeError if not."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a").close()
    except OSError as failed:
        raise MistakeError(f"the report {path} cannot be written: {failed.strerror}") from failed


def write_report(run: Run, error: PipelineError | None, path: Path) -> None:
    """Write the page. MistakeError if the file cannot be written."""
    outcome = "failed" if error else "stopped" if run.was_stopped else "done"
    template = jinja2.Environment(autoescape=True).from_string(TEMPLATE.read_text())
    page = template.render(run=run, outcome=outcome, error=error, rows=_rows(run), plots=plots(run))
    check_writable(path)
    path.write_text(page, encoding="utf-8")


def _rows(run: Run) -> list[list[str]]:
    longest: dict[str, int] = {}
    for batch in run.progress.batches:
        longest[batch.query] = max(longest.get(batch.query, 0), batch.duration_ms)
    return [
        [
            name.removeprefix(f"{run.name}."), str(t.batches), f"{t.rows_in:,}", f"{t.rows_out:,}", f"{t.late:,}",
            f"{t.rows_in / max(run.seconds, 0.001):,.0f}", f"{longest.get(name, 0):,} ms",
        ]
        for name, t in run.progress.totals.items()
    ]  # fmt: skip


def plots(run: Run) -> list[str]:
    """Rows, rates and durations over time, as SVG; none for a run without batches."""
    queries = {name: own for name in run.progress.totals if (own := _of(run.progress.batches, name))}
    if not queries:
        return []
    began = min(batch.at for batch in run.progress.batches)
    return [
        _plot("rows read so far", queries, began, _running_total),
        _plot("rows per second of each batch", queries, began, lambda own: [_rate(batch) for batch in own]),
        _plot("milliseconds of each batch", queries, began, lambda own: [batch.duration_ms for batch in own]),
    ]


def _of(batches: Sequence[Batch], name: str) -> list[Batch]:
    return [batch for batch in batches if batch.query == name]


def _running_total(batches: Sequence[Batch]) -> list[float]:
    total, totals = 0, []
    for batch in batches:
        total += batch.rows_in
        totals.append(float(total))
    return totals


def _rate(batch: Batch) -> float:
    return batch.rows_in * 1000 / max(batch.duration_ms, 1)


def _plot(
    title: str, queries: dict[str, list[Batch]], began: datetime, values: Callable[[Sequence[Batch]], Sequence[float]]
) -> str:
    figure = Figure(figsize=SIZE, layout="constrained")
    axes: Axes = figure.subplots()
    for (name, own), color in zip(queries.items(), COLORS * len(queries), strict=False):
        ends = [(batch.at - began).total_seconds() + batch.duration_ms / 1000 for batch in own]
        axes.plot(ends, values(own), "o-", markersize=3, label=name, color=color)
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel("seconds", fontsize=9)
    axes.set_ylim(bottom=0)
    axes.ticklabel_format(style="plain", axis="y")
    axes.spines[["top", "right"]].set_visible(False)
    for text in axes.legend(fontsize=8, frameon=False).get_texts():
        text.set_parse_math(False)  # matplotlib would read dollars in a name as math
    return as_svg(figure)


def as_svg(figure: Figure) -> str:
    """The drawing as an SVG element."""
    text = io.StringIO()
    figure.savefig(text, format="svg")
    svg = text.getvalue()
    return svg[svg.index("<svg") :]
