"""Topics that are truncated, deleted or created again while a stream reads them: an error, or skipped records if
`failOnDataLoss` is false.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from tests.clients.spark.spark_kit import (
    PATIENCE_S,
    Batches,
    Create,
    Name,
    add_partitions,
    delete_records,
    delete_topic,
    produce,
    source,
    start,
    take_available,
)
from tests.support.spark.session import MARKS
from tests.support.waiting import wait_for

pytestmark = [*MARKS, pytest.mark.soak]
LOST = r"KAFKA_DATA_LOSS|may have been (lost|missed)|some data may have been missed"
RETRIES = {"fetchOffset.numRetries": 10, "fetchOffset.retryIntervalMs": 50}
"""A lookup may find a topic in the list, and gone a moment later."""
Stream = Callable[..., Any]


@pytest.fixture
def stream(spark, broker) -> Stream:
    """`stream(loss_fails, **options) -> frame`, from the earliest offset on."""

    def read(loss_fails: bool, **options: object) -> Any:
        defaults = {"startingOffsets": "earliest", "failOnDataLoss": str(loss_fails).lower()}
        return source(spark.readStream, broker, **(RETRIES | defaults | options))

    return read


def test_records_deleted_while_the_stream_was_down(stream: Stream, broker, create: Create, tmp_path: Path) -> None:
    topic, batches = create(2), Batches()
    produce(broker, topic, range(20), 2)
    take_available(stream(True, subscribe=topic), batches, tmp_path)
    produce(broker, topic, range(20, 60), 2)
    delete_records(broker, topic, 20, partition=1)
    with pytest.raises(StreamingQueryException, match=LOST):
        take_available(stream(True, subscribe=topic), batches, tmp_path)
    take_available(stream(False, subscribe=topic), batches, tmp_path)
    assert batches.all() == sorted([*range(20), *range(20, 60, 2), *range(41, 60, 2)])


def test_records_deleted_before_they_were_read(stream: Stream, broker, create: Create, tmp_path: Path) -> None:
    """A running stream skips deleted records; records that its task has fetched already are still processed."""
    topic, batches = create(), Batches()
    for first in range(0, 100, 10):
        produce(broker, topic, range(first, first + 10))

    def keep(frame: Any, batch_id: int) -> None:
        batches(frame, batch_id)
        if batch_id == 0:
            delete_records(broker, topic, 75)

    one_by_one = {"maxOffsetsPerTrigger": 10, "kafka.max.partition.fetch.bytes": 1}
    take_available(stream(False, subscribe=topic, **one_by_one), keep, tmp_path)
    numbers = batches.all()
    assert numbers == sorted(set(numbers))
    assert {*range(10), *range(75, 100)} <= set(numbers)
    assert len(numbers) < 100


def test_all_records_of_a_batch_deleted_before_it_is_repeated(
    stream: Stream, broker, create: Create, tmp_path: Path
) -> None:
    topic, batches = create(), Batches()
    produce(broker, topic, range(20))

    def fail(frame: Any, batch_id: int) -> None:
        raise RuntimeError("interrupted")

    with pytest.raises(StreamingQueryException, match="interrupted"):
        take_available(stream(True, subscribe=topic), fail, tmp_path)
    delete_records(broker, topic, 20)
    produce(broker, topic, range(20, 30))
    with pytest.raises(StreamingQueryException, match=LOST):
        take_available(stream(True, subscribe=topic), batches, tmp_path)
    take_available(stream(False, subscribe=topic), batches, tmp_path)
    assert batches.of == {0: [], 1: list(range(20, 30))}


def test_a_new_partition_that_has_lost_its_first_records(
    stream: Stream, broker, create: Create, tmp_path: Path
) -> None:
    """Deleted records of a partition that was added while the stream was stopped are lost data too."""
    topic, batches = create(), Batches()
    produce(broker, topic, range(10))
    take_available(stream(True, subscribe=topic), batches, tmp_path)
    add_partitions(broker, topic, 2)
    produce(broker, topic, range(10, 30), 2)
    delete_records(broker, topic, 4, partition=1)
    with pytest.raises(StreamingQueryException, match=LOST):
        take_available(stream(True, subscribe=topic), batches, tmp_path)
    take_available(stream(False, subscribe=topic), batches, tmp_path)
    assert batches.all() == sorted([*range(10), *range(10, 30, 2), *range(19, 30, 2)])


@pytest.mark.parametrize("loss_fails", [True, False])
def test_a_topic_deleted_under_a_pattern(
    stream: Stream, broker, create: Create, topic_name: Name, tmp_path: Path, loss_fails: bool
) -> None:
    stem, batches = topic_name("gone"), Batches()
    first, second = create(1, f"{stem}-a"), create(1, f"{stem}-b")
    pattern = {"subscribePattern": f"^{stem}-.*"}
    produce(broker, first, range(10))
    produce(broker, second, range(10, 20))
    take_available(stream(True, **pattern), batches, tmp_path)
    delete_topic(broker, first)
    produce(broker, second, range(20, 30))
    query = start(stream(loss_fails, **pattern), batches, tmp_path)
    if loss_fails:
        with pytest.raises(StreamingQueryException, match=LOST):
            query.processAllAvailable()
        assert batches.all() == list(range(20))
    else:
        query.processAllAvailable()
        produce(broker, second, range(30, 40))
        query.processAllAvailable()
        query.stop()
        assert batches.all() == list(range(40))


def test_a_topic_deleted_that_was_named(stream: Stream, broker, create: Create, tmp_path: Path) -> None:
    """A stream with `subscribe` fails without its topic, whatever `failOnDataLoss` is."""
    topic, batches = create(), Batches()
    produce(broker, topic, range(10))
    take_available(stream(True, subscribe=topic), batches, tmp_path)
    delete_topic(broker, topic)
    for loss_fails in (True, False):
        with pytest.raises(StreamingQueryException, match="UnknownTopicOrPartition"):
            take_available(stream(loss_fails, subscribe=topic), batches, tmp_path)


def test_a_topic_recreated_with_fewer_records(stream: Stream, broker, create: Create, tmp_path: Path) -> None:
    """Records that the new topic had at the first read are skipped; later ones are read."""
    topic, batches = create(), Batches()
    produce(broker, topic, range(10))
    take_available(stream(True, subscribe=topic), batches, tmp_path)
    delete_topic(broker, topic)
    create(1, topic)
    produce(broker, topic, range(100, 105))
    with pytest.raises(StreamingQueryException, match=LOST):
        take_available(stream(True, subscribe=topic), batches, tmp_path)
    query = start(stream(False, subscribe=topic), batches, tmp_path)
    query.processAllAvailable()
    produce(broker, topic, range(105, 120))
    wait_for(lambda: batches.all()[-1] == 119, "the new topic is read", PATIENCE_S)
    query.stop()
    assert batches.all() == [*range(10), *range(105, 120)]


def test_a_topic_recreated_with_more_records_is_not_detected(
    stream: Stream, broker, create: Create, tmp_path: Path
) -> None:
    """The connector identifies topics by name: the first records of the new topic are skipped without an error."""
    topic, batches = create(), Batches()
    produce(broker, topic, range(10))
    take_available(stream(True, subscribe=topic), batches, tmp_path)
    delete_topic(broker, topic)
    create(1, topic)
    produce(broker, topic, range(100, 130))
    take_available(stream(True, subscribe=topic), batches, tmp_path)
    assert batches.all() == [*range(10), *range(110, 130)]


def test_a_topic_recreated_while_the_stream_runs(
    stream: Stream, broker, create: Create, topic_name: Name, tmp_path: Path
) -> None:
    stem, batches = topic_name("again"), Batches()
    first, second = create(1, f"{stem}-a"), create(1, f"{stem}-b")
    produce(broker, first, range(10))
    query = start(stream(False, subscribePattern=f"^{stem}-.*"), batches, tmp_path)
    query.processAllAvailable()
    delete_topic(broker, first)
    produce(broker, second, range(10, 20))
    query.processAllAvailable()  # after a batch without the topic its offsets are forgotten
    create(1, first)
    produce(broker, first, range(20, 25))
    wait_for(lambda: batches.all() == list(range(25)), "the new topic is read from its first record", PATIENCE_S)
    query.stop()
