"""copy: records of one cluster to a topic of another, or of the same, on the way through SQL or a Python function.

Order: records of one partition stay in order where the target's partition is the same or the key's; a transform that
gives a record another key gives it that key's place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field, model_validator
from pyspark.sql import functions as f

from barnabas.pipeline.config import JobConfig, Source, Table, TopicOutput
from barnabas.pipeline.functions import load
from barnabas.pipeline.job import Flow, Job, TopicToMake
from barnabas.pipeline.kafka import event_id, read_source, source_position
from barnabas.pipeline.sinks import TopicSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGEABLE = ("key", "value", "headers", "partition")


class Transform(Table):
    """What happens on the way."""

    where: str = Field("", description='Only records for which this SQL holds: `"value IS NOT NULL"`.')
    columns: dict[str, str] = Field(
        {}, description='New contents of `key`, `value`, `headers` or `partition`, as SQL: `value = "upper(value)"`.'
    )
    function: str = Field("", description="`module:function`, which makes a DataFrame of a DataFrame, before all else.")

    @model_validator(mode="after")
    def _known(self) -> Transform:
        unknown = sorted(set(self.columns) - set(CHANGEABLE))
        if unknown:
            raise ValueError(f"can change {', '.join(CHANGEABLE)}, not {unknown[0]}")
        return self


class Target(TopicOutput):
    """Where the records go."""

    bootstrap: str = Field("", description="The other cluster's address; the source's own unless set.")
    keep_partition: bool = Field(False, description="Write each record to the partition of the number it had.")


class CopyConfig(JobConfig):
    """The file of a copy job."""

    source: Source = Field(description="The topic to copy.")
    transform: Transform = Field(Transform(), description="What happens on the way.")
    target: Target = Field(description="Where the records go.")


def transform(records: DataFrame, config: CopyConfig) -> DataFrame:
    """What goes to the target: key, value, headers, event_id, position and, if kept or told, partition."""
    told = config.transform
    id_ = f.coalesce(event_id(), source_position())
    marked = records.withColumn("event_id", id_).withColumn("position", f.struct("topic", "partition", "offset"))
    changed = load(told.function)(marked) if told.function else marked
    if told.where:
        changed = changed.where(told.where)
    changed = changed.withColumns({name: f.expr(text) for name, text in told.columns.items()})
    partition = ["partition"] if config.target.keep_partition or "partition" in told.columns else []
    return changed.select("key", "value", "headers", *partition, "event_id", "position")


def flows(spark: SparkSession, bootstrap: str, config: CopyConfig) -> list[Flow]:
    """One query."""
    sink = TopicSink(config.target, config.target.bootstrap)
    return [Flow("copy", transform(read_source(spark, bootstrap, config.source), config), sink)]


def topics(config: CopyConfig) -> list[TopicToMake]:
    """The target."""
    return [TopicToMake(config.target.topic, config.target.partitions, bootstrap=config.target.bootstrap)]


def output(config: CopyConfig) -> str:
    """The target."""
    return f"{config.target.topic} at {config.target.bootstrap}" if config.target.bootstrap else config.target.topic


JOB = Job(
    "copy", "A topic to another, or to another cluster, through a transform.", CopyConfig, flows, topics, output=output
)
