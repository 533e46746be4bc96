"""The output of a run: a live table on a terminal, otherwise a line per batch or JSON lines; and the summary.

Progress is printed on stderr; stdout has only results. A query that is busy for long without a batch is reported, and
so is what comes before the first batch (`activity.py`). A table fits the terminal: a narrow one has fewer columns.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.text import Text

from barnabas.spark import activity
from barnabas.spark.errors import PipelineError
from barnabas.spark.progress import Batch, Totals, lag
from barnabas.spark.report import results
from barnabas.spark.report.numbers import table_cells
from barnabas.spark.topics.broker import Broker
from barnabas.spark.topics.cluster import Cluster
from barnabas.terminal import screen
from barnabas.terminal.layout import is_table, lay_out

if TYPE_CHECKING:
    from barnabas.spark.run import Run

LAG_EVERY_S = 2.0
"""Interval between two requests for the lag, seconds."""
COLUMNS = ("query", "batches", "rows in", "rows out", "late", "in/s", "out/s", "longest ms", "lag")
NARROW = ("query", "rows in", "rows out", "late", "lag")
MOST_REASONS = 5
"""How many reasons of dead letters the summary shows."""


class Screen:
    """Shows one run; a context manager."""

    def __init__(self, broker: str | Broker, form: str = "auto") -> None:
        """`form`: `live`, `text`, `json`, or `auto`, which is live on a terminal and text elsewhere."""
        self._cluster = Cluster(broker)
        self._console = Console(stderr=True)
        self._form = ("live" if self._console.is_terminal else "text") if form == "auto" else form
        self._live = Live(console=self._console, auto_refresh=False) if self._form == "live" else None
        self._lag: dict[str, dict[str, dict[int, int]]] = {}
        self._requested_at = 0.0
        self._run: Run | None = None
        self._news_at = time.monotonic()
        """When something was printed last."""

    def __enter__(self) -> Screen:
        if self._live is not None and sys.stdout.isatty():
            results.show_by(self._print_above)  # otherwise the live table would overwrite them
        activity.say_by(self.doing)
        return self

    def _print_above(self, text: str) -> None:
        self._console.print(Text(text))

    def __exit__(self, *_: object) -> None:
        results.show_by(None)
        activity.say_by(None)
        if self._live is None:
            return
        if self._run is not None and self._run.progress.totals:
            self._request_lag(self._run, now=True)
            self._live.update(self._table(self._run), refresh=True)
        self._live.stop()

    def watch(self, run: Run, fresh: list[Batch]) -> None:
        """Show new batches."""
        self._run = run
        if self._live is not None:
            self._request_lag(run)
            self._live.start()
            self._live.update(self._table(run), refresh=True)
            return
        for batch in fresh:
            text = batch.as_json() if self._form == "json" else _line(batch)
            print(text, file=sys.stderr, flush=True)
        if fresh or not run.doing:
            self._news_at = time.monotonic()
        elif time.monotonic() - self._news_at >= activity.EVERY_S:
            for query, what in run.doing.items():
                self.doing(f"{query}: {what[:1].lower() + what[1:]}", run.seconds)
            self._news_at = time.monotonic()

    def doing(self, what: str, seconds: float) -> None:
        """Report what the run waits for."""
        if self._form == "json":
            event = {"event": "activity", "what": what, "seconds": round(seconds, 1)}
            print(json.dumps(event), file=sys.stderr, flush=True)
        elif self._live is not None:
            self._print_above(activity.line(what, seconds))
        else:
            activity.print_line(what, seconds)

    def waiting(self, bootstrap: str) -> None:
        """Report that a broker does not answer yet."""
        if self._form == "json":
            print(json.dumps({"event": "waiting", "bootstrap": bootstrap}), file=sys.stderr, flush=True)
        else:
            print(f"no broker answers at {bootstrap} yet; trying again", file=sys.stderr, flush=True)

    def summary(self, run: Run, error: PipelineError | None) -> None:
        """Print the result. A live table has requested the last lag when it was closed."""
        if self._live is None:
            self._request_lag(run, now=True)
        if self._form == "json":
            print(json.dumps(self._facts(run, error)), file=sys.stderr, flush=True)
            return
        if self._live is None and run.progress.totals:
            print(self._table(run), file=sys.stderr)
        for line in reasons_text(run):
            print(line, file=sys.stderr)
        how = "failed" if error is not None else "stopped" if run.was_stopped else "done"
        done = "" if run.counts is None else f": {run.counts.rows_in:,} records read, {run.counts.rows_out:,} written"
        spark = run.phases.get("start of Spark", 0)
        more = f" and {spark:.1f} s for the start of Spark" if spark >= 1 else ""
        print(f"{run.name} {how} after {run.seconds:.1f} s{more}{done}", file=sys.stderr, flush=True)

    def _facts(self, run: Run, error: PipelineError | None) -> dict[str, object]:
        queries = {
            name: {"batches": t.batches, "rows_in": t.rows_in, "rows_out": t.rows_out, "late": t.late,
                   "dead_letters": dict(t.reasons), "busy_ms": t.busy_ms, "lag": self._lag.get(name, {})}
            for name, t in run.progress.totals.items()
        }  # fmt: skip
        if run.counts is not None:
            queries[run.name] = {"rows_in": run.counts.rows_in, "rows_out": run.counts.rows_out}
        return {
            "event": "failed" if error else "stopped" if run.was_stopped else "done",
            "job": run.job.name, "name": run.name, "seconds": round(run.seconds, 3),
            "error": None if error is None else str(error), "queries": queries,
        }  # fmt: skip

    def _request_lag(self, run: Run, *, now: bool = False) -> None:
        if not now and time.monotonic() - self._requested_at < LAG_EVERY_S:
            return
        self._requested_at = time.monotonic()
        try:
            self._lag = {name: lag(t.offsets, self._cluster) for name, t in run.progress.totals.items() if t.offsets}
        except PipelineError:
            self._lag = {}  # Spark reports a broker that remains unavailable

    def _table(self, run: Run) -> Text:
        title = f"{run.name} at {run.bootstrap}, {run.seconds:.0f} s"
        rows = [self._row(run, name, totals) for name, totals in run.progress.totals.items()]
        width = screen.width() if self._console.is_terminal else None
        names = COLUMNS if width is None or _fits(COLUMNS, rows, width) else NARROW
        return Text("\n".join([title, *lay_out(*_cells(names, rows), width)]), no_wrap=True)

    def _row(self, run: Run, name: str, totals: Totals) -> dict[str, object]:
        seconds = max(run.seconds, 0.001)
        lags = self._lag.get(name)
        behind = None if not lags else sum(sum(partitions.values()) for partitions in lags.values())
        values = (
            name.removeprefix(f"{run.name}."), totals.batches, totals.rows_in, totals.rows_out, totals.late,
            round(totals.rows_in / seconds), round(totals.rows_out / seconds), totals.longest_ms, behind,
        )  # fmt: skip
        return dict(zip(COLUMNS, values, strict=True))


def _cells(names: Sequence[str], rows: Sequence[Mapping[str, object]]) -> tuple[list[str], list[list[str]], list[bool]]:
    """Titles, rows of texts, and which columns are numbers."""
    return [name.upper() for name in names], *table_cells([[row[name] for name in names] for row in rows], len(names))


def _fits(names: Sequence[str], rows: Sequence[Mapping[str, object]], width: int) -> bool:
    titles, cells, _ = _cells(names, rows)
    return is_table(titles, cells, width)


def reasons_text(run: Run) -> list[str]:
    """The dead letters of a run by reason, the most frequent first."""
    reasons: Counter[str] = Counter()
    for totals in run.progress.totals.values():
        reasons.update(totals.reasons)
    lines = [f"dead letters, {kind}: {count:,}" for kind, count in reasons.most_common(MOST_REASONS)]
    others = sum(count for _, count in reasons.most_common()[MOST_REASONS:])
    return [*lines, f"dead letters, other reasons: {others:,}"] if others else lines


def _line(batch: Batch) -> str:
    rate = batch.rows_in * 1000 / max(batch.duration_ms, 1)
    late = f", {batch.late} too late" if batch.late else ""
    return (
        f"{batch.at:%H:%M:%S} {batch.query} batch {batch.batch}: {batch.rows_in:,} in, {batch.rows_out:,} out{late}, "
        f"{batch.duration_ms:,} ms, {rate:,.0f} rows/s"
    )
