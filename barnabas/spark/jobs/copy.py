"""copy: records to another topic or cluster, optionally changed by SQL or a Python function.

Records of a partition stay in order if the target partition is the same or chosen by key. A record with a new key is
written to that key's partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field, model_validator
from pyspark.sql import functions as f

from barnabas.spark.errors import MistakeError
from barnabas.spark.frames.functions import load
from barnabas.spark.frames.sql import sql
from barnabas.spark.job import Flow, Job, TopicToMake
from barnabas.spark.settings.config import JobConfig, Source, Table, TopicOutput
from barnabas.spark.settings.security import SecurityTable, secured_broker
from barnabas.spark.topics.broker import Broker
from barnabas.spark.topics.kafka import event_id, read_source, source_position
from barnabas.spark.topics.sinks import TopicSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGEABLE = ("key", "value", "headers", "partition")
NEEDED = (*CHANGEABLE, "event_id", "position")
"""Columns that the user's function must return."""
KINDS = {
    "key": ("STRING or BINARY", ("string", "binary")),
    "value": ("STRING or BINARY", ("string", "binary")),
    "headers": ("ARRAY<STRUCT<key: STRING, value: BINARY>>", ("array<struct<key:string,value:",)),
    "partition": ("INT", ("int", "bigint", "smallint", "tinyint")),
}
"""Allowed types of the columns, as text and as Spark's type names."""


class Transform(Table):
    """Changes to the records."""

    where: str = Field("", description='Only records for which this SQL is true: `"value IS NOT NULL"`.')
    columns: dict[str, str] = Field(
        {}, description='New values of `key`, `value`, `headers` or `partition`, as SQL: `value = "upper(value)"`.'
    )
    function: str = Field("", description="`module:function` from DataFrame to DataFrame, applied first.")

    @model_validator(mode="after")
    def _known(self) -> Transform:
        unknown = sorted(set(self.columns) - set(CHANGEABLE))
        if unknown:
            raise ValueError(f"can change {', '.join(CHANGEABLE)}, not {unknown[0]}")
        return self


class Target(TopicOutput):
    """The target topic."""

    bootstrap: str = Field("", description="Address of another cluster. Default: the source's.")
    security: SecurityTable | None = Field(
        None, description="TLS and SASL of the other cluster, with the keys of `[security]`. Default: neither."
    )
    keep_partition: bool = Field(False, description="Write each record to the partition with the same number.")

    @model_validator(mode="after")
    def _elsewhere(self) -> Target:
        if self.security is not None and not self.bootstrap:
            raise ValueError("has a table security, which is for another cluster: set bootstrap, or use [security]")
        return self


class CopyConfig(JobConfig):
    """The file of a copy job."""

    source: Source = Field(description="The topic to copy.")
    transform: Transform = Field(Transform(), description="Changes to the records.")
    target: Target = Field(description="The target topic.")


def transform(records: DataFrame, config: CopyConfig) -> DataFrame:
    """The columns for the target: key, value, headers, event_id, position and optionally partition."""
    changes = config.transform
    id_ = f.coalesce(event_id(), source_position())
    marked = records.withColumn("event_id", id_).withColumn("position", f.struct("topic", "partition", "offset"))
    changed = _called(changes.function, marked) if changes.function else marked
    if changes.where:
        changed = changed.where(sql(changes.where, "[transform] where"))
    changed = changed.withColumns({name: sql(text, f"[transform] {name}") for name, text in changes.columns.items()})
    is_partition_set = config.target.keep_partition or "partition" in changes.columns
    partition = [f.col("partition").cast("int").alias("partition")] if is_partition_set else []
    _check_types(changed)
    content = [f.col(name).cast("binary").alias(name) for name in ("key", "value")]
    return changed.select(*content, "headers", *partition, "event_id", "position")


def _called(name: str, records: DataFrame) -> DataFrame:
    """Apply the user's function; MistakeError if the result is not usable."""
    from pyspark.sql import DataFrame

    changed = load(name)(records)
    if not isinstance(changed, DataFrame):
        raise MistakeError(f"[transform] function: {name} returned {type(changed).__name__}, not a DataFrame")
    missing = [column for column in NEEDED if column not in changed.columns]
    if missing:
        raise MistakeError(
            f"[transform] function: {name} lost the column {missing[0]}: change columns with withColumn, to keep the "
            f"others ({', '.join(NEEDED)})"
        )
    return changed


def _check_types(changed: DataFrame) -> None:
    types = dict(changed.dtypes)
    for name, (expected, kinds) in KINDS.items():
        if not types[name].startswith((*kinds, "void")):
            raise MistakeError(f"[transform] {name} is {types[name].upper()} and should be {expected}: CAST it")


def flows(spark: SparkSession, broker: Broker, config: CopyConfig) -> list[Flow]:
    """One query."""
    sink = TopicSink(config.target, _elsewhere(config.target))
    return [Flow("copy", transform(read_source(spark, broker, config.source), config), sink)]


def _elsewhere(target: Target) -> Broker | None:
    """The target's broker, if it is in another cluster. MistakeError if its [target.security] is wrong."""
    if not target.bootstrap:
        return None
    return secured_broker(target.bootstrap, target.security, "[target.security]")


def topics(config: CopyConfig) -> list[TopicToMake]:
    """The target."""
    return [TopicToMake(config.target.topic, config.target.partitions, broker=_elsewhere(config.target))]


def output(config: CopyConfig) -> str:
    """The target."""
    return f"{config.target.topic} at {config.target.bootstrap}" if config.target.bootstrap else config.target.topic


JOB = Job("copy", "A topic to another topic or cluster, through a transform.", CopyConfig, flows, topics, output=output)
