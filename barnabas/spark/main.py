"""Runs a job, from its file to its exit code: `barnabas pipeline run`."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.spark.checkpoint import Checkpoint
from barnabas.spark.errors import BrokerUnavailableError, MistakeError, PipelineError
from barnabas.spark.jobs import find_job
from barnabas.spark.report.screen import Screen
from barnabas.spark.run import Run, run_job
from barnabas.spark.settings.config import JobConfig, Source, read_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERRUPTED = 130
UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}


def execute(
    job: str,
    bootstrap: str,
    path: Path,
    *,
    once: bool = False,
    every: str | None = None,
    checkpoint: str | None = None,
    start: str | None = None,
    report: Path | None = None,
    progress: str = "auto",
    spark: SparkSession | None = None,
) -> int:
    """Run a job and show its progress on stderr; returns 0, 1 if it failed, or 130 if SIGINT or SIGTERM stopped it.

    MistakeError for a mistake in the options or the file, BrokerUnavailableError if no broker answers.
    `every` is a time like `10s`, `start` a value for [source] start. `spark`: a session to use, which is not stopped;
    otherwise one is started, and stopped at the end.
    """
    definition = find_job(job)
    config = _changed(read_config(path, definition.config), checkpoint, start)
    interval = None if every is None else interval_of(every)
    if report is not None:
        from barnabas.spark.report.report import check_writable

        check_writable(report)
    run = Run(definition, config, bootstrap)
    failure: PipelineError | None = None
    with Screen(run.broker, progress) as screen:
        run.on_wait = screen.waiting
        try:
            run_job(run, once=once, every=interval, watch=screen.watch, spark=spark)
        except MistakeError:
            raise
        except PipelineError as error:
            if isinstance(error, BrokerUnavailableError) and not run.began:
                raise
            failure = error
        except KeyboardInterrupt:
            run.was_stopped = True
        failure = failure or nothing_fits(run)
    screen.summary(run, failure)
    if report is not None:
        from barnabas.spark.report.report import write_report

        write_report(run, failure, report)
    if failure is not None and progress != "json":
        print(f"barnabas pipeline: {failure}", file=sys.stderr)
    if failure is not None:
        return failure.exit_code
    return INTERRUPTED if run.was_stopped else 0


def nothing_fits(run: Run) -> PipelineError | None:
    """The error of a first run of whose records not one matches the schema: the schema must be wrong."""
    letters = run.progress.totals.get(f"{run.name}.dead-letters")
    if not run.is_first or letters is None or not letters.rows_in or letters.rows_out < letters.rows_in:
        return None
    topic = getattr(run.config, "dead_letters").topic  # noqa: B009 - of jobs that have it
    return PipelineError(
        f"not one of {letters.rows_in:,} records matches the schema: they are in {topic}, with the reason in a header; "
        "correct [schema], and run with a new checkpoint and output"
    )


def interval_of(text: str) -> str:
    """`10s` in Spark's form; MistakeError for anything else."""
    match = re.fullmatch(r"(\d+)\s*(ms|s|m|h)", text.strip())
    if match is None:
        raise MistakeError(f"--every is a time like 10s, 500ms or 1m, not {text!r}")
    return f"{match[1]} {UNITS[match[2]]}"


def _changed(config: JobConfig, checkpoint: str | None, start: str | None) -> JobConfig:
    """The config with the values of the command line."""
    if checkpoint:
        config = config.model_copy(update={"checkpoint": checkpoint})
    if not start:
        return config
    source = getattr(config, "source", None)
    if not isinstance(source, Source):
        raise MistakeError("--start is for jobs that read a topic")
    if config.checkpoint and any(position.batch >= 0 for position in Checkpoint(config.checkpoint).positions()):
        raise MistakeError(
            f"--start has no effect on a checkpoint that is in use ({config.checkpoint}): name a new one with "
            "--checkpoint"
        )
    return config.model_copy(update={"source": source.model_copy(update={"start": _start(start)})})


def _start(text: str) -> str | datetime:
    if text in ("earliest", "latest"):
        return text
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise MistakeError(f"--start is earliest, latest or a time like 2026-01-31T12:00:00Z, not {text!r}") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
