"""Writing a micro-batch to a topic exactly once, for readers with read_committed.

Spark runs a batch again when it does not know that it ended, with the same rows; its own sink would write them again.
Here the rows of a batch are shared out to tasks by their key, so that the same row always belongs to the same task, and
a task writes in one Kafka transaction: its rows, and the batch's number as an offset that the group of this query
commits. A task begins with InitTransactions, which fences and aborts whatever another attempt left open, and then looks
which batch was committed last: one that was is not written again.

Invariants: the transactional id and the group name the query, so a new checkpoint knows nothing of an old one; the
number of tasks of a batch is committed before it begins, since another number would share the rows out in another way.
Not promised: that the tasks of one batch become visible together.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from pyspark.sql import functions as f

from barnabas.pipeline.cluster import SILENT, Cluster, committed_by
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.kafka import with_event_id

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

PATIENCE_S = 60
TIMEOUT_MS = 900_000
"""Of a transaction; the most that brokers allow unless told otherwise."""

logger = logging.getLogger("barnabas.pipeline")
_fenced: set[Target] = set()
"""What this process has begun to write to."""


class Target(NamedTuple):
    """Where one query writes to."""

    bootstrap: str
    topic: str
    group: str


class Row(NamedTuple):
    """One record to write."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]]
    partition: int | None
    timestamp_ms: int | None = None


class TransactionalWriter:
    """The producer of one task: what it writes and how far it has come are committed together."""

    def __init__(self, target: Target, task: int) -> None:
        """Fences earlier attempts of the task. KafkaException when the broker does not let it."""
        self._target = target
        self._task = task
        self._producer = Producer(
            {
                "bootstrap.servers": target.bootstrap,
                "transactional.id": f"{target.group}-{task}",
                "transaction.timeout.ms": TIMEOUT_MS,
                "partitioner": "murmur2_random",  # as the Java clients choose
                "linger.ms": 20,
                "compression.type": "lz4",
            },
            logger=SILENT,
        )
        self._producer.init_transactions(PATIENCE_S)
        self._consumer = Consumer({"bootstrap.servers": target.bootstrap, "group.id": target.group}, logger=SILENT)

    def position(self) -> int:
        """How far the task has come: what the last committed transaction said; -1 before the first."""
        (found,) = committed_by(self._consumer, [TopicPartition(self._target.topic, self._task)])
        return int(found.offset) if found.offset >= 0 else -1

    def write(self, rows: Iterable[Row], position: int) -> int:
        """Write rows and the position in one transaction; returns how many rows."""
        self._producer.begin_transaction()
        try:
            written = sum(map(self._produce, rows))
            done = TopicPartition(self._target.topic, self._task, position)
            self._producer.send_offsets_to_transaction([done], self._consumer.consumer_group_metadata(), PATIENCE_S)
            self._producer.commit_transaction(PATIENCE_S)
        except BaseException:
            self._abort()
            raise
        return written

    def close(self) -> None:
        """Let the connections go."""
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
            except BufferError:  # the queue is full: let some go out
                self._producer.poll(0.1)
            else:
                return 1

    def _abort(self) -> None:
        try:
            self._producer.abort_transaction(PATIENCE_S)
        except KafkaException as error:  # fenced, or the broker is gone: the next attempt's InitTransactions aborts it
            logger.debug("transaction of %s-%d not aborted: %s", self._target.group, self._task, error)


def write_batch(batch: DataFrame, batch_id: int, target: Target) -> int:
    """Write a micro-batch: each row once, however often this is called for the same batch; how many rows now.

    `batch` has what `with_event_id` takes, and may have `position`, by which rows of one task are ordered. Its rows
    must be the same in every call for the same batch id.
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
    """End what an earlier run of this query left open, also of tasks that this batch has no rows for.

    An open transaction would hold readers back until it times out.
    """
    if target not in _fenced:
        for task in range(tasks):
            TransactionalWriter(target, task).close()
        _fenced.add(target)


def _number_of_tasks(batch_id: int, target: Target) -> int:
    """How many tasks share the batch: one for each partition of the topic, or as many as when it was begun before.

    The number is committed before the first task begins, by a group that takes part in no transaction.
    """
    partitions = Cluster(target.bootstrap).topics().get(target.topic)
    if not partitions:
        raise PipelineError(f"topic {target.topic} has gone from {target.bootstrap}: make it again, and run again")
    planner = Consumer({"bootstrap.servers": target.bootstrap, "group.id": f"{target.group}-plan"}, logger=SILENT)
    try:
        (begun,) = committed_by(planner, [TopicPartition(target.topic, 0)])
        if begun.offset == batch_id:
            return int(begun.metadata or partitions)
        planner.commit(offsets=[TopicPartition(target.topic, 0, batch_id, str(partitions))], asynchronous=False)
    finally:
        planner.close()
    return partitions


def _write_tasks(batches: Iterable[pa.RecordBatch], batch_id: int, target: Target) -> Iterator[pa.RecordBatch]:
    """On an executor: the rows of one Spark partition, which may hold several tasks, in the order of the tasks."""
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
