"""etl: a topic with JSON or Avro to typed, validated, partitioned Parquet; other records to a dead-letter topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from barnabas.spark.frames.schema import declared_types, fitting, parsed
from barnabas.spark.frames.sql import named, sql
from barnabas.spark.job import Flow, Job, TopicToMake, dead_letter_flow
from barnabas.spark.settings.config import DeadLetters, FileOutput, JobConfig, Schema, Source
from barnabas.spark.topics.broker import Broker
from barnabas.spark.topics.kafka import read_source
from barnabas.spark.topics.sinks import ParquetSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class EtlConfig(JobConfig):
    """The file of an etl job."""

    source: Source = Field(description="The topic with the records.")
    record: Schema = Field(description="The schema of the values.", alias="schema")
    columns: dict[str, str] = Field(
        {}, description='Additional columns, as SQL expressions of the fields: `day = "to_date(at)"`.'
    )
    output: FileOutput = Field(description="The Parquet files.")
    dead_letters: DeadLetters = Field(description="For records that do not match the schema.")


def transform(records: DataFrame, config: EtlConfig) -> DataFrame:
    """Matching records with their additional columns; the position columns are last."""
    derived = records.withColumns({name: sql(text, f"[columns] {name}") for name, text in config.columns.items()})
    origin = [name for name in derived.columns if name.startswith("_")]
    return derived.select(*[named(name) for name in derived.columns if name not in origin], *origin)


def flows(spark: SparkSession, broker: Broker, config: EtlConfig) -> list[Flow]:
    """Two queries on the topic: one for matching records, one for dead letters."""
    records = parsed(read_source(spark, broker, config.source), config.record)
    return [
        Flow("parquet", transform(fitting(records), config), ParquetSink(config.output)),
        dead_letter_flow(records, config.dead_letters),
    ]


def topics(config: EtlConfig) -> list[TopicToMake]:
    """The dead-letter topic."""
    return [TopicToMake(config.dead_letters.topic)]


def state_of(config: EtlConfig) -> dict[str, str]:
    """The columns of the files: columns may be added and removed, but their types may not change."""
    types = {f"type of {name}": type_ for name, type_ in declared_types(config.record).items()}
    return {**types, "[output] partition_by": ", ".join(config.output.partition_by)}


JOB = Job(
    "etl",
    "A topic to typed, partitioned Parquet, and dead letters.",
    EtlConfig,
    flows,
    topics,
    state_of,
    output=lambda config: config.output.path,
    files=lambda config: ("parquet", config.output.path),
)
