"""`barnabas pipeline`: run PySpark jobs against a broker, and show their progress."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from barnabas.cli.command_groups import Group
from barnabas.cli.options.parameters import bootstrap_option, output_option
from barnabas.terminal.notes import note
from barnabas.terminal.tables import show_rows

NEEDED = ("pyspark", "pydantic", "pyarrow", "pandas", "confluent_kafka", "jinja2", "matplotlib")


@click.group(cls=Group)
def pipeline() -> None:
    """Run Spark jobs against a broker: etl, analytics, logs, events, archive, restore, copy."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        from barnabas.spark.errors import INSTALL

        raise click.UsageError(f"the pipeline needs {missing[0]}: {INSTALL}")


@pipeline.command("list")
@output_option
def list_(output: str) -> None:
    """List the jobs."""
    from barnabas.spark.jobs import NAMES, find_job

    show_rows([{"job": name, "what": find_job(name).summary} for name in NAMES], output)


@pipeline.command()
@click.argument("job")
@bootstrap_option
@click.option(
    "--config", "path", type=click.Path(path_type=Path), required=True, metavar="FILE", help="The job's TOML file."
)
@click.option("--once", is_flag=True, help="Read the records that are there now, then end.")
@click.option("--every", metavar="TIME", help="Interval between micro-batches: 10s, 1m. Default: none.")
@click.option("--checkpoint", metavar="DIR", help="Overrides the file's checkpoint.")
@click.option(
    "--start", metavar="WHERE", help="Overrides the file's start, for a new checkpoint: earliest, latest or a time."
)
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE", help="Write an HTML page about the run.")
@click.option(
    "--progress", type=click.Choice(["auto", "live", "text", "json"]), default="auto", show_default=True,
    help="Form of the progress on stderr.",
)  # fmt: skip
@click.pass_context
def run(
    context: click.Context,
    job: str,
    bootstrap: str,
    path: Path,
    once: bool,
    every: str | None,
    checkpoint: str | None,
    start: str | None,
    report: Path | None,
    progress: str,
) -> int:
    """Run JOB until it is stopped; with --once until all is read."""
    from barnabas.spark.errors import PipelineError
    from barnabas.spark.main import execute

    if once and every:
        raise click.UsageError("--once and --every exclude each other", context)
    try:
        return execute(job, bootstrap, path, once=once, every=every, checkpoint=checkpoint, start=start,
                       report=report, progress=progress)  # fmt: skip
    except PipelineError as error:
        note(f"barnabas pipeline: {error}")
        return error.exit_code


@pipeline.command()
@click.option("-b", "--bootstrap", metavar="HOST:PORT", help="A running broker. By default one is started and stopped.")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A new working directory, which is kept. Default: a temporary one.",
)
@click.option(
    "--report-dir",
    type=click.Path(path_type=Path),
    default=Path("demo-report"),
    show_default=True,
    metavar="DIR",
    help="Directory for the report and its plots.",
)
@click.option("--resume", is_flag=True, help="Continue the demonstration in --data-dir after a failure.")
@click.option("--flights", "count", type=click.IntRange(min=1), metavar="N", help="Only the first N flights.")
@click.option(
    "--progress", type=click.Choice(["auto", "live", "text", "json"]), default="auto", show_default=True,
    help="Form of the progress on stderr.",
)  # fmt: skip
def demo(
    bootstrap: str | None, data_dir: Path | None, report_dir: Path, resume: bool, count: int | None, progress: str
) -> int:
    """Run all seven jobs on real data, every flight from New York in 2013, and check each result.

    Exit code 1 if a result is wrong or a step fails. A demonstration that failed keeps its directory, and prints how to
    continue.
    """
    from barnabas.spark.demo.run import run_demo
    from barnabas.spark.errors import PipelineError

    if resume and count is not None:
        raise click.UsageError("--resume and --flights exclude each other: the number of flights was set at the start")
    try:
        return run_demo(bootstrap=bootstrap, data_dir=data_dir, report_dir=report_dir, count=count, progress=progress,
                        resume=resume)  # fmt: skip
    except PipelineError as error:
        note(f"barnabas pipeline: {error}")
        return error.exit_code


@pipeline.command()
@click.option("--config", "path", type=click.Path(path_type=Path), metavar="FILE", help="The job's TOML file.")
@click.option("--checkpoint", metavar="DIR", help="The job's checkpoint, without its file.")
@bootstrap_option
@output_option
def status(path: Path | None, checkpoint: str | None, bootstrap: str, output: str) -> int:
    """Show the progress of a job, from its checkpoint and the broker."""
    from barnabas.spark.errors import PipelineError
    from barnabas.spark.status import broker_at, checkpoint_of, status_rows

    try:
        where = checkpoint or checkpoint_of(path)
        show_rows(status_rows(where, broker_at(bootstrap, path)), output)
    except PipelineError as error:
        note(f"barnabas pipeline: {error}")
        return error.exit_code
    return 0
