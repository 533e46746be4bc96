"""archive: topics to Parquet, with everything that `restore` needs to make the same records again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from barnabas.pipeline.config import FileOutput, JobConfig, Source, Table
from barnabas.pipeline.job import Flow, Job
from barnabas.pipeline.kafka import read_source
from barnabas.pipeline.sinks import ParquetSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = ("key", "value", "headers", "partition", "offset", "timestamp", "timestampType", "topic")
"""Of an archive; `topic` is a directory. The names and types are those of Spark's own source."""
TYPES = (
    "key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, partition INT, offset BIGINT, "
    "timestamp TIMESTAMP, timestampType INT, topic STRING"
)


class Archive(Table):
    """Where the archive is."""

    path: str = Field(description="The directory, or a URL that Spark can write to.")


class ArchiveConfig(JobConfig):
    """The file of an archive job."""

    source: Source = Field(description="The topics to keep.")
    archive: Archive = Field(description="Where the archive goes.")


def transform(records: DataFrame) -> DataFrame:
    """The records as the source gives them, in the archive's order of columns."""
    return records.select(*COLUMNS)


def flows(spark: SparkSession, bootstrap: str, config: ArchiveConfig) -> list[Flow]:
    """One query, whose files are exactly once."""
    output = FileOutput(path=config.archive.path, partition_by=["topic"])
    return [Flow("archive", transform(read_source(spark, bootstrap, config.source)), ParquetSink(output))]


def output(config: ArchiveConfig) -> str:
    """The directory."""
    return config.archive.path


def files(config: ArchiveConfig) -> tuple[str, str]:
    """Which flow writes files, and where."""
    return "archive", config.archive.path


JOB = Job(
    "archive",
    "Topics to Parquet: key, value, headers, offset and timestamp.",
    ArchiveConfig,
    flows,
    output=output,
    files=files,
)
