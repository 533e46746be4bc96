"""archive: topics to Parquet, with everything that `restore` needs to write the same records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from barnabas.spark.job import Flow, Job
from barnabas.spark.settings.config import FileOutput, JobConfig, Source, Table
from barnabas.spark.topics.broker import Broker
from barnabas.spark.topics.kafka import read_source
from barnabas.spark.topics.sinks import ParquetSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = ("key", "value", "headers", "partition", "offset", "timestamp", "timestampType", "topic")
"""Columns of an archive, with the names and types of Spark's source; `topic` is a directory."""
TYPES = (
    "key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, partition INT, offset BIGINT, "
    "timestamp TIMESTAMP, timestampType INT, topic STRING"
)


class Archive(Table):
    """The archive."""

    path: str = Field(description="The directory, or a URL that Spark can write to.")


class ArchiveConfig(JobConfig):
    """The file of an archive job."""

    source: Source = Field(description="The topics to archive.")
    archive: Archive = Field(description="The archive.")


def flows(spark: SparkSession, broker: Broker, config: ArchiveConfig) -> list[Flow]:
    """One query with a Parquet sink."""
    output = FileOutput(path=config.archive.path, partition_by=["topic"])
    return [Flow("archive", read_source(spark, broker, config.source).select(*COLUMNS), ParquetSink(output))]


JOB = Job(
    "archive",
    "Topics to Parquet: key, value, headers, offset and timestamp.",
    ArchiveConfig,
    flows,
    output=lambda config: config.archive.path,
    files=lambda config: ("archive", config.archive.path),
)
