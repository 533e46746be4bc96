"""Writing a micro-batch to a topic exactly once, for readers with read_committed.

Spark repeats a batch, with the same rows, if it does not know that the batch was completed; its own sink would write
them again. Here the rows of a batch are distributed to tasks by key, so a row always belongs to the same task. A task
writes one Kafka transaction with its rows and the batch's number, as an offset committed by the query's group. A task
starts with InitTransactions, which fences and aborts earlier attempts, and reads the last committed batch. If that is
this batch, it writes nothing.

Invariants: the transactional id and the group contain the query's id, so a new checkpoint starts without the state of
an old one. The number of tasks of a batch is committed before the batch starts, because another number would distribute
the rows differently. Not guaranteed: that the tasks of a batch become visible together.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from pyspark.sql import functions as f

from barnabas.spark.errors import PipelineError
from barnabas.spark.topics.broker import Broker, broker_of
from barnabas.spark.topics.cluster import SILENT, Cluster, committed_by
from barnabas.spark.topics.kafka import with_event_id

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

TIMEOUT_S = 60
TRANSACTION_TIMEOUT_MS = 900_000
"""Timeout of a transaction: the default maximum of brokers."""

logger = logging.getLogger("barnabas.pipeline")
_fenced: set[Target] = set()
"""Targets whose earlier attempts this process has fenced."""


class Target(NamedTuple):
    """The target of one query."""

    broker: str | Broker
    topic: str
    group: str

    def client_config(self) -> dict[str, Any]:
        """The configuration of a client of librdkafka, as far as it is about the connections."""
        return dict(broker_of(self.broker).for_librdkafka())


class Row(NamedTuple):
    """One record to write."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]]
    partition: int | None
    timestamp_ms: int | None = None


class TransactionalWriter:
    """The producer of one task; commits its rows and its position in one transaction."""

    def __init__(self, target: Target, task: int) -> None:
        """Fences earlier attempts of the task. KafkaException if that fails."""
        self._target = target
        self._task = task
        self._producer = Producer(
            {
                **target.client_config(),
                "transactional.id": f"{target.group}-{task}",
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "partitioner": "murmur2_random",  # as in the Java client
                "linger.ms": 20,
                "compression.type": "lz4",
            },
            logger=SILENT,
        )
        self._producer.init_transactions(TIMEOUT_S)
        self._consumer = Consumer({**target.client_config(), "group.id": target.group}, logger=SILENT)

    def position(self) -> int:
        """The position in the last committed transaction; -1 before the first."""
        (committed,) = committed_by(self._consumer, [TopicPartition(self._target.topic, self._task)])
        return int(committed.offset) if committed.offset >= 0 else -1

    def write(self, rows: Iterable[Row], position: int) -> int:
        """Write rows and the position in one transaction; returns the number of rows."""
        self._producer.begin_transaction()
        try:
            written = sum(map(self._produce, rows))
            done = TopicPartition(self._target.topic, self._task, position)
            self._producer.send_offsets_to_transaction([done], self._consumer.consumer_group_metadata(), TIMEOUT_S)
            self._producer.commit_transaction(TIMEOUT_S)
        except BaseException:
            self._abort()
            raise
        return written

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def _produce(self, row: Row) -> int:
        more: dict[str, Any] = {}
        if row.partition is not None:
            more["partition"] = row.partition
        if row.timestamp_ms is not None:
            more["timestamp"] = row.timestamp_ms
        while True:
            try:
                self._producer.produce(self._target.topic, row.value, row.key, headers=row.headers, **more)
            except BufferError:  # the queue is full: wait until some are sent
                self._producer.poll(0.1)
            else:
                return 1

    def _abort(self) -> None:
        try:
            self._producer.abort_transaction(TIMEOUT_S)
        except KafkaException as error:  # fenced, or no broker: InitTransactions of the next attempt aborts it
            logger.debug("transaction of %s-%d not aborted: %s", self._target.group, self._task, error)


def write_batch(batch: DataFrame, batch_id: int, target: Target) -> int:
    """Write a micro-batch exactly once, also if called again for the same batch; returns the rows written now.

    `batch` has the columns of `with_event_id`, and optionally `position`, which orders the rows of a task. Calls with
    the same batch id must have the same rows.
    """
    tasks = _number_of_tasks(batch_id, target)
    _fence_once(target, tasks)
    owner = f.col("partition") if "partition" in batch.columns else _key_or_id(batch)
    order = ["position"] if "position" in batch.columns else []
    marked = batch.withColumn("_task", f.pmod(f.xxhash64(owner), f.lit(tasks)).cast("int"))
    ready = with_event_id(marked, "_task", *order).repartition(tasks, "_task").sortWithinPartitions("_task", *order)

    def write(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        return _write_tasks(batches, batch_id, target)

    return sum(row.written for row in ready.drop(*order).mapInArrow(write, "written bigint").collect())


def _key_or_id(batch: DataFrame) -> Column:
    parts = [name for name in ("key", "event_id", "value") if name in batch.columns]
    return f.coalesce(*[f.col(name).cast("string") for name in parts])


def _fence_once(target: Target, tasks: int) -> None:
    """Abort open transactions of an earlier run of this query, also of tasks without rows in this batch.

    An open transaction would block read_committed readers until its timeout.
    """
    if target not in _fenced:
        for task in range(tasks):
            TransactionalWriter(target, task).close()
        _fenced.add(target)


def _number_of_tasks(batch_id: int, target: Target) -> int:
    """The number of tasks of the batch: one per partition of the topic, or the number of an earlier attempt.

    It is committed before the first task starts, by a group outside the transactions.
    """
    cluster = Cluster(target.broker)
    partitions = cluster.topics().get(target.topic)
    if not partitions:
        raise PipelineError(
            f"topic {target.topic} does not exist any more at {cluster.bootstrap}: create it again, and run again"
        )
    planner = Consumer({**target.client_config(), "group.id": f"{target.group}-plan"}, logger=SILENT)
    try:
        (begun,) = committed_by(planner, [TopicPartition(target.topic, 0)])
        if begun.offset == batch_id:
            return int(begun.metadata or partitions)
        planner.commit(offsets=[TopicPartition(target.topic, 0, batch_id, str(partitions))], asynchronous=False)
    finally:
        planner.close()
    return partitions


def _write_tasks(batches: Iterable[pa.RecordBatch], batch_id: int, target: Target) -> Iterator[pa.RecordBatch]:
    """On an executor: write the rows of one Spark partition, ordered by task; there may be several."""
    import pyarrow as pa

    rows = (row for batch in batches for row in batch.to_pylist())
    for task, own in groupby(rows, key=lambda row: int(row["_task"])):
        writer = TransactionalWriter(target, task)
        try:
            if writer.position() > batch_id:
                continue
            written = writer.write(map(_row, own), batch_id + 1)
        finally:
            writer.close()
        yield pa.RecordBatch.from_pydict({"written": [written]})


def _row(row: dict[str, Any]) -> Row:
    headers = [(header["key"], header["value"]) for header in row.get("headers") or []]
    return Row(_bytes(row.get("key")), _bytes(row["value"]), headers, row.get("partition"))


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
