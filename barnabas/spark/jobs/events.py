"""events: fold a stream of events into the state of each key, kept in a compacted topic.

Each batch writes the state of every key with events in it; a removed state is a tombstone. To replay, use a new
checkpoint and a start.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pydantic import Field, model_validator
from pyspark.sql import functions as f

from barnabas.spark.frames.fold import SNAPSHOT, Folding, fold_of
from barnabas.spark.frames.schema import ORIGIN, fitting, parsed
from barnabas.spark.frames.sql import named, sql
from barnabas.spark.job import Flow, Job, TopicToMake, dead_letter_flow
from barnabas.spark.settings.config import DeadLetters, JobConfig, Schema, Source, Table, TopicOutput
from barnabas.spark.topics.broker import Broker
from barnabas.spark.topics.kafka import read_source
from barnabas.spark.topics.sinks import TopicSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class StateTable(Table):
    """The state of a key."""

    key: str = Field(description="The key, as a SQL expression of the fields. Events without it are dead letters.")
    order_by: str = Field(
        "", description="Order of a key's events within a batch, as SQL. Default: the order in the topic."
    )
    fields: dict[str, str] = Field(
        {}, description='The state: `flights = "count()"`, `last = "last(dest)"`; also sum, min, max, first.'
    )
    function: str = Field(
        "",
        description="Instead of fields: `module:function`, called with state (or None) and event, both dicts; "
        "returns the new state, or None to remove the key.",
    )

    @model_validator(mode="after")
    def _one_of(self) -> StateTable:
        if bool(self.fields) == bool(self.function):
            raise ValueError("needs either fields or function")
        return self


class EventsConfig(JobConfig):
    """The file of an events job."""

    source: Source = Field(description="The topic with the events.")
    record: Schema = Field(description="The schema of the values.", alias="schema")
    state: StateTable = Field(description="The state of a key.")
    output: TopicOutput = Field(description="The topic for states; created as a compacted topic if it does not exist.")
    dead_letters: DeadLetters = Field(description="For events that do not match the schema or have no key.")


def keyed_schema(config: EventsConfig) -> Schema:
    """The schema of the file, with the rule that an event has a key."""
    sql(config.state.key, "[state] key")
    return config.record.model_copy(update={"rules": [*config.record.rules, f"({config.state.key}) IS NOT NULL"]})


def transform(records: DataFrame, config: EventsConfig) -> DataFrame:
    """The states: key, state (JSON or null) and version, the number of its events."""
    state = config.state
    types = {name: type_ for name, type_ in records.dtypes if name not in ORIGIN}
    fold_of(state.fields, state.function, types)  # report a mistake before Spark starts the query
    position = f.format_string("%s/%010d/%020d", f.col("_topic"), f.col("_partition"), f.col("_offset"))
    order = sql(state.order_by, "[state] order_by") if state.order_by else f.lit(None).cast("string")
    events = records.select(
        sql(state.key, "[state] key").cast("string").alias("key"),
        f.to_json(f.struct(*map(named, types))).alias("event"),
        order.alias("order"),
        position.alias("position"),
    )
    return events.groupBy("key").transformWithStateInPandas(
        Folding(state.fields, state.function), outputStructType=SNAPSHOT, outputMode="Update", timeMode="None"
    )


def as_records(snapshots: DataFrame, name: str) -> DataFrame:
    """The records for the topic: a tombstone for a removed state."""
    id_ = f.sha2(f.concat_ws("|", f.lit(name), "key", f.col("version").cast("string")), 256)
    return snapshots.select("key", f.col("state").alias("value"), id_.alias("event_id"))


def flows(spark: SparkSession, broker: Broker, config: EventsConfig) -> list[Flow]:
    """One query for the states, one for the dead letters."""
    records = parsed(read_source(spark, broker, config.source), keyed_schema(config))
    snapshots = as_records(transform(fitting(records), config), config.name or JOB.name)
    return [
        Flow("snapshots", snapshots, TopicSink(config.output), "update"),
        dead_letter_flow(records, config.dead_letters),
    ]


def topics(config: EventsConfig) -> list[TopicToMake]:
    """The compacted topic for states, and the dead-letter topic."""
    compacted = {"cleanup.policy": "compact"}
    return [
        TopicToMake(config.output.topic, config.output.partitions, compacted),
        TopicToMake(config.dead_letters.topic),
    ]


def state_of(config: EventsConfig) -> dict[str, str]:
    """The settings that states depend on."""
    return {"[state]": json.dumps(config.state.model_dump(mode="json"), sort_keys=True)}


JOB = Job(
    "events",
    "Events folded into the state of each key, in a compacted topic.",
    EventsConfig,
    flows,
    topics,
    state_of,
)
