"""events: fold a stream of events into the state of each key, and keep the states in a compacted topic.

Each batch writes a snapshot of every key that it has touched; a state that has gone is a tombstone. To replay, name a
new checkpoint and a start.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pydantic import Field, model_validator
from pyspark.sql import functions as f

from barnabas.pipeline.config import DeadLetters, JobConfig, Schema, Source, Table, TopicOutput
from barnabas.pipeline.fold import SNAPSHOT, Folding, fold_of
from barnabas.pipeline.job import Flow, Job, TopicToMake, dead_letter_flow, output_topic
from barnabas.pipeline.kafka import read_source
from barnabas.pipeline.schema import ORIGIN, fitting, parsed
from barnabas.pipeline.sinks import TopicSink
from barnabas.pipeline.sql import named, sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class StateTable(Table):
    """How events become a state."""

    key: str = Field(
        description="Whose state it is, as a SQL expression of the fields. Events without one are dead letters."
    )
    order_by: str = Field(
        "", description="The order of a key's events within a batch, as SQL; that of the topic unless set."
    )
    fields: dict[str, str] = Field(
        {}, description='The state: `flights = "count()"`, `last = "last(dest)"`; also sum, min, max, first.'
    )
    function: str = Field(
        "",
        description="Instead of fields: `module:function`, called with state (or None) and event, both dicts; "
        "returns the new state, or None to forget the key.",
    )

    @model_validator(mode="after")
    def _one_of(self) -> StateTable:
        if bool(self.fields) == bool(self.function):
            raise ValueError("wants either fields or function")
        return self


class EventsConfig(JobConfig):
    """The file of an events job."""

    source: Source = Field(description="The topic with the events.")
    record: Schema = Field(description="What a value looks like.", alias="schema")
    state: StateTable = Field(description="How events become a state.")
    output: TopicOutput = Field(description="The topic for snapshots; made compacted when it does not exist.")
    dead_letters: DeadLetters = Field(description="Where events go that do not fit, or have no key.")


def keyed_schema(config: EventsConfig) -> Schema:
    """The schema of the file, and that an event has a key: one without is of no state."""
    sql(config.state.key, "[state] key")
    return config.record.model_copy(update={"rules": [*config.record.rules, f"({config.state.key}) IS NOT NULL"]})


def transform(records: DataFrame, config: EventsConfig) -> DataFrame:
    """Snapshots: key, state (JSON or null) and version, the number of events in it."""
    state = config.state
    types = {name: told for name, told in records.dtypes if name not in ORIGIN}
    fold_of(state.fields, state.function, types)  # a mistake in it is told before Spark starts on it
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
    """What goes to the topic: a tombstone where there is no state any more."""
    id_ = f.sha2(f.concat_ws("|", f.lit(name), "key", f.col("version").cast("string")), 256)
    return snapshots.select("key", f.col("state").alias("value"), id_.alias("event_id"))


def flows(spark: SparkSession, bootstrap: str, config: EventsConfig) -> list[Flow]:
    """One query for the snapshots, one for the dead letters."""
    records = parsed(read_source(spark, bootstrap, config.source), keyed_schema(config))
    snapshots = as_records(transform(fitting(records), config), config.name or JOB.name)
    return [
        Flow("snapshots", snapshots, TopicSink(config.output), "update"),
        dead_letter_flow(records, config.dead_letters),
    ]


def topics(config: EventsConfig) -> list[TopicToMake]:
    """Snapshots, compacted, and dead letters."""
    compacted = {"cleanup.policy": "compact"}
    return [
        TopicToMake(config.output.topic, config.output.partitions, compacted),
        TopicToMake(config.dead_letters.topic),
    ]


def state_of(config: EventsConfig) -> dict[str, str]:
    """What the states depend on."""
    return {"[state]": json.dumps(config.state.model_dump(mode="json"), sort_keys=True)}


JOB = Job(
    "events",
    "Events folded into the state of each key, kept compacted.",
    EventsConfig,
    flows,
    topics,
    state_of,
    output_topic,
)
