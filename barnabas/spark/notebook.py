"""`read_topic` and `write_topic`, for notebooks: a mistake is one sentence, raised before Spark sees it where possible.

The exception that a sentence was made from is its `__context__`. Python does not show it, and IPython shows the
sentence alone (`PipelineError._render_traceback_`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pydantic import ValidationError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from barnabas.spark.errors import MistakeError, PipelineError
from barnabas.spark.failures import sentence_of
from barnabas.spark.session.spark import check_machine, log_file, session
from barnabas.spark.settings.config import Source, Start, argument_mistake, security_mistake
from barnabas.spark.settings.security import SecurityTable, secured_broker
from barnabas.spark.topics.broker import Broker
from barnabas.spark.topics.cluster import Cluster
from barnabas.spark.topics.kafka import deduplicated, read_source, with_event_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SecurityArgument = Mapping[str, str] | str | Path | None
TYPES = {
    "value": ("STRING or BINARY", ("string", "binary")),
    "key": ("STRING or BINARY", ("string", "binary")),
    "headers": ("ARRAY<STRUCT<key: STRING, value: BINARY>>", ("array<struct<key:string,value:binary>>",)),
    "partition": ("INT", ("int",)),
    "event_id": ("STRING", ("string",)),
}
"""The types of the columns that become a record, as text and as Spark's names."""


def read_topic(
    topic: str | list[str],
    *,
    bootstrap: str = "127.0.0.1:9092",
    start: Start = "earliest",
    end: Start = "latest",
    stream: bool = False,
    once_each: bool = False,
    security: SecurityArgument = None,
    spark: SparkSession | None = None,
) -> DataFrame:
    """The records of a topic: a DataFrame up to `end`, or a stream.

    `once_each` removes duplicates (`deduplicated`). `security`: keys of a job's `[security]`, or the path of a
    client.properties. MistakeError for wrong arguments, NotFoundError if there is no such
    topic, BrokerUnavailableError if no broker answers within 5 seconds.
    """
    with _sentences(bootstrap):
        try:
            source = Source(topic=topic, start=start)
            last = Source(topic=topic, start=end).start
        except ValidationError as error:
            raise argument_mistake(error) from error
        broker = _broker(bootstrap, security)
        Cluster(broker).matching(source.topics, "")
        frame = read_source(spark or _session(), broker, source, end=None if stream else last)
        return deduplicated(frame) if once_each else frame


def write_topic(
    frame: DataFrame,
    topic: str,
    *,
    bootstrap: str = "127.0.0.1:9092",
    security: SecurityArgument = None,
    options: Mapping[str, str] | None = None,
) -> None:
    """Append a DataFrame's rows to a topic: columns value and optionally key, headers, event_id, partition.

    Without a value column, every column becomes a field of a JSON object. A topic that does not exist is created.
    `options`: further options of Spark's sink. `security` and errors are those of `read_topic`.
    """
    with _sentences(bootstrap):
        _check_frame(frame)
        if not isinstance(topic, str) or not topic:
            raise MistakeError(f"topic: it should be a name, not {topic!r}")
        broker = _broker(bootstrap, security)
        if Cluster(broker).create_missing(topic):
            print(f"created topic {topic}", file=sys.stderr)
        if "value" not in frame.columns:
            key = ["key"] if "key" in frame.columns else []
            frame = frame.select(*key, f.to_json(f.struct(*[c for c in frame.columns if c != "key"])).alias("value"))
        writer = with_event_id(frame).write.format("kafka").options(**broker.for_spark())
        writer.options(**(options or {})).option("topic", topic).save()


@contextmanager
def _sentences(bootstrap: str) -> Iterator[None]:
    """Raise Spark's and Java's errors as one sentence, without what caused it in the shown text."""
    try:
        yield
    except PipelineError as error:
        raise error from None
    except (PySparkException, Py4JError) as error:
        failure = sentence_of(error, bootstrap, of="this DataFrame")
        failure.log = log_file()
        raise failure from None


def _broker(bootstrap: str, security: SecurityArgument) -> Broker:
    if not isinstance(bootstrap, str):
        raise MistakeError(f"bootstrap: it should be HOST:PORT, not {bootstrap!r}")
    if security is None:
        return Broker(bootstrap)
    keys = security if isinstance(security, Mapping) else {"file": str(security)}
    try:
        table = SecurityTable.model_validate(dict(keys))
    except ValidationError as error:
        raise MistakeError(f"security: {security_mistake(error)}") from None
    return secured_broker(bootstrap, table, "security:")


def _session() -> SparkSession:
    check_machine()
    return session()


def _check_frame(frame: DataFrame) -> None:
    if not isinstance(frame, DataFrame):
        raise MistakeError(
            f"write_topic needs a DataFrame of Spark, not {type(frame).__module__}.{type(frame).__name__}: "
            "spark.createDataFrame makes one of pandas and of lists"
        )
    if frame.isStreaming:
        raise MistakeError("write_topic needs a batch, and this DataFrame is a stream: start it with writeStream")
    types = dict(frame.dtypes)
    if not set(types) - {"key"}:
        raise MistakeError(
            f"write_topic needs a column value, or columns for the fields of a JSON object; there are {list(types)}"
        )
    for name, (expected, kinds) in TYPES.items():
        if "value" in types and types.get(name, kinds[0]) not in (*kinds, "void"):
            raise MistakeError(f"the column {name} is {types[name].upper()} and should be {expected}: CAST it")
    if types.get("key", "string") not in ("string", "binary", "void"):
        raise MistakeError(f"the column key is {types['key'].upper()} and should be STRING or BINARY: CAST it")
