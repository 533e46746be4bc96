"""Topics with transactions: the records that each isolation level shows, and the offset gaps of markers and aborts."""

from __future__ import annotations

import pytest

from tests.clients.spark.spark_kit import (
    PATIENCE_S,
    Batches,
    Create,
    Producer,
    at,
    by_partition,
    delete_records,
    numbers,
    produce,
    source,
    start,
    take_available,
    transaction,
    transactional,
    write,
)
from tests.support.spark.session import MARKS
from tests.support.waiting import wait_for

pytestmark = [*MARKS, pytest.mark.soak]
V1_SOURCES = "spark.sql.sources.useV1SourceList"
DEPRECATED = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
COMMITTED = {"kafka__isolation__level": "read_committed"}
UNCOMMITTED = {"kafka__isolation__level": "read_uncommitted"}


@pytest.fixture
def writer(broker, topic: str) -> Producer:
    """A transactional producer, after init_transactions."""
    return transactional(broker, topic)


@pytest.fixture
def mixed(broker, create: Create, writer: Producer) -> str:
    """Two partitions: 0..19 committed, 20..39 aborted, 40..59 committed, 60..69 plain; three markers in each."""
    topic = create(2)
    transaction(writer, topic, range(20), 2)
    transaction(writer, topic, range(20, 40), 2, commit=False)
    transaction(writer, topic, range(40, 60), 2)
    produce(broker, topic, range(60, 70), 2)
    return topic


SHOWN = [*range(20), *range(40, 70)]


@pytest.mark.parametrize("way", ["relation", "scan", "consumer"])
def test_a_batch_shows_what_its_isolation_level_says(spark, broker, mixed: str, way: str) -> None:
    spark.conf.set(V1_SOURCES, "" if way == "scan" else "kafka")
    spark.conf.set(DEPRECATED, str(way == "consumer").lower())
    try:
        assert numbers(source(spark.read, broker, subscribe=mixed, **COMMITTED)) == SHOWN
        assert numbers(source(spark.read, broker, subscribe=mixed, **UNCOMMITTED)) == list(range(70))
        assert numbers(source(spark.read, broker, subscribe=mixed)) == list(range(70))
    finally:
        spark.conf.unset(V1_SOURCES)
        spark.conf.unset(DEPRECATED)


def test_a_batch_that_begins_or_ends_at_a_marker(spark, broker, mixed: str) -> None:
    """Of each partition: 0..9, marker 10, 11..20 aborted, marker 21, 22..31, marker 32, 33..37."""

    def read(first: int, end: int) -> list[int]:
        offsets = {"startingOffsets": by_partition(mixed, first, 38), "endingOffsets": by_partition(mixed, end, 38)}
        return numbers(source(spark.read, broker, subscribe=mixed, **offsets, **COMMITTED))

    assert read(10, 22) == []
    assert read(10, 11) == []
    assert read(21, 23) == [40]
    assert read(9, 23) == [18, 40]
    assert read(32, 34) == [60]
    assert read(31, 33) == [58]


@pytest.mark.parametrize("limit", [3, 7])
def test_a_stream_in_batches_smaller_than_the_gaps(spark, broker, create: Create, writer, tmp_path, limit: int) -> None:
    """Batches of aborted records and markers alone are skipped without an error about lost data."""
    topic, batches = create(), Batches()
    transaction(writer, topic, range(5))
    transaction(writer, topic, range(5, 15), commit=False)
    transaction(writer, topic, [15])
    stream = source(
        spark.readStream,
        broker,
        subscribe=topic,
        startingOffsets="earliest",
        maxOffsetsPerTrigger=limit,
        failOnDataLoss="true",
        **COMMITTED,
    )
    take_available(stream, batches, tmp_path)
    assert batches.all() == [0, 1, 2, 3, 4, 15]
    assert [] in batches.of.values()
    assert len(batches.of) == -(-19 // limit)


def test_an_open_transaction_blocks_later_records(spark, broker, create: Create, writer, tmp_path) -> None:
    """read_committed shows nothing after its first record, not even plain records; read_uncommitted shows all."""
    topic = create()
    committed, uncommitted = Batches(), Batches()
    produce(broker, topic, range(10))
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    query = start(source(spark.readStream, broker, **options, **COMMITTED), committed, tmp_path / "committed")
    other = start(source(spark.readStream, broker, **options, **UNCOMMITTED), uncommitted, tmp_path / "uncommitted")
    writer.begin_transaction()
    write(writer, topic, range(10, 20))
    produce(broker, topic, range(20, 30))
    for running in (query, other):
        running.processAllAvailable()
    assert committed.all() == list(range(10))
    assert numbers(source(spark.read, broker, subscribe=topic, **COMMITTED)) == list(range(10))
    assert uncommitted.all() == list(range(30))
    other.stop()
    writer.commit_transaction(30)
    wait_for(lambda: committed.all() == list(range(30)), "the transaction is read", PATIENCE_S)
    query.stop()


def test_an_open_transaction_that_is_aborted(spark, broker, create: Create, writer, tmp_path) -> None:
    topic, batches = create(2), Batches()
    options = {"subscribe": topic, "startingOffsets": "earliest", **COMMITTED}
    query = start(source(spark.readStream, broker, **options), batches, tmp_path)
    writer.begin_transaction()
    write(writer, topic, range(10), 2)
    produce(broker, topic, range(10, 20), 2)
    query.processAllAvailable()
    assert batches.all() == []
    writer.abort_transaction(30)
    wait_for(lambda: batches.all() == list(range(10, 20)), "the records after it are read", PATIENCE_S)
    query.stop()


def test_aborted_transactions_are_not_data_loss(spark, broker, create: Create, writer, tmp_path) -> None:
    topic, batches = create(2), Batches()
    transaction(writer, topic, range(20), 2, commit=False)
    assert numbers(source(spark.read, broker, subscribe=topic, **COMMITTED)) == []
    options = {"subscribe": topic, "startingOffsets": "earliest", "failOnDataLoss": "true", **COMMITTED}
    take_available(source(spark.readStream, broker, **options), batches, tmp_path)
    assert batches.all() == []
    transaction(writer, topic, range(20, 30), 2)
    take_available(source(spark.readStream, broker, **options), batches, tmp_path)
    assert batches.all() == list(range(20, 30))


def test_records_of_interleaved_transactions(spark, broker, create: Create, topic_name) -> None:
    """Concurrent producers to one partition: the aborted records of each are left out."""
    topic = create()
    writers = [transactional(broker, topic_name()) for _ in range(3)]
    for producer in writers:
        producer.begin_transaction()
    for n in range(30):
        write(writers[n % 3], topic, [n])
    writers[1].abort_transaction(30)
    writers[2].commit_transaction(30)
    writers[0].commit_transaction(30)
    assert numbers(source(spark.read, broker, subscribe=topic, **COMMITTED)) == [n for n in range(30) if n % 3 != 1]
    assert numbers(source(spark.read, broker, subscribe=topic, **UNCOMMITTED)) == list(range(30))


def test_records_deleted_in_front_of_a_transaction(spark, broker, mixed: str) -> None:
    """The first records of the aborted transaction are deleted; the others are still left out."""
    delete_records(broker, mixed, 15)
    delete_records(broker, mixed, 21, partition=1)
    remaining = numbers(source(spark.read, broker, subscribe=mixed, **COMMITTED))
    assert remaining == list(range(40, 70))


def test_a_marker_is_found_by_its_time(spark, broker, mixed: str) -> None:
    """A marker's timestamp is its time of writing, later than the records here: a read by timestamp begins there."""
    after = {"subscribe": mixed, "startingTimestamp": at(30)}
    assert numbers(source(spark.read, broker, **after, **COMMITTED)) == list(range(40, 70))
    assert numbers(source(spark.read, broker, **after, **UNCOMMITTED)) == list(range(20, 70))
    before = {"subscribe": mixed, "endingTimestamp": at(64)}
    assert numbers(source(spark.read, broker, **before, **COMMITTED)) == list(range(20))
