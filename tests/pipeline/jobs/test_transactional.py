"""The transactional sink: a batch that is written again, fully or partly, is in the topic once."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions

from barnabas.spark.topics import transactions
from barnabas.spark.topics.transactions import Row, Target, TransactionalWriter, write_batch
from tests.pipeline.runs import consume
from tests.support.processes.server import Server
from tests.support.spark.session import frame_of

ROWS = 60


@pytest.fixture
def target(broker: Server, create: Any) -> Target:
    """A new topic with three partitions, and a new query."""
    topic = create(3)
    return Target(broker.bootstrap, topic, f"query-{topic}")


def batch(spark: Any, first: int = 0) -> Any:
    """A micro-batch: ROWS rows of ten keys, with event ids and positions."""
    rows = [(f"key-{n % 10}", f"{n}", f"id-{n}", n) for n in range(first, first + ROWS)]
    return frame_of(spark, rows, "key STRING, value STRING, event_id STRING, position INT")


def values(broker: Server, target: Target, isolation: str = "read_committed") -> list[int]:
    """The records that a reader sees."""
    return sorted(int(message.value()) for message in consume(broker, target.topic, isolation))


def test_a_batch_is_written_once_however_often_it_is_run(spark: Any, broker: Server, target: Target) -> None:
    assert write_batch(batch(spark), 0, target) == ROWS
    assert write_batch(batch(spark), 0, target) == 0
    assert write_batch(batch(spark, ROWS), 1, target) == ROWS
    assert write_batch(batch(spark, ROWS), 1, target) == 0
    assert values(broker, target) == list(range(2 * ROWS))


@pytest.mark.soak
def test_records_of_a_key_stay_in_order_and_carry_their_event_id(spark: Any, broker: Server, target: Target) -> None:
    shuffled = batch(spark).orderBy("value", ascending=False)
    write_batch(shuffled, 0, target)
    by_key: dict[bytes, list[int]] = {}
    for message in consume(broker, target.topic):
        by_key.setdefault(message.key(), []).append(int(message.value()))
        assert message.headers() == [("barnabas-event-id", b"id-" + message.value())]
    assert all(numbers == sorted(numbers) for numbers in by_key.values())
    assert len(by_key) == 10


@pytest.mark.soak
def test_an_open_attempt_is_fenced_and_its_rows_never_appear(spark: Any, broker: Server, target: Target) -> None:
    zombies = [TransactionalWriter(target, task) for task in range(3)]
    for zombie in zombies:
        zombie._producer.begin_transaction()
        zombie._produce(Row(b"key", b"-1", [], None))
        zombie._producer.flush(30)
    assert values(broker, target, "read_uncommitted") == [-1, -1, -1]
    assert write_batch(batch(spark), 0, target) == ROWS
    for zombie in zombies:
        with pytest.raises(KafkaException, match=r"FENCED|PRODUCER_EPOCH|[Ff]enced"):
            zombie._producer.commit_transaction(30)
        zombie.close()
    assert values(broker, target) == list(range(ROWS))


@pytest.mark.soak
def test_a_failed_attempt_with_a_pending_position_blocks_nothing(spark: Any, broker: Server, target: Target) -> None:
    from confluent_kafka import TopicPartition

    zombie = TransactionalWriter(target, 0)
    zombie._producer.begin_transaction()
    zombie._produce(Row(b"key", b"-1", [], None))
    position = TopicPartition(target.topic, 0, 1)
    zombie._producer.send_offsets_to_transaction([position], zombie._consumer.consumer_group_metadata(), 30)
    assert write_batch(batch(spark), 0, target) == ROWS
    assert values(broker, target) == list(range(ROWS))


@pytest.mark.soak
def test_after_some_tasks_only_the_others_write(
    spark: Any, broker: Server, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Task 1 fails before its transaction; then the topic grows, which must not change the distribution of rows."""
    monkeypatch.setattr(transactions, "_write_tasks", _FailingTask(1))
    with pytest.raises(Exception, match="task 1 fails"):
        write_batch(batch(spark), 0, target)
    monkeypatch.undo()
    written = values(broker, target)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_partitions([NewPartitions(target.topic, 7)])[target.topic].result(30)
    assert write_batch(batch(spark), 0, target) == ROWS - len(written)
    assert values(broker, target) == list(range(ROWS))
    assert write_batch(batch(spark, ROWS), 1, target) == ROWS  # the next batch has seven tasks
    assert values(broker, target) == list(range(2 * ROWS))


class _FailingTask:
    """Writes the rows of earlier tasks, then fails, as if the process of the task was killed."""

    def __init__(self, task: int) -> None:
        self.task = task
        self.write = transactions._write_tasks

    def __call__(self, batches: Any, batch_id: int, target: Target) -> Any:
        for part in batches:
            rows = part.to_pylist()
            if any(row["_task"] == self.task for row in rows):
                raise RuntimeError(f"task {self.task} fails")
            yield from self.write(iter([part]), batch_id, target)


@pytest.mark.soak
def test_two_queries_write_to_one_topic_without_fencing_each_other(spark: Any, broker: Server, target: Target) -> None:
    other = target._replace(group=f"other-{target.group}")
    assert write_batch(batch(spark), 0, target) == ROWS
    assert write_batch(batch(spark, ROWS), 0, other) == ROWS
    assert values(broker, target) == list(range(2 * ROWS))


@pytest.mark.soak
def test_rows_without_a_key_and_tombstones_are_written(spark: Any, broker: Server, target: Target) -> None:
    rows = [(None, "1", "a"), ("gone", None, "b"), (None, None, "c")]
    frame = frame_of(spark, rows, "key STRING, value STRING, event_id STRING")
    assert write_batch(frame, 0, target) == 3
    seen = {(message.key(), message.value()) for message in consume(broker, target.topic)}
    assert seen == {(None, b"1"), (b"gone", None), (None, None)}
