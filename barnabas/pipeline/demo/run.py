"""Runs the demonstration: starts a broker, produces the flights, runs the jobs, checks and reports the results.

Each job runs as with `barnabas pipeline run JOB --config FILE --once`, but in one Spark session, because its start
takes seconds. Files are in a temporary directory, or in `--data-dir`, which is kept.
"""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.pipeline.config import read_config
from barnabas.pipeline.demo import checks, flights, topics
from barnabas.pipeline.demo.broker import running_broker
from barnabas.pipeline.demo.page import Timing, write_page
from barnabas.pipeline.demo.summary import SummaryTable, summary_tables
from barnabas.pipeline.errors import MistakeError
from barnabas.pipeline.jobs import NAMES, find_job
from barnabas.pipeline.report import write_report
from barnabas.pipeline.run import Run, run_job
from barnabas.pipeline.screen import Screen
from barnabas.pipeline.spark import check_machine, session
from barnabas.terminal.tables import show_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERRUPTED = 130


def run_demo(
    *, bootstrap: str | None, data_dir: Path | None, report_dir: Path, count: int | None, progress: str
) -> int:
    """Run the demonstration; returns 0 if all checks pass, 1 if one fails, 130 if interrupted.

    `bootstrap`: a running broker; by default one is started. `data_dir`: a new working directory, which is kept.
    `count`: the number of flights to use. PipelineError if a step fails.
    """
    began = time.monotonic()
    check_machine()
    data = flights.load(count)
    with ExitStack() as stack:
        stack.enter_context(_ended_by_sigterm())
        work = stack.enter_context(_work_directory(data_dir))
        address = bootstrap or stack.enter_context(running_broker(work))
        print(f"{len(data):,} flights, broker {address}, directory {work}\n", flush=True)
        topics.create(address)
        if bootstrap and data_dir is None:
            stack.callback(topics.delete, bootstrap)
        timings = [
            _produce(address, "flights", flights.events(data)),
            _produce(address, "flight-log", flights.log_lines(data)),
        ]
        started = time.monotonic()
        spark = session("barnabas demo", log=work / "spark.log")
        stack.callback(spark.stop)
        print(f"Spark started in {time.monotonic() - started:.1f} s", flush=True)
        for name in NAMES:
            run = _run(name, job_file(name, work), address, spark, progress)
            if run.was_stopped:
                return INTERRUPTED
            write_report(run, None, report_dir / f"{name}.html")
            timings.append(Timing(name, _records(run), run.seconds))
        results = checks.collect(spark, address, work)
    found = checks.compare(results, data)
    tables = summary_tables(results, flights.airlines())
    page = write_page(report_dir, found, tables, timings, results)
    _print_results(found, tables, timings)
    failed = sum(not check.passed for check in found)
    passed = f"{len(found) - failed} of {len(found)} checks passed"
    print(f"\n{passed}; {time.monotonic() - began:.0f} s in total; report: {page}")
    return 1 if failed else 0


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C: stop the broker and delete the directory. Jobs handle both themselves."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _work_directory(given: Path | None) -> Iterator[Path]:
    """The given directory, which must be new or empty and is kept; otherwise a temporary one."""
    if given is None:
        with tempfile.TemporaryDirectory(prefix="barnabas-demo-") as path:
            yield Path(path)
        return
    if given.exists() and any(given.iterdir()):
        raise MistakeError(f"{given} is not empty: choose a new directory")
    given.mkdir(parents=True, exist_ok=True)
    yield given.resolve()


def job_file(name: str, work: Path) -> Path:
    """Write the file of a job for this directory, from its template here."""
    text = (Path(__file__).parent / f"{name}.toml").read_text()
    file = work / "jobs" / f"{name}.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text.replace("WORK", str(work)))
    return file


def _produce(bootstrap: str, topic: str, records: Iterable[flights.Record]) -> Timing:
    done = Timing(f"produce {topic}", *topics.produce(bootstrap, topic, records))
    print(f"{done.records:,} records to {topic} in {done.seconds:.1f} s, {done.rate:,.0f} records/s", flush=True)
    return done


def _run(name: str, file: Path, bootstrap: str, spark: SparkSession, progress: str) -> Run:
    """Run one job as `barnabas pipeline run` does."""
    job = find_job(name)
    run = Run(job, read_config(file, job.config), bootstrap)
    print(f"\n== barnabas pipeline run {name} --once --config {file}", flush=True)
    with Screen(bootstrap, progress) as screen:
        run_job(run, once=True, every=None, watch=screen.watch, spark=spark)
    screen.summary(run, None)
    return run


def _records(run: Run) -> int:
    """The number of records that a job has read; each of its queries reads all of them."""
    return run.counts.rows_in if run.counts else max(totals.rows_in for totals in run.progress.totals.values())


def _print_results(found: Sequence[checks.Check], tables: Sequence[SummaryTable], timings: Sequence[Timing]) -> None:
    for table in tables:
        if table.rows:
            print(f"\n{table.title} ({table.job}):")
            show_rows(table.rows, "table")
    rows = [{"step": t.step, "records": t.records, "seconds": round(t.seconds, 1), "records_per_second": round(t.rate)}
            for t in timings]  # fmt: skip
    print("\nDuration of each step:")
    show_rows(rows, "table")
    print("\nChecked against the data file, with pandas:")
    for check in found:
        print(f"  {'ok   ' if check.passed else 'WRONG'}  {check.job}: {check.description}")
