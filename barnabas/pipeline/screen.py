"""The output of a run: a live table on a terminal, otherwise a line per batch or JSON lines; and the summary.

Progress is printed on stderr; stdout has only results.
"""

from __future__ import annotations

import json
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from barnabas.pipeline import results
from barnabas.pipeline.cluster import Cluster
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.progress import Batch, lag

if TYPE_CHECKING:
    from barnabas.pipeline.run import Run

LAG_EVERY_S = 2.0
"""Interval between two requests for the lag, seconds."""
COLUMNS = ("query", "batches", "rows in", "rows out", "late", "in/s", "out/s", "last batch", "lag")


class Screen:
    """Shows one run; a context manager."""

    def __init__(self, bootstrap: str, form: str = "auto") -> None:
        """`form`: `live`, `text`, `json`, or `auto`, which is live on a terminal and text elsewhere."""
        self._cluster = Cluster(bootstrap)
        self._console = Console(stderr=True)
        self._form = ("live" if self._console.is_terminal else "text") if form == "auto" else form
        self._live = Live(console=self._console, auto_refresh=False) if self._form == "live" else None
        self._lag: dict[str, dict[str, dict[int, int]]] = {}
        self._requested_at = 0.0
        self._run: Run | None = None

    def __enter__(self) -> Screen:
        if self._live is not None and sys.stdout.isatty():
            results.show_by(self._console.print)  # otherwise the live table would overwrite them
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        results.show_by(None)
        if self._live is None:
            return
        if self._run is not None:
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
            Console(stderr=True, width=140).print(self._table(run))
        how = "failed" if error is not None else "stopped" if run.was_stopped else "done"
        done = "" if run.counts is None else f": {run.counts.rows_in} records read, {run.counts.rows_out} written"
        print(f"{run.name} {how} after {run.seconds:.1f} s{done}", file=sys.stderr, flush=True)

    def _facts(self, run: Run, error: PipelineError | None) -> dict[str, object]:
        queries = {
            name: {"batches": t.batches, "rows_in": t.rows_in, "rows_out": t.rows_out, "late": t.late,
                   "busy_ms": t.busy_ms, "lag": self._lag.get(name, {})}
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

    def _table(self, run: Run) -> Table:
        table = Table(title=Text(f"{run.name} at {run.bootstrap}, {run.seconds:.0f} s"), title_justify="left")
        for column in COLUMNS:
            table.add_column(column, justify="left" if column in ("query", "lag") else "right")
        last = {batch.query: batch for batch in run.progress.batches}
        for name, t in run.progress.totals.items():
            seconds = max(run.seconds, 0.001)
            duration = f"{last[name].duration_ms} ms" if name in last else "-"
            flow = Text(name.removeprefix(f"{run.name}."))
            table.add_row(
                flow, f"{t.batches}", f"{t.rows_in:,}", f"{t.rows_out:,}", f"{t.late:,}",
                f"{t.rows_in / seconds:,.0f}", f"{t.rows_out / seconds:,.0f}", duration, lag_text(self._lag.get(name)),
            )  # fmt: skip
        return table


def lag_text(lags: dict[str, dict[int, int]] | None) -> str:
    """Lag by partition: `orders 0 0 12`, or `-` if unknown."""
    if not lags:
        return "-"
    return "; ".join(f"{topic} {' '.join(str(own[p]) for p in sorted(own))}" for topic, own in sorted(lags.items()))


def _line(batch: Batch) -> str:
    rate = batch.rows_in * 1000 / max(batch.duration_ms, 1)
    late = f", {batch.late} too late" if batch.late else ""
    return (
        f"{batch.at:%H:%M:%S} {batch.query} batch {batch.batch}: {batch.rows_in:,} in, {batch.rows_out:,} out{late}, "
        f"{batch.duration_ms} ms, {rate:,.0f} rows/s"
    )
