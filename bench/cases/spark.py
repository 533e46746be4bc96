"""The cases of the group `Spark`: batch read, batch write, stream to Parquet, topic to topic. All counts are checked.

One session in `local[2]` is used for all cases and both brokers. It is warmed up first, because a cold JVM is several
times slower. The time of a case includes planning and the start of the clients, but not of the session. Spark does as
little work per record as possible: a sum of lengths, a constant value, or Parquet with a small dictionary.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from bench.cases.case import Case, Figures, Goal, Scale
from bench.target import Target
from tests.support.spark.connector_session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

PARTITIONS = 4
SETTINGS = {"log.segment.delete.delay.ms": "100"}  # deletes a topic of 5 GB before the next run
STREAM_TIMEOUT_S = 600
DELETE_TIMEOUT_S = 120
COUNTED = ("count(*)", "sum(length(value))")
GOALS = {"msg/s": Goal(1.0), "CPU s": Goal(0.5)}
Action = Callable[["SparkSession", Target, str, int, int], "Cost"]
"""Arguments: session, broker, filled topic, number of records, bytes per record. RuntimeError for a wrong result."""


@dataclass(frozen=True)
class Cost:
    """Seconds of an action, and CPU seconds of the broker in that time."""

    seconds: float
    cpu_s: float

    @classmethod
    def of(cls, target: Target, work: Callable[[], object]) -> Cost:
        """Do the work and measure it."""
        cpu_s, started = target.server.cpu_s(), time.monotonic()
        work()
        return cls(time.monotonic() - started, target.server.cpu_s() - cpu_s)


@cache
def session() -> SparkSession:
    """The session of this process; prints the duration of its start on stderr.

    The consumer cache is larger than its default of 64 consumers: closing an evicted consumer of the paused broker
    would block a task for seconds.
    """
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 2g pyspark-shell")
    started = time.monotonic()
    spark = spark_session(
        "bench",
        spark__ui__showConsoleProgress="false",
        spark__kafka__consumer__cache__capacity="10000",
        spark__kafka__consumer__cache__timeout="2h",
    )
    print(f"Spark {spark.version}: session started in {time.monotonic() - started:.1f} s", file=sys.stderr)
    return spark


def batch_read(spark: SparkSession, target: Target, topic: str, count: int, size: int) -> Cost:
    """Count all records of the topic, and add up the lengths of their values."""
    rows: list[Row] = []

    def work() -> None:
        rows.extend(_source(spark.read, target, topic).selectExpr(*COUNTED).collect())

    cost = Cost.of(target, work)
    _check("batch read", tuple(rows[0]), (count, count * size))
    return cost


def batch_write(spark: SparkSession, target: Target, _: str, count: int, size: int) -> Cost:
    """Write `count` records with a constant value to a new topic."""
    sink = target.create(PARTITIONS)
    frame = spark.range(0, count, 1, PARTITIONS).selectExpr(f"'{'x' * size}' as value")
    cost = Cost.of(target, _sink(frame.write, target, sink).save)
    _check_end(target, sink, count)
    return cost


def to_parquet(spark: SparkSession, target: Target, topic: str, count: int, size: int) -> Cost:
    """Write all records of the topic to Parquet files, with a streaming query."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        frame = _source(spark.readStream, target, topic).select("value")
        cost = _stream(target, frame.writeStream.format("parquet").option("path", f"{folder}/table"), folder)
        (row,) = spark.read.parquet(f"{folder}/table").selectExpr(*COUNTED).collect()
    _check("stream to Parquet", tuple(row), (count, count * size))
    return cost


def topic_to_topic(spark: SparkSession, target: Target, topic: str, count: int, _: int) -> Cost:
    """Write all records of the topic to another topic, with a streaming query."""
    sink = target.create(PARTITIONS)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        frame = _source(spark.readStream, target, topic).select("value")
        cost = _stream(target, _sink(frame.writeStream, target, sink), folder)
    _check_end(target, sink, count)
    return cost


def _source(reader: Any, target: Target, topic: str) -> DataFrame:
    options = {"kafka.bootstrap.servers": target.server.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    frame: DataFrame = reader.format("kafka").options(**options).load()
    return frame


def _sink(writer: Any, target: Target, topic: str) -> Any:
    return writer.format("kafka").option("kafka.bootstrap.servers", target.server.bootstrap).option("topic", topic)


def _stream(target: Target, writer: Any, folder: str) -> Cost:
    """Run a query for all available records, with its checkpoint in `folder`."""

    def work() -> None:
        query = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
        if not query.awaitTermination(STREAM_TIMEOUT_S):
            query.stop()
            raise RuntimeError(f"the stream did not end in {STREAM_TIMEOUT_S} s")

    return Cost.of(target, work)


def _check(name: str, found: object, expected: object) -> None:
    if found != expected:
        raise RuntimeError(f"{name}: {found} instead of {expected}")


def _check_end(target: Target, sink: str, count: int) -> None:
    """Check the number of records in the topic, delete it, and wait until its files are deleted."""
    _check("records stored", sum(target.end_offsets(sink, PARTITIONS)), count)
    target.delete(sink)
    deadline = time.monotonic() + DELETE_TIMEOUT_S
    while any(target.server.log_dir.glob(f"{sink}-*")):
        if time.monotonic() > deadline:
            raise RuntimeError(f"the files of {sink} were not deleted in {DELETE_TIMEOUT_S} s")
        time.sleep(0.05)


ACTIONS: dict[str, Action] = {
    "batch read": batch_read,
    "batch write": batch_write,
    "stream to Parquet": to_parquet,
    "topic to topic": topic_to_topic,
}


def measure(target: Target, scale: Scale, *, action: Action, size: int) -> Figures:
    """Records per second of an action, and the broker's CPU seconds."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    count = scale.spark_records if size < 1000 else scale.spark_large
    topic = target.fill_exactly(PARTITIONS, size, count)
    try:
        cost = action(session(), target, topic, count, size)
    except (Py4JError, PySparkException) as error:
        raise RuntimeError(str(error)) from error
    return {"msg/s": count / cost.seconds, "CPU s": cost.cpu_s}


def cases(scale: Scale) -> Iterator[Case]:
    """The cases of the group, in order."""
    for size, count in ((100, scale.spark_records), (1000, scale.spark_large)):
        label = f"{count / 1e6:g}M x {'100 B' if size < 1000 else '1 KB'}"
        for name, action in ACTIONS.items():
            yield Case(f"{name}, {label}", partial(measure, action=action, size=size), GOALS)


def warm_up(target: Target, scale: Scale) -> None:
    """Warm up both JVMs: every action with both record sizes."""
    small = replace(scale, spark_records=scale.spark_records // 2, spark_large=scale.spark_records // 5)
    for _ in range(scale.warmup_rounds):
        for action in ACTIONS.values():
            for size in (100, 1000):
                measure(target, small, action=action, size=size)
