"""The sinks of a job and their delivery guarantees.

Parquet files with a checkpoint are exactly once, because Spark's log of files lists the valid ones. Spark's Kafka sink
is at least once; a transactional topic is exactly once for read_committed (`transactions.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from barnabas.spark.settings.config import FileOutput, TopicOutput
from barnabas.spark.topics.broker import Broker
from barnabas.spark.topics.kafka import with_event_id
from barnabas.spark.topics.transactions import Target, write_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

QUERY_ID = "sql.streaming.queryId"
"""Spark's local property with the id of a batch's query."""


class Sink(Protocol):
    """The sink of one flow."""

    @property
    def where(self) -> str:
        """The topic or directory, for people."""

    def ready(self, frame: DataFrame) -> DataFrame:
        """The rows in the form that the sink needs."""

    def start(self, writer: DataStreamWriter, broker: Broker) -> StreamingQuery:
        """Start the query; name, checkpoint and trigger are set."""


@dataclass(frozen=True)
class ParquetSink:
    """Parquet files, exactly once."""

    output: FileOutput

    @property
    def where(self) -> str:
        """The directory."""
        return self.output.path

    def ready(self, frame: DataFrame) -> DataFrame:
        """The rows unchanged."""
        return frame

    def start(self, writer: DataStreamWriter, broker: Broker) -> StreamingQuery:  # noqa: ARG002 - knows no broker
        """Start the query."""
        return writer.format("parquet").partitionBy(*self.output.partition_by).start(self.output.path)


@dataclass(frozen=True)
class TopicSink:
    """A topic; `broker` if it is in another cluster than the source."""

    output: TopicOutput
    broker: Broker | None = None

    @property
    def where(self) -> str:
        """The topic."""
        return f"topic {self.output.topic}" + (f" at {self.broker.bootstrap}" if self.broker else "")

    def ready(self, frame: DataFrame) -> DataFrame:
        """Rows as `with_event_id` needs them; transactions keep more columns than Spark's sink."""
        return frame if self.output.delivery == "transactional" else with_event_id(frame)

    def start(self, writer: DataStreamWriter, broker: Broker) -> StreamingQuery:
        """Start the query."""
        if self.output.delivery == "transactional":
            return writer.foreachBatch(lambda batch, batch_id: self.write(batch, batch_id, broker)).start()
        return writer.format("kafka").options(**self._options(broker)).start()

    def write(self, batch: DataFrame, batch_id: int, broker: Broker) -> None:
        """Write one micro-batch."""
        if self.output.delivery == "transactional":
            query_id = batch.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
            topic, where = self.output.topic, self.broker or broker
            write_batch(batch, batch_id, Target(where, topic, f"barnabas-{query_id}-{topic}"))
            return
        with_event_id(batch).write.format("kafka").options(**self._options(broker)).save()

    def _options(self, broker: Broker) -> dict[str, str]:
        return {**(self.broker or broker).for_spark(), "topic": self.output.topic}


@dataclass(frozen=True)
class BatchSink:
    """Several uses of the same rows, computed once: calls `uses` with each micro-batch, its id and the broker."""

    uses: tuple[Callable[[DataFrame, int, Broker], None], ...]
    where: str = ""

    def ready(self, frame: DataFrame) -> DataFrame:
        """The rows unchanged; each use transforms them."""
        return frame

    def start(self, writer: DataStreamWriter, broker: Broker) -> StreamingQuery:
        """Start the query."""

        def each(batch: DataFrame, batch_id: int) -> None:
            batch.persist()
            try:
                for use in self.uses:
                    use(batch, batch_id, broker)
            finally:
                batch.unpersist()

        return writer.foreachBatch(each).start()
