"""A self-contained HTML page about a run: rows by outcome, source, output, time by phase, and plots.

Plots are for runs of several batches; a line through one or two points shows nothing.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import jinja2
from matplotlib.figure import Figure
from pyarrow import fs

from barnabas.spark.errors import MistakeError, PipelineError
from barnabas.spark.report.numbers import table_cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from barnabas.spark.progress import Batch
    from barnabas.spark.run import Run

# --- the files that a run has written, from the log of files that Spark keeps beside them

LOG = "_spark_metadata"


class Files(NamedTuple):
    """What was written."""

    number: int
    size: int
    """Bytes."""


def files_since(directory: str, since: datetime) -> Files | None:
    """The files written since a time; None if there is no log of files, or it cannot be read."""
    try:
        if "://" in directory:
            files, root = fs.FileSystem.from_uri(directory.replace("s3a://", "s3://"))
        else:
            files, root = fs.LocalFileSystem(), str(Path(directory).resolve())
        logs = [info.path for info in files.get_file_info(fs.FileSelector(f"{root}/{LOG}")) if _is_log(info, since)]
        entries = {path: size for log in logs for path, size in _entries(files, log, since)}
    except (OSError, ValueError):
        return None
    return Files(len(entries), sum(entries.values()))


def _is_log(info: fs.FileInfo, since: datetime) -> bool:
    """Whether this is the log of batches, written since then."""
    is_batch = info.base_name.removesuffix(".compact").isdecimal()
    return is_batch and (info.mtime is None or info.mtime.timestamp() >= int(since.timestamp()))


def _entries(files: fs.FileSystem, path: str, since: datetime) -> list[tuple[str, int]]:
    with files.open_input_stream(path) as file:
        lines = bytes(file.read()).decode().splitlines()[1:]
    entries = [json.loads(line) for line in lines]
    since_ms = int(since.timestamp()) * 1000
    return [(entry["path"], entry["size"]) for entry in entries if entry["modificationTime"] >= since_ms]


# --- the page

TEMPLATE = Path(__file__).with_name("report.html")
SIZE = (9, 3)
FEWEST_BATCHES = 4
"""Plots are drawn if a query had at least this many batches."""
SHORTEST_MS = 10
"""Phases that took less are not shown."""
PHASES = {
    "addBatch": "processing and writing",
    "latestOffset": "asking for the newest offsets",
    "getBatch": "preparing the batch",
    "queryPlanning": "planning",
    "walCommit": "writing the batch's offsets to the checkpoint",
    "commitOffsets": "writing the batch's end to the checkpoint",
    "commitBatch": "committing the batch",
}
"""Phases of a micro-batch, by Spark's names."""
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
    tables = [table for table in (_queries(run), _reasons(run), _source(run), _output(run), _phases(run)) if table.rows]
    page = template.render(run=run, outcome=outcome, error=error, tables=tables, plots=plots(run))
    check_writable(path)
    path.write_text(page, encoding="utf-8")


class Table(NamedTuple):
    """A table of the page; the cells are texts."""

    title: str
    columns: Sequence[str]
    rows: list[list[tuple[str, bool]]]
    """Cells, and whether each is a number."""


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A table in which the numbers of a column have one form."""
    texts, numeric = table_cells(rows, len(columns))
    return Table(title, columns, [list(zip(row, numeric, strict=True)) for row in texts])


def _short(run: Run, query: str) -> str:
    return query.removeprefix(f"{run.name}.")


def _queries(run: Run) -> Table:
    rows = [
        [_short(run, name), t.batches, t.rows_in, t.rows_out, t.late, round(t.rows_in / max(run.seconds, 0.001)),
         t.longest_ms]
        for name, t in run.progress.totals.items()
    ]  # fmt: skip
    columns = ("query", "batches", "rows read", "rows written", "too late", "rows read per second", "longest batch, ms")
    return _table("Rows by query", columns, rows)


def _reasons(run: Run) -> Table:
    rows = [
        [kind, count, 100 * count / max(t.rows_in, 1)]
        for t in run.progress.totals.values()
        for kind, count in t.reasons.most_common()
    ]
    return _table("Dead letters by reason", ("reason", "records", "% of the records read"), rows)


def _source(run: Run) -> Table:
    starts: dict[tuple[str, int], int] = {}
    ends: dict[tuple[str, int], int] = {}
    for totals in run.progress.totals.values():
        for topic, own in totals.offsets.items():
            for partition, end in own.items():
                at = (topic, partition)
                start = totals.starts.get(topic, {}).get(partition, end)
                starts[at], ends[at] = min(start, starts.get(at, start)), max(end, ends.get(at, end))
    rows = [[topic, partition, starts[topic, partition], end, end - starts[topic, partition]]
            for (topic, partition), end in sorted(ends.items())]  # fmt: skip
    return _table("Source", ("topic", "partition", "from offset", "to offset (not included)", "offsets"), rows)


def _output(run: Run) -> Table:
    written = run.job.files(run.config)
    outputs = run.outputs or ({run.job.name: run.job.output(run.config)} if run.counts else {})
    rows: list[list[object]] = []
    for flow, where in outputs.items():
        totals = run.progress.totals.get(f"{run.name}.{flow}")
        rows_out = totals.rows_out if totals else run.counts.rows_out if run.counts else None
        files = files_since(written[1], run.started_at) if written and written[0] == flow else None
        rows.append([flow, where, rows_out, files and files.number, files and files.size])
    if not any(row[3] is not None for row in rows):
        return _table("Output", ("query", "written to", "rows"), [row[:3] for row in rows])
    return _table("Output", ("query", "written to", "rows", "files", "bytes"), rows)


def _phases(run: Run) -> Table:
    whole = {phase: round(seconds * 1000) for phase, seconds in run.phases.items()}
    rows: list[list[object]] = [[phase, took] for phase, took in whole.items() if took >= SHORTEST_MS]
    for name, totals in run.progress.totals.items():
        rows += [
            [f"{_short(run, name)}: {PHASES.get(phase, phase)}", took]
            for phase, took in totals.phases_ms.most_common()
            if took >= SHORTEST_MS
        ]
    return _table("Time by phase", ("phase", "milliseconds"), rows)


def plots(run: Run) -> list[str]:
    """Rows, rates and durations over time, as SVG; none for a run without batches."""
    batches = {name: [batch for batch in run.progress.batches if batch.query == name] for name in run.progress.totals}
    queries = {name: own for name, own in batches.items() if own}
    if max(map(len, queries.values()), default=0) < FEWEST_BATCHES:
        return []
    began = min(batch.at for batch in run.progress.batches)
    return [
        _plot("rows read so far", queries, began, lambda own: [*accumulate(batch.rows_in for batch in own)]),
        _plot("rows per second of each batch", queries, began, lambda own: [_rate(batch) for batch in own]),
        _plot("milliseconds of each batch", queries, began, lambda own: [batch.duration_ms for batch in own]),
    ]


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
