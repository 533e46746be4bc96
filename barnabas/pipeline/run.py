"""Running a job: check everything that can be checked before Spark starts, start its queries, and watch them.

Order of the checks: the file, the broker, the topics, the checkpoint, Java and the jars. A query that fails ends the
run; the others are stopped first, so that no flow runs on alone.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from barnabas.pipeline.checkpoint import Checkpoint, Owner
from barnabas.pipeline.cluster import Cluster
from barnabas.pipeline.config import JobConfig, Source
from barnabas.pipeline.errors import MistakeError, PipelineError
from barnabas.pipeline.failures import sentence_of
from barnabas.pipeline.job import BatchCounts, Flow, Job
from barnabas.pipeline.progress import ROWS, Batch, Progress
from barnabas.pipeline.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_S = 0.25
"""How often queries are looked at; Spark is not slowed by it."""


@dataclass
class Run:
    """One run of a job, while it goes on and when it has ended."""

    job: Job
    config: JobConfig
    bootstrap: str
    progress: Progress = field(default_factory=Progress)
    counts: BatchCounts | None = None
    """Of a job that is no stream."""
    began: float = 0.0
    """Monotonic seconds when the first query was started: Spark's own start is apart."""
    ended: float = 0.0
    was_stopped: bool = False
    """Told to end before it was done."""
    is_first: bool = False
    """Its checkpoint was new."""
    on_wait: Callable[[str], None] = lambda _: None
    """Called with the address of a broker that does not answer yet, before it is tried again."""

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.config.name or self.job.name

    @property
    def seconds(self) -> float:
        """How long it has run without Spark's start."""
        return (self.ended or time.monotonic()) - self.began if self.began else 0.0


Watcher = Callable[[Run, list[Batch]], None]
"""Called at every look, with the batches that have ended since."""


def run_job(
    run: Run,
    *,
    once: bool,
    every: str | None,
    watch: Watcher,
    spark: SparkSession | None = None,
) -> None:
    """Run until all is read (`once`), or until told to stop (SIGINT, SIGTERM).

    `every`: how far micro-batches are apart, `10 seconds`; without it one follows the other. `spark`: a session to
    use; otherwise one is started, and ended. MistakeError or BrokerUnavailableError before anything is started;
    PipelineError when it fails.
    """
    config, job = run.config, run.job
    checkpoint = prepare(run)
    settings = {key: str(value) for key, value in config.spark.settings.items()}
    log = checkpoint.local / "spark.log" if checkpoint and checkpoint.local else None
    own = spark is None
    spark = spark or session(
        f"barnabas {run.name}", master=config.spark.master, packages=config.spark.packages, settings=settings, log=log
    )
    try:
        run.began = time.monotonic()
        if job.run is not None:
            run.counts = job.run(spark, run.bootstrap, config)
        else:
            assert checkpoint is not None
            trigger = {"availableNow": True} if once else {"processingTime": every or "0 seconds"}
            _stream(run, spark, checkpoint, trigger, watch)
        run.ended = time.monotonic()
    except PipelineError:
        raise
    except (PySparkException, Py4JError) as error:
        raise sentence_of(error, run.bootstrap) from error
    finally:
        run.ended = run.ended or time.monotonic()
        if own:
            spark.stop()


def prepare(run: Run) -> Checkpoint | None:
    """Everything that can be wrong before Spark starts; makes the topics that the job writes to."""
    config, job = run.config, run.job
    _check_loops(run)
    cluster = Cluster(run.bootstrap)
    known = cluster.wait_for_topics(config.broker_wait_s, run.on_wait)
    source = job.source(config)
    topics = _topics(cluster, source) if source else {}
    checkpoint = None
    if job.run is None:
        if not config.checkpoint:
            raise MistakeError(f'the job {run.name} has no checkpoint: add checkpoint = "DIRECTORY" to its file')
        checkpoint = Checkpoint(config.checkpoint)
        run.is_first = checkpoint.is_new
        _check_output(run, checkpoint)
        checkpoint.claim(_owner(run, source, cluster.topic_ids(topics)))
    for wanted in job.topics(config):
        if wanted.bootstrap:
            other = Cluster(wanted.bootstrap)
            other.wait_for_topics(config.broker_wait_s, run.on_wait)
            other.create(wanted.topic, wanted.partitions, wanted.config)
        elif wanted.topic not in known:
            cluster.create(wanted.topic, wanted.partitions, wanted.config)
    return checkpoint


def _check_loops(run: Run) -> None:
    """A topic that a job reads and writes would never end; two kinds of results in one topic cannot be told apart."""
    source = run.job.source(run.config)
    seen: set[str] = set()
    for wanted in run.job.topics(run.config):
        elsewhere = wanted.bootstrap not in ("", run.bootstrap)
        if source is not None and wanted.topic in source.topics and not elsewhere:
            raise MistakeError(f"the job {run.name} would read what it writes: {wanted.topic} is its source and output")
        if wanted.topic in seen:
            raise MistakeError(f"the job {run.name} has two outputs in {wanted.topic}: give each a topic of its own")
        seen.add(wanted.topic)


def _check_output(run: Run, checkpoint: Checkpoint) -> None:
    """The files of a local output belong to this checkpoint. Spark takes batches for done that another one has written
    there, and goes on without a word when files are gone that this one has written.
    """
    found = run.job.files(run.config)
    if found is None or "://" in found[1]:
        return
    flow, path = found[0], Path(found[1])
    if not checkpoint.has_begun(flow) and _make_directory(path) and any(path.iterdir()):
        raise MistakeError(
            f"the output {path} holds files that were not written with the checkpoint {checkpoint.path}: name an empty "
            "or new directory"
        )
    if checkpoint.batch(flow) >= 0 and not (path / "_spark_metadata").is_dir():
        raise MistakeError(
            f"the output {path} is gone, but the checkpoint {checkpoint.path} counts what was in it as written: put it "
            "back, or name a new checkpoint to write it again"
        )


def _make_directory(path: Path) -> bool:
    """True, or MistakeError when there cannot be a directory to write to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MistakeError(f"the output {path} cannot be made: {error.strerror}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise MistakeError(f"the output {path} may not be written to by this user")
    return True


def _topics(cluster: Cluster, source: Source) -> dict[str, int]:
    return cluster.matching(source.topics, source.pattern)


def _owner(run: Run, source: Source | None, topic_ids: dict[str, str]) -> Owner:
    where = "" if source is None else source.pattern or ",".join(source.topics)
    return Owner(run.job.name, run.name, where, run.job.output(run.config), run.job.fields(run.config), topic_ids)


def _stream(run: Run, spark: SparkSession, checkpoint: Checkpoint, trigger: dict[str, Any], watch: Watcher) -> None:
    stopping = threading.Event()
    queries: list[StreamingQuery] = []
    with _stopped_by_signals(stopping):
        try:
            flows = run.job.flows(spark, run.bootstrap, run.config)
            queries.extend(_start(run, flow, checkpoint, trigger) for flow in flows)
            _watch(run, queries, watch, stopping)
        finally:
            for query in queries:
                query.stop()
    watch(run, run.progress.look(queries))


def _start(run: Run, flow: Flow, checkpoint: Checkpoint, trigger: dict[str, Any]) -> StreamingQuery:
    counted = flow.sink.ready(flow.frame).observe(ROWS, f.count(f.lit(1)).alias("rows"))
    writer = (
        counted.writeStream.queryName(f"{run.name}.{flow.name}")
        .outputMode(flow.output_mode)
        .option("checkpointLocation", checkpoint.flow(flow.name))
        .trigger(**trigger)
    )
    return flow.sink.start(writer, run.bootstrap)


def _watch(run: Run, queries: list[StreamingQuery], watch: Watcher, stopping: threading.Event) -> None:
    """Until every query has ended, one has failed, or the run is told to stop."""
    while not stopping.is_set():
        active = [query for query in queries if query.isActive]
        failed = next((error for query in queries if (error := query.exception()) is not None), None)
        watch(run, run.progress.look(queries))
        if failed is not None:
            raise sentence_of(failed, run.bootstrap)
        if not active:
            return
        stopping.wait(LOOK_S)
    run.was_stopped = True


@contextmanager
def _stopped_by_signals(stopping: threading.Event) -> Iterator[None]:
    """SIGINT and SIGTERM end the run after what it is doing; in another thread than the main one nothing is changed."""
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
