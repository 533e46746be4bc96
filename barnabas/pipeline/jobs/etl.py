"""etl: JSON or Avro of a topic becomes typed, validated, partitioned Parquet; what does not fit, a dead letter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from barnabas.pipeline.config import DeadLetters, FileOutput, JobConfig, Schema, Source
from barnabas.pipeline.job import Flow, Job, TopicToMake, dead_letter_flow
from barnabas.pipeline.kafka import read_source
from barnabas.pipeline.schema import declared_types, fitting, parsed
from barnabas.pipeline.sinks import ParquetSink
from barnabas.pipeline.sql import named, sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class EtlConfig(JobConfig):
    """The file of an etl job."""

    source: Source = Field(description="The topic with the records.")
    record: Schema = Field(description="What a value looks like.", alias="schema")
    columns: dict[str, str] = Field(
        {}, description='Further columns as SQL expressions of the fields: `day = "to_date(at)"`.'
    )
    output: FileOutput = Field(description="Where the Parquet files go.")
    dead_letters: DeadLetters = Field(description="Where records go that do not fit.")


def transform(records: DataFrame, config: EtlConfig) -> DataFrame:
    """Fitting records with their further columns; those that say where a record came from stay last."""
    derived = records.withColumns({name: sql(text, f"[columns] {name}") for name, text in config.columns.items()})
    origin = [name for name in derived.columns if name.startswith("_")]
    return derived.select(*[named(name) for name in derived.columns if name not in origin], *origin)


def flows(spark: SparkSession, bootstrap: str, config: EtlConfig) -> list[Flow]:
    """Two queries over the topic: one keeps what fits, one what does not."""
    records = parsed(read_source(spark, bootstrap, config.source), config.record)
    return [
        Flow("parquet", transform(fitting(records), config), ParquetSink(config.output)),
        dead_letter_flow(records, config.dead_letters),
    ]


def topics(config: EtlConfig) -> list[TopicToMake]:
    """The dead-letter topic."""
    return [TopicToMake(config.dead_letters.topic)]


def state_of(config: EtlConfig) -> dict[str, str]:
    """The columns of the files: new ones may come, old ones may go, none may change its type."""
    types = {f"type of {name}": told for name, told in declared_types(config.record).items()}
    return {**types, "[output] partition_by": ", ".join(config.output.partition_by)}


def output(config: EtlConfig) -> str:
    """The directory."""
    return config.output.path


def files(config: EtlConfig) -> tuple[str, str]:
    """Which flow writes files, and where."""
    return "parquet", config.output.path


JOB = Job(
    "etl",
    "A topic to typed, partitioned Parquet, and dead letters.",
    EtlConfig,
    flows,
    topics,
    state_of,
    output,
    files,
)
