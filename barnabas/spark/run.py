"""Runs a job: checks everything that can be checked before Spark starts, starts the queries, and watches them.

Order of the checks: the file, Java, the broker, the topics, the checkpoint and the output, the jars. Then Spark starts
and checks types, expressions and functions before it reads a record. If a query fails, the others are stopped and the
run ends; if a Python worker did not start in time, all queries continue from their checkpoint.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from barnabas.spark.activity import say
from barnabas.spark.checkpoint import Checkpoint, Owner
from barnabas.spark.errors import MistakeError, PipelineError
from barnabas.spark.failures import WorkerNotStartedError, sentence_of
from barnabas.spark.job import BatchCounts, Flow, Job
from barnabas.spark.progress import ROWS, Batch, Progress
from barnabas.spark.session.spark import ATTEMPTS, check_machine, log_file, session
from barnabas.spark.settings.config import JobConfig, Source
from barnabas.spark.settings.security import secured_broker
from barnabas.spark.topics.broker import Broker
from barnabas.spark.topics.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_S = 0.25
"""Interval between two checks of the queries, seconds."""


@dataclass
class Run:
    """The state and the result of one run."""

    job: Job
    config: JobConfig
    bootstrap: str
    progress: Progress = field(default_factory=Progress)
    counts: BatchCounts | None = None
    """Counts of a batch job."""
    began: float = 0.0
    """Monotonic time at which the first query was started, after Spark's start."""
    ended: float = 0.0
    was_stopped: bool = False
    """Stopped by SIGINT or SIGTERM before it was done."""
    phases: dict[str, float] = field(default_factory=dict)
    """What took how many seconds."""
    outputs: dict[str, str] = field(default_factory=dict)
    """The topic or directory of each flow."""
    doing: dict[str, str] = field(default_factory=dict)
    """What each query that is busy is doing."""
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    is_first: bool = False
    """Its checkpoint was new."""
    on_wait: Callable[[str], None] = lambda _: None
    """Called with the address of a broker that does not answer yet, before it is tried again."""

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.config.name or self.job.name

    @cached_property
    def broker(self) -> Broker:
        """The broker of the job. MistakeError if [security] is wrong."""
        return secured_broker(self.bootstrap, self.config.security)

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the duration of the block to a phase."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.phases[phase] = self.phases.get(phase, 0) + time.monotonic() - began

    @property
    def seconds(self) -> float:
        """Duration without Spark's start, seconds."""
        return (self.ended or time.monotonic()) - self.began if self.began else 0.0


Watcher = Callable[[Run, list[Batch]], None]
"""Called at every check, with the batches completed since the last."""


def run_job(
    run: Run,
    *,
    once: bool,
    every: str | None,
    watch: Watcher,
    spark: SparkSession | None = None,
) -> None:
    """Run until all is read (`once`), or until SIGINT or SIGTERM.

    `every`: interval between micro-batches, `10 seconds`; without it they follow immediately. `spark`: a session to
    use; otherwise one is started and stopped. MistakeError or BrokerUnavailableError before anything is started;
    PipelineError when it fails.
    """
    own = spark is None
    if own:
        check_machine()
    with run.timed("checks"):
        checkpoint = prepare(run)
    with run.timed("start of Spark"):
        spark = spark or _session(run, checkpoint)
    try:
        run.began = time.monotonic()
        trigger = {"availableNow": True} if once else {"processingTime": every or "0 seconds"}
        with run.timed("queries" if run.job.run is None else "job"):
            _execute(run, spark, checkpoint, trigger, watch)
    except PipelineError as error:
        error.log = log_file()
        raise
    finally:
        run.ended = time.monotonic()
        if own:
            spark.stop()


def _session(run: Run, checkpoint: Checkpoint | None) -> SparkSession:
    own = run.config.spark
    settings = {key: str(value) for key, value in own.settings.items()}
    log = checkpoint.local / "spark.log" if checkpoint and checkpoint.local else None
    return session(f"barnabas {run.name}", master=own.master, packages=own.packages, settings=settings, log=log)


def _execute(
    run: Run, spark: SparkSession, checkpoint: Checkpoint | None, trigger: dict[str, Any], watch: Watcher
) -> None:
    """Run the queries, or the batch job; again, if a Python worker did not start. PipelineError if that fails.

    The driver starts the worker of a stateful query itself, so Spark does not try that again as it does with a task.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _attempt(run, spark, checkpoint, trigger, watch)
        except WorkerNotStartedError as error:
            if attempt == ATTEMPTS:
                raise
            say(f"{error}; {run.name} continues where it was, attempt {attempt + 1} of {ATTEMPTS}")
        else:
            return


def _attempt(
    run: Run, spark: SparkSession, checkpoint: Checkpoint | None, trigger: dict[str, Any], watch: Watcher
) -> None:
    try:
        if run.job.run is not None:
            run.counts = run.job.run(spark, run.broker, run.config)
        else:
            assert checkpoint is not None
            _stream(run, spark, checkpoint, trigger, watch)
    except (PySparkException, Py4JError) as error:
        raise sentence_of(error, run.bootstrap) from error


def prepare(run: Run) -> Checkpoint | None:
    """All checks before Spark starts; creates the topics that the job writes to."""
    config, job = run.config, run.job
    _check_loops(run)
    cluster = Cluster(run.broker)
    known = cluster.wait_for_topics(config.broker_wait_s, run.on_wait)
    source = job.source(config)
    topics = cluster.matching(source.topics, source.pattern) if source else {}
    checkpoint = None
    if job.run is None:
        if not config.checkpoint:
            raise MistakeError(f'the job {run.name} has no checkpoint: add checkpoint = "DIRECTORY" to its file')
        checkpoint = Checkpoint(config.checkpoint)
        run.is_first = checkpoint.is_new
        _check_output(run, checkpoint)
        checkpoint.claim(_owner(run, source, cluster.topic_ids(topics)))
    for output in job.topics(config):
        if output.broker:
            other = Cluster(output.broker)
            other.wait_for_topics(config.broker_wait_s, run.on_wait)
            other.create(output.topic, output.partitions, output.config)
        elif output.topic not in known:
            cluster.create(output.topic, output.partitions, output.config)
    return checkpoint


def _check_loops(run: Run) -> None:
    """Refuse a job that reads its own output, and two outputs in one topic."""
    source = run.job.source(run.config)
    seen: set[str] = set()
    for output in run.job.topics(run.config):
        elsewhere = output.broker is not None and output.broker.bootstrap != run.bootstrap
        if source is not None and output.topic in source.topics and not elsewhere:
            raise MistakeError(f"the job {run.name} would read its own output: {output.topic} is its source and output")
        if output.topic in seen:
            raise MistakeError(f"the job {run.name} has two outputs in {output.topic}: use a topic for each")
        seen.add(output.topic)


def _check_output(run: Run, checkpoint: Checkpoint) -> None:
    """Check that the files of a local output belong to this checkpoint.

    Spark would skip batches that another checkpoint has written there, and would not report missing files.
    """
    files = run.job.files(run.config)
    if files is None or "://" in files[1]:
        return
    flow, path = files[0], Path(files[1])
    if not checkpoint.has_begun(flow) and _make_directory(path) and any(path.iterdir()):
        raise MistakeError(
            f"the output {path} holds files that were not written with the checkpoint {checkpoint.path}: name an empty "
            "or new directory"
        )
    if checkpoint.batch(flow) >= 0 and not (path / "_spark_metadata").is_dir():
        raise MistakeError(
            f"the output {path} is missing, but the checkpoint {checkpoint.path} counts its files as written: restore "
            "it, or name a new checkpoint to write it again"
        )


def _make_directory(path: Path) -> bool:
    """Create a directory; True, or MistakeError if it cannot be created or written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MistakeError(f"the output {path} cannot be created: {error.strerror}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise MistakeError(f"the output {path} is not writable for this user")
    return True


def _owner(run: Run, source: Source | None, topic_ids: dict[str, str]) -> Owner:
    where = "" if source is None else source.pattern or ",".join(source.topics)
    return Owner(run.job.name, run.name, where, run.job.output(run.config), run.job.fields(run.config), topic_ids)


def _stream(run: Run, spark: SparkSession, checkpoint: Checkpoint, trigger: dict[str, Any], watch: Watcher) -> None:
    """Run the flows as queries until they end.

    A stop by systemd reaches Spark's Python workers too: what fails after the signal is a part of the stop.
    """
    stopping = threading.Event()
    queries: list[StreamingQuery] = []
    with _set_by_signals(stopping):
        try:
            flows = run.job.flows(spark, run.broker, run.config)
            run.outputs = {flow.name: flow.sink.where for flow in flows}
            queries.extend(_start(run, flow, checkpoint, trigger) for flow in flows)
            _watch(run, queries, watch, stopping)
        except (PySparkException, Py4JError, PipelineError):
            if not stopping.is_set():
                raise
            run.was_stopped = True
        finally:
            for query in queries:
                query.stop()
    watch(run, run.progress.look(queries))
    for name, totals in run.progress.totals.items():
        totals.begin(checkpoint.first_offsets(name.removeprefix(f"{run.name}.")))


def _start(run: Run, flow: Flow, checkpoint: Checkpoint, trigger: dict[str, Any]) -> StreamingQuery:
    counted = flow.sink.ready(flow.frame).observe(ROWS, f.count(f.lit(1)).alias("rows"))
    writer = (
        counted.writeStream.queryName(f"{run.name}.{flow.name}")
        .outputMode(flow.output_mode)
        .option("checkpointLocation", checkpoint.flow(flow.name))
        .trigger(**trigger)
    )
    return flow.sink.start(writer, run.broker)


def _watch(run: Run, queries: list[StreamingQuery], watch: Watcher, stopping: threading.Event) -> None:
    """Wait until every query has ended, one has failed, or the run is stopped."""
    while not stopping.is_set():
        active = [query for query in queries if query.isActive]
        failed = next((error for query in queries if (error := query.exception()) is not None), None)
        run.doing = _doing(active)
        watch(run, run.progress.look(queries))
        if failed is not None:
            raise sentence_of(failed, run.bootstrap)
        if not active:
            return
        stopping.wait(LOOK_S)
    run.was_stopped = True


def _doing(queries: list[StreamingQuery]) -> dict[str, str]:
    """What each query that has work is doing, in Spark's words."""
    statuses = {query.name: query.status for query in queries}
    return {name: status["message"] for name, status in statuses.items() if status["isTriggerActive"]}


@contextmanager
def _set_by_signals(stopping: threading.Event) -> Iterator[None]:
    """Set `stopping` on SIGINT and SIGTERM; does nothing outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: stopping.set()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
