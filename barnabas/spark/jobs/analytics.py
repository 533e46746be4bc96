"""analytics: aggregates by window of event time and by key, to a topic and the terminal.

A window is final once the watermark has passed its end. Later records are counted as late. With `emit = "updates"` a
window is also written each time it changes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator
from pyspark.sql import functions as f

from barnabas.spark.frames.schema import fitting, parsed
from barnabas.spark.frames.sql import named, sql
from barnabas.spark.job import Flow, Job, TopicToMake, dead_letter_flow
from barnabas.spark.report.results import CHANGES, as_json_records, show
from barnabas.spark.settings.config import DeadLetters, JobConfig, Schema, Source, Table, TopicOutput
from barnabas.spark.topics.broker import Broker
from barnabas.spark.topics.kafka import read_source
from barnabas.spark.topics.sinks import BatchSink, TopicSink

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


class Window(Table):
    """The windows of event time."""

    time: str = Field(description="The time of an event, as a SQL expression of the fields.")
    size: str = Field(description="Size of a window: `1 hour`.")
    slide: str = Field("", description="Interval between overlapping windows.")
    watermark: str = Field("10 minutes", description="How late events may be, relative to the latest event.")


class AnalyticsConfig(JobConfig):
    """The file of an analytics job."""

    source: Source = Field(description="The topic with the events.")
    record: Schema = Field(description="The schema of the values.", alias="schema")
    window: Window = Field(description="The windows.")
    keys: dict[str, str] = Field({}, description='Columns to group by, as SQL: `origin = "origin"`.')
    aggregates: dict[str, str] = Field(
        description='The results, as SQL aggregates: `flights = "count(*)"`, `delay = "avg(dep_delay)"`.'
    )
    emit: Literal["final", "updates"] = Field(
        "final", description="`final`: write a window once, when it is final; `updates`: each time it changes."
    )
    output: TopicOutput = Field(description="The topic for the results, one JSON object per window and key.")
    dead_letters: DeadLetters = Field(description="For events that do not match the schema or have no time.")
    console: int = Field(10, ge=0, description="Number of latest results shown on the terminal; 0: none.")

    @model_validator(mode="after")
    def _names(self) -> AnalyticsConfig:
        used = {"window_start", "window_end", CHANGES}
        for name in (*self.keys, *self.aggregates):
            if name.lower() in used:
                raise ValueError(f"[keys] and [aggregates]: the name {name} is used already")
            used.add(name.lower())
        return self


def timed_schema(config: AnalyticsConfig) -> Schema:
    """The schema of the file, with the rule that an event has a time."""
    sql(config.window.time, "[window] time")
    rules = [*config.record.rules, f"CAST(({config.window.time}) AS TIMESTAMP) IS NOT NULL"]
    return config.record.model_copy(update={"rules": rules})


def transform(records: DataFrame, config: AnalyticsConfig) -> DataFrame:
    """Results by window and key: window_start, window_end, the keys, the aggregates, and the number of records."""
    window = config.window
    windows = f.window("_event_time", window.size, window.slide or None)
    keys: list[Column] = [sql(text, f"[keys] {name}").alias(name) for name, text in config.keys.items()]
    numbers = [sql(text, f"[aggregates] {name}").alias(name) for name, text in config.aggregates.items()]
    timed = records.withColumn("_event_time", sql(window.time, "[window] time").cast("timestamp"))
    grouped = timed.withWatermark("_event_time", window.watermark).groupBy(windows.alias("_window"), *keys)
    return grouped.agg(*numbers, f.count(f.lit(1)).alias(CHANGES)).select(
        f.col("_window.start").alias("window_start"),
        f.col("_window.end").alias("window_end"),
        *map(named, (*config.keys, *config.aggregates)),
        CHANGES,
    )


def flows(spark: SparkSession, broker: Broker, config: AnalyticsConfig) -> list[Flow]:
    """One query for the results, one for the dead letters."""
    records = parsed(read_source(spark, broker, config.source), timed_schema(config))
    results = transform(fitting(records), config)
    sink, name = TopicSink(config.output), config.name or JOB.name
    identity = ["window_start", *config.keys]

    def write(batch: DataFrame, batch_id: int, where: Broker) -> None:
        sink.write(as_json_records(batch, name, identity), batch_id, where)

    def print_rows(batch: DataFrame, batch_id: int, where: Broker) -> None:  # noqa: ARG001 - signature of every use
        show(batch, config.console, order=identity)

    uses = (write, print_rows) if config.console else (write,)
    mode = "append" if config.emit == "final" else "update"
    return [
        Flow("results", results, BatchSink(uses, sink.where), mode),
        dead_letter_flow(records, config.dead_letters),
    ]


def topics(config: AnalyticsConfig) -> list[TopicToMake]:
    """The topics for results and dead letters."""
    return [TopicToMake(config.output.topic, config.output.partitions), TopicToMake(config.dead_letters.topic)]


def state_of(config: AnalyticsConfig) -> dict[str, str]:
    """The settings that open windows depend on."""
    tables = config.model_dump(mode="json", include={"window", "keys", "aggregates"})
    return {f"[{name}]": json.dumps(table, sort_keys=True) for name, table in tables.items()}


JOB = Job(
    "analytics",
    "Aggregates by window of event time and key, to a topic.",
    AnalyticsConfig,
    flows,
    topics,
    state_of,
)
