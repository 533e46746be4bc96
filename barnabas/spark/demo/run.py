"""Runs the demonstration: starts a broker, produces the flights, runs the jobs, checks and reports the results.

Each job runs as with `barnabas pipeline run JOB --config FILE --once`, but in one Spark session, because its start
takes seconds. Files are in a temporary directory, or in `--data-dir`, which is kept. A demonstration that failed keeps
its directory and continues with `--resume`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.spark.activity import saying
from barnabas.spark.demo import checks, flights, topics
from barnabas.spark.demo.page import Timing, write_page
from barnabas.spark.demo.steps import FILE, Steps
from barnabas.spark.demo.summary import SummaryTable, summary_tables
from barnabas.spark.errors import MistakeError, PipelineError
from barnabas.spark.jobs import NAMES, find_job
from barnabas.spark.report.report import write_report
from barnabas.spark.report.screen import Screen
from barnabas.spark.run import Run, run_job
from barnabas.spark.session.spark import check_machine, log_file, session
from barnabas.spark.settings.config import read_config
from barnabas.terminal.tables import show_rows

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession

# --- the broker

STOP_TIMEOUT_S = 30


@contextmanager
def running_broker(work: Path) -> Iterator[str]:
    """Run a broker with its data in `work`; yields its address. PipelineError if it does not start.

    It has its own process group, so Ctrl-C is sent only to the demonstration, which then stops the broker.
    """
    ready = work / "broker-ready"
    command = [sys.executable, "-m", "barnabas", "serve", "--listen", "127.0.0.1:0", "--ready-file", str(ready)]
    command += ["--data-dir", str(work / "broker")]
    log = work / "broker.log"
    with log.open("ab") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, process_group=0
        )
    try:
        assert process.stdout is not None
        if not process.stdout.readline():  # the ready line, written after the ready file; empty if the broker exited
            raise PipelineError(f"the broker did not start: {log.read_text().strip().splitlines()[-1:]}")
        yield ready.read_text().strip()
    finally:
        process.terminate()
        try:
            process.communicate(timeout=STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


# --- the demonstration

INTERRUPTED = 130


def run_demo(
    *,
    bootstrap: str | None,
    data_dir: Path | None,
    report_dir: Path,
    count: int | None,
    progress: str,
    resume: bool = False,
) -> int:
    """Run the demonstration; returns 0 if all checks pass, 1 if one fails, 130 if interrupted.

    `bootstrap`: a running broker; by default one is started. `data_dir`: a new working directory, which is kept.
    `count`: the number of flights to use. `resume`: continue the failed demonstration of `data_dir`. PipelineError if
    a step fails; the directory is kept then, and the error says how to continue.
    """
    began = time.monotonic()
    with ExitStack() as stack:
        work = stack.enter_context(_work_directory(data_dir, bootstrap, resume=resume))
        check_machine()
        steps = Steps.resume(work) if resume else Steps.begin(work, count)
        with saying("reading the flights"):
            data = flights.load(steps.count)
        address = bootstrap or stack.enter_context(running_broker(work))
        print(f"{len(data):,} flights, broker {address}, directory {work}\n", flush=True)
        timings = _run_steps(steps, data, address, work, report_dir, progress, stack, resume=resume)
        if timings is None:
            _delete_topics(bootstrap, data_dir)
            return INTERRUPTED
        with saying("comparing the results with the data file"):
            results = checks.collect(_spark(work, stack), address, work)
        _delete_topics(bootstrap, data_dir)
    compared = checks.compare(results, data)
    tables = summary_tables(results, flights.airlines())
    page = write_page(report_dir, compared, tables, timings, results)
    _print_results(compared, tables, timings)
    failed = sum(not check.passed for check in compared)
    passed = f"{len(compared) - failed} of {len(compared)} checks passed"
    print(f"\n{passed}; {time.monotonic() - began:.0f} s in total; report: {page}")
    return 1 if failed else 0


def _run_steps(
    steps: Steps,
    data: pd.DataFrame,
    address: str,
    work: Path,
    report_dir: Path,
    progress: str,
    stack: ExitStack,
    *,
    resume: bool,
) -> list[Timing] | None:
    """Produce the topics and run the jobs that are not done; None if stopped by a signal."""
    if not resume:
        topics.create(address)
    timings: list[Timing] = []
    for topic, records in (("flights", flights.events), ("flight-log", flights.log_lines)):
        step = f"produce {topic}"
        if resume and not steps.is_done(step):
            topics.empty(address, topic)
        done = steps.run(step, partial(_produce, address, topic, records, data))
        assert done is not None
        timings.append(done)
    for name in NAMES:
        done = steps.run(name, partial(_run, name, address, work, report_dir, progress, stack))
        if done is None:
            return None
        timings.append(done)
    return timings


def _spark(work: Path, stack: ExitStack) -> SparkSession:
    """The session of the demonstration; started at the first call."""
    started = time.monotonic()
    is_first = log_file() is None
    spark = session("barnabas demo", log=work / "spark.log")
    if is_first:
        stack.callback(spark.stop)
        print(f"Spark started in {time.monotonic() - started:.1f} s", flush=True)
    return spark


def _delete_topics(bootstrap: str | None, data_dir: Path | None) -> None:
    """Delete the topics in a broker of the user, unless the directory is kept too."""
    if bootstrap and data_dir is None:
        topics.delete(bootstrap)


@contextmanager
def _work_directory(directory: Path | None, bootstrap: str | None, *, resume: bool) -> Iterator[Path]:
    """The given directory, which must be new or empty and is kept, or, to resume, that of a demonstration.

    Otherwise a temporary one, which is kept if a step fails.
    """
    if resume and directory is None:
        raise MistakeError("--resume needs the --data-dir of the demonstration")
    if directory is not None and not resume and directory.exists() and any(directory.iterdir()):
        more = ", or continue its demonstration with --resume" if (directory / FILE).exists() else ""
        raise MistakeError(f"{directory} is not empty: choose a new directory{more}")
    if directory is not None and not resume:
        directory.mkdir(parents=True, exist_ok=True)
    work = directory.resolve() if directory is not None else Path(tempfile.mkdtemp(prefix="barnabas-demo-"))
    is_kept = directory is not None
    try:
        yield work
    except MistakeError:
        raise
    except PipelineError as error:
        is_kept = True
        at = f" --bootstrap {bootstrap}" if bootstrap else ""
        error.hint = f"to continue: barnabas pipeline demo --data-dir {work}{at} --resume"
        raise
    finally:
        if not is_kept:
            shutil.rmtree(work, ignore_errors=True)


def job_file(name: str, work: Path) -> Path:
    """Write the file of a job for this directory, from its template here."""
    text = (Path(__file__).parent / f"{name}.toml").read_text()
    file = work / "jobs" / f"{name}.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text.replace("WORK", str(work)))
    return file


def _produce(
    bootstrap: str, topic: str, records: Callable[[pd.DataFrame], Iterable[flights.Record]], data: pd.DataFrame
) -> Timing:
    done = Timing(f"produce {topic}", *topics.produce(bootstrap, topic, records(data)))
    print(f"{done.records:,} records to {topic} in {done.seconds:.1f} s, {done.rate:,.0f} records/s", flush=True)
    return done


def _run(name: str, bootstrap: str, work: Path, report_dir: Path, progress: str, stack: ExitStack) -> Timing | None:
    """Run one job as `barnabas pipeline run` does, and write its report; None if it was stopped by a signal."""
    spark = _spark(work, stack)
    job, file = find_job(name), job_file(name, work)
    run = Run(job, read_config(file, job.config), bootstrap)
    print(f"\n== barnabas pipeline run {name} --once --config {file}", flush=True)
    with Screen(bootstrap, progress) as screen:
        run_job(run, once=True, every=None, watch=screen.watch, spark=spark)
    screen.summary(run, None)
    if run.was_stopped:
        return None
    write_report(run, None, report_dir / f"{name}.html")
    return Timing(name, _records(run), run.seconds)


def _records(run: Run) -> int:
    """The number of records that a job has read; each of its queries reads all of them."""
    return (
        run.counts.rows_in
        if run.counts
        else max((totals.rows_in for totals in run.progress.totals.values()), default=0)
    )


def _print_results(compared: Sequence[checks.Check], tables: Sequence[SummaryTable], timings: Sequence[Timing]) -> None:
    for table in tables:
        if table.rows:
            print(f"\n{table.title} ({table.job}):")
            show_rows(table.rows, "table")
    rows = [{"step": t.step, "records": t.records, "seconds": round(t.seconds, 1), "records_per_second": round(t.rate)}
            for t in timings]  # fmt: skip
    print("\nDuration of each step:")
    show_rows(rows, "table")
    print("\nChecked against the data file, with pandas:")
    for check in compared:
        print(f"  {'ok   ' if check.passed else 'WRONG'}  {check.job}: {check.description}")
