"""Reading and writing topics in Spark.

Reads are read_committed, and fail if records were deleted before they were read, unless configured otherwise.
Each written record has an event id in a header, by which `deduplicated` removes duplicates.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from barnabas.spark.errors import MistakeError
from barnabas.spark.settings.config import Source, Start
from barnabas.spark.topics.broker import Broker, broker_of
from barnabas.spark.topics.cluster import Cluster, Offsets

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

EVENT_ID = "barnabas-event-id"
"""The header with a record's event id: the same each time the same input is processed."""
HEADERS_TYPE = "array<struct<key:string,value:binary>>"
EARLIEST, LATEST = -2, -1
WRITTEN = ("key", "value", "headers", "topic", "partition")
"""The columns that Spark's sink takes."""


def read_source(spark: SparkSession, broker: str | Broker, source: Source, *, end: Start | None = None) -> DataFrame:
    """The records of a source as a stream; as a batch if `end` is given (`latest`, a time or offsets).

    Columns: key, value (binary), headers, topic, partition, offset, timestamp, timestampType.
    """
    options = source_options(broker, source)
    if end is None:
        if source.max_records_per_batch is not None:
            options["maxOffsetsPerTrigger"] = str(source.max_records_per_batch)
        return spark.readStream.format("kafka").options(**options).load()
    options |= _position("ending", end, broker, source)
    return spark.read.format("kafka").options(**options).load()


def source_options(broker: str | Broker, source: Source) -> dict[str, str]:
    """The options of Spark's source."""
    where = {"subscribePattern": source.pattern} if source.pattern else {"subscribe": ",".join(source.topics)}
    return {
        **broker_of(broker).for_spark(),
        **where,
        "includeHeaders": "true",
        "failOnDataLoss": str(source.fail_on_data_loss).lower(),
        "kafka.isolation.level": "read_uncommitted" if source.read_uncommitted else "read_committed",
        **_position("starting", source.start, broker, source),
    }


def _position(which: str, at: Start, broker: str | Broker, source: Source) -> dict[str, str]:
    """The options for one end of a read; `which` is `starting` or `ending`."""
    if isinstance(at, datetime):
        time_ms = round(at.timestamp() * 1000)
        strategy = {"startingOffsetsByTimestampStrategy": "latest"} if which == "starting" else {}
        return {f"{which}Timestamp": str(time_ms), **strategy}  # a partition without later records starts at its end
    if isinstance(at, dict):
        default = EARLIEST if which == "starting" else LATEST
        return {f"{which}Offsets": json.dumps(_filled(at, Cluster(broker), source, default))}
    return {f"{which}Offsets": at}


def _filled(offsets: Offsets, cluster: Cluster, source: Source, default: int) -> Offsets:
    """Offsets for every partition, because Spark requires all of them."""
    partitions = cluster.matching(source.topics, source.pattern)
    return {
        topic: {partition: offsets.get(topic, {}).get(partition, default) for partition in range(count)}
        for topic, count in partitions.items()
    }


def source_position() -> Column:
    """The event id of a record made from one record of the source: its position."""
    return f.concat_ws("/", "topic", "partition", "offset")


def with_event_id(frame: DataFrame, *more: str) -> DataFrame:
    """The columns of Spark's sink: `event_id` is moved to the headers; other columns are dropped, except `more`.

    `frame` has value and event_id (string), and may have key, headers, topic and partition. An existing event id is
    replaced, so that a copy of a copy has one id.
    """
    if "event_id" in frame.columns:
        own = f.array(f.struct(f.lit(EVENT_ID).alias("key"), f.col("event_id").cast("binary").alias("value")))
        headers = f.col("headers") if "headers" in frame.columns else f.lit(None)
        others = f.filter(f.coalesce(headers.cast(HEADERS_TYPE), f.array().cast(HEADERS_TYPE)), _is_other)
        frame = frame.withColumn("headers", f.concat(others, own.cast(HEADERS_TYPE)))
    return frame.select([name for name in (*WRITTEN, *more) if name in frame.columns])


def _is_other(header: Column) -> Column:
    return header["key"] != EVENT_ID


def event_id() -> Column:
    """The event id in a record's headers, as a string; null when it has none."""
    own = f.filter("headers", lambda header: header["key"] == EVENT_ID)
    return f.try_element_at(own, f.lit(-1))["value"].cast("string")


def deduplicated(frame: DataFrame, within: str = "1 hour") -> DataFrame:
    """Remove records with an event id that was seen before; records without an id are kept.

    `frame` is the result of reading a topic, with headers. A stream forgets ids after `within`, by the records'
    timestamps, and does not detect later duplicates. MistakeError if a column is missing.
    """
    missing = [name for name in ("topic", "partition", "offset", "headers") if name not in frame.columns]
    if missing:
        raise MistakeError(f"deduplicated needs the columns of read_topic, and there is no column {missing[0]}")
    marked = frame.withColumn("_event_id", f.coalesce(event_id(), source_position()))
    if frame.isStreaming:
        return marked.withWatermark("timestamp", within).dropDuplicatesWithinWatermark(["_event_id"]).drop("_event_id")
    return marked.dropDuplicates(["_event_id"]).drop("_event_id")
