"""restore: an archive back into a topic, byte for byte: keys, values, headers, timestamps, partitions and order.

Each partition is written in transactions of some thousand records, in which a group commits the position in the
archive. An interrupted restore continues from there, a completed one does nothing, and no record is written twice.
Offsets are new: the broker assigns them, and transaction markers use offsets as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from pydantic import Field
from pyspark.errors import AnalysisException
from pyspark.sql import functions as f

from barnabas.spark.errors import MistakeError
from barnabas.spark.frames.sql import sql
from barnabas.spark.job import BatchCounts, Job
from barnabas.spark.jobs.archive import TYPES
from barnabas.spark.settings.config import JobConfig, Table
from barnabas.spark.topics.broker import Broker
from barnabas.spark.topics.cluster import Cluster
from barnabas.spark.topics.transactions import Row, Target, TransactionalWriter

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

CHUNK = 10_000
"""Records of one transaction."""
KEEP = {"retention.ms": "-1"}
"""Configs of a topic created by a restore."""


class ArchiveToRead(Table):
    """The archive to restore."""

    path: str = Field(description="The directory of an archive job.")
    topic: str = Field(description="The topic's name in the archive.")
    where: str = Field("", description="Only records for which this SQL is true: `\"timestamp >= '2026-01-01'\"`.")


class RestoreTarget(Table):
    """The target topic."""

    topic: str = Field(
        "",
        description="The topic to write. Default: the name in the archive. Created if it does not exist, without "
        "retention by time (`retention.ms=-1`).",
    )
    append: bool = Field(False, description="Write to a topic that has other records.")


class RestoreConfig(JobConfig):
    """The file of a restore job."""

    archive: ArchiveToRead = Field(description="The archive to restore.")
    target: RestoreTarget = Field(RestoreTarget(), description="The target topic.")


def transform(archive: DataFrame, config: RestoreConfig) -> DataFrame:
    """The archived records of the topic, in order within each partition; timestamps in milliseconds."""
    chosen = archive.where(f.col("topic") == config.archive.topic)
    if config.archive.where:
        chosen = chosen.where(sql(config.archive.where, "[archive] where"))
    at = f.unix_millis("timestamp").alias("timestamp_ms")
    return chosen.select("key", "value", "headers", "partition", "offset", at)


def run(spark: SparkSession, broker: Broker, config: RestoreConfig) -> BatchCounts:
    """Write the remaining records. MistakeError if there is no such archive, or the target has other records."""
    records = transform(_read(spark, config), config)
    bounds = records.agg(f.max("partition"), f.min("timestamp_ms")).first()
    if bounds is None or bounds[0] is None:
        raise MistakeError(f"there are no records of topic {config.archive.topic} in {config.archive.path}")
    partitions = bounds[0] + 1
    name = config.target.topic or config.archive.topic
    target = Target(broker, name, _group(config, name))
    _prepare(target, partitions, bounds[1], append=config.target.append)
    shared = records.repartition(partitions, "partition").sortWithinPartitions("partition", "offset")

    def write(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        return _write_partitions(batches, target)

    done = shared.mapInArrow(write, "read bigint, written bigint").agg(f.sum("read"), f.sum("written")).first()
    assert done is not None
    return BatchCounts(done[0] or 0, done[1] or 0)


def _read(spark: SparkSession, config: RestoreConfig) -> DataFrame:
    try:
        return spark.read.schema(TYPES).parquet(config.archive.path)
    except AnalysisException as error:
        raise MistakeError(f"there is no archive at {config.archive.path}: name the path of an archive job") from error


def _group(config: RestoreConfig, topic: str) -> str:
    """The group that commits the progress of this topic of the archive in that target."""
    identity = "|".join((config.archive.path.rstrip("/"), config.archive.topic, config.archive.where))
    return f"barnabas-restore-{hashlib.sha256(identity.encode()).hexdigest()[:16]}-{topic}"


def _prepare(target: Target, partitions: int, oldest_ms: int, *, append: bool) -> None:
    """Create or check the target: its retention must not delete the old records."""
    cluster = Cluster(target.broker)
    if not cluster.create(target.topic, partitions, KEEP):
        _check_topic(cluster, target, partitions, append=append)
        _check_retention(cluster, target.topic, oldest_ms)


def _check_topic(cluster: Cluster, target: Target, partitions: int, *, append: bool) -> None:
    existing = cluster.topics().get(target.topic, partitions)
    if existing < partitions:
        raise MistakeError(
            f"topic {target.topic} has {existing} partitions and the archive {partitions}: name another [target] topic"
        )
    begun = cluster.committed(target.group, target.topic, existing)
    if not begun and not append and any(cluster.ends({target.topic: existing})[target.topic].values()):
        raise MistakeError(
            f"topic {target.topic} has other records: name another [target] topic, or set append = true to add to them"
        )


def _check_retention(cluster: Cluster, topic: str, oldest_ms: int) -> None:
    retention_ms = int(cluster.topic_config(topic, "retention.ms"))
    age_ms = datetime.now(UTC).timestamp() * 1000 - oldest_ms
    if 0 <= retention_ms < age_ms:
        raise MistakeError(
            f"topic {topic} would delete the oldest of these records, by its retention.ms of {retention_ms}: "
            f"'barnabas config set topic {topic} retention.ms=-1' keeps them, or name another [target] topic"
        )


def _write_partitions(batches: Iterable[pa.RecordBatch], target: Target) -> Iterator[pa.RecordBatch]:
    """On an executor: write the records of one Spark partition, ordered by topic partition."""
    import pyarrow as pa

    rows = (row for batch in batches for row in batch.to_pylist())
    for partition, own in groupby(rows, key=lambda row: int(row["partition"])):
        writer = TransactionalWriter(target, partition)
        read = written = 0
        try:
            done = writer.position()
            while chunk := list(islice(own, CHUNK)):
                read += len(chunk)
                fresh = [row for row in chunk if row["offset"] >= done]
                if fresh:
                    written += writer.write(map(_row, fresh), fresh[-1]["offset"] + 1)
        finally:
            writer.close()
        yield pa.RecordBatch.from_pydict({"read": [read], "written": [written]})


def _row(row: dict[str, Any]) -> Row:
    headers = [(header["key"], header["value"]) for header in row["headers"] or []]
    return Row(row["key"], row["value"], headers, row["partition"], row["timestamp_ms"])


JOB = Job(
    "restore",
    "An archive to a topic, byte for byte.",
    RestoreConfig,
    output=lambda config: f"topic {config.target.topic or config.archive.topic}",
    run=run,
)
