"""What Spark writes: accepted and rejected columns, producer options, and streams in each output mode.

confluent-kafka reads everything that was written.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import functions

from tests.clients.spark.spark_kit import (
    PATIENCE_S,
    Create,
    consume,
    ended,
    numbers,
    produce,
    sink,
    source,
    take_available,
)
from tests.support.spark.session import MARKS
from tests.support.waiting import wait_for

pytestmark = [*MARKS, pytest.mark.soak]


def rows(spark: Any, count: int, *columns: str) -> Any:
    """Numbers as values, and further columns."""
    return spark.range(count).coalesce(1).selectExpr("CAST(id AS STRING) AS value", *columns)


def values(broker: Any, topic: str, count: int) -> list[int]:
    return sorted(int(message.value()) for message in consume(broker, topic, count))


def test_the_topic_option_overrides_the_column(spark, broker, create: Create) -> None:
    option, column = create(), create()
    frame = rows(spark, 20, f"'{column}' AS topic")
    sink(frame.write, broker, topic=option).save()
    sink(frame.limit(5).write, broker).save()
    assert values(broker, option, 20) == list(range(20))
    assert values(broker, column, 5) == list(range(5))


def test_the_topic_column_sends_each_row_to_its_own(spark, broker, create: Create) -> None:
    first, second = create(2), create()
    sink(rows(spark, 30, f"IF(id % 3 = 0, '{first}', '{second}') AS topic").write, broker).save()
    assert values(broker, first, 10) == list(range(0, 30, 3))
    assert values(broker, second, 20) == [n for n in range(30) if n % 3]


def test_text_and_bytes_as_keys_and_values(spark, broker, create: Create) -> None:
    text, binary = create(), create()
    frame = spark.range(3).selectExpr("CONCAT('ключ-', id) AS key", "CONCAT('значение-', id) AS value")
    sink(frame.write, broker, topic=text).save()
    sink(
        frame.selectExpr("CAST(key AS BINARY) AS key", "CAST(value AS BINARY) AS value").write, broker, topic=binary
    ).save()
    expected = {(f"ключ-{n}".encode(), f"значение-{n}".encode()) for n in range(3)}
    for topic in (text, binary):
        assert {(message.key(), message.value()) for message in consume(broker, topic, 3)} == expected


def test_the_partition_column_and_the_key_choose_the_partition(spark, broker, create: Create) -> None:
    """Without a partition column, or if it is null, the key's hash chooses, as in the Java producer."""
    by_column, by_key = create(4), create(4)
    sink(rows(spark, 40, "CAST(3 - id % 4 AS INT) AS partition", "'same' AS key").write, broker, topic=by_column).save()
    assert {(int(m.value()), m.partition()) for m in consume(broker, by_column, 40)} == {
        (n, 3 - n % 4) for n in range(40)
    }
    frame = rows(spark, 40, "CAST(NULL AS INT) AS partition", "CAST(id % 5 AS STRING) AS key")
    sink(frame.write, broker, topic=by_key).save()
    chosen = {(m.key(), m.partition()) for m in consume(broker, by_key, 40)}
    assert len(chosen) == 5
    assert len({partition for _, partition in chosen}) > 1


def test_a_missing_partition_fails_the_write(spark, broker, create: Create) -> None:
    frame = rows(spark, 1, "CAST(7 AS INT) AS partition")
    with pytest.raises(Exception, match=r"not present in metadata|TimeoutException"):
        sink(frame.write, broker, topic=create(2), kafka__max__block__ms=500).save()


def test_headers_are_written_with_include_headers(spark, broker, create: Create) -> None:
    some, none = create(), create()
    frame = rows(spark, 4, "array(struct('a' AS key, X'00ff' AS value), struct('a' AS key, NULL AS value)) AS headers")
    frame = frame.selectExpr("value", "CAST(headers AS array<struct<key:string,value:binary>>) AS headers")
    sink(frame.write, broker, topic=some, includeHeaders="true").save()
    sink(frame.select("value").write, broker, topic=none).save()
    assert [m.headers() for m in consume(broker, some, 4)] == [[("a", b"\0\xff"), ("a", None)]] * 4
    assert [m.headers() for m in consume(broker, none, 4)] == [None] * 4


def test_null_values_are_tombstones(spark, broker, create: Create) -> None:
    topic = create(1, cleanup__policy="compact")
    frame = spark.range(4).coalesce(1).selectExpr("CAST(id AS STRING) AS key", "IF(id % 2 = 0, NULL, 'x') AS value")
    sink(frame.write, broker, topic=topic).save()
    records = sorted((m.key(), m.value()) for m in consume(broker, topic, 4))
    assert records == [(b"0", None), (b"1", b"x"), (b"2", None), (b"3", b"x")]


def test_a_row_without_a_topic_fails_the_write(spark, broker) -> None:
    with pytest.raises(Exception, match="null topic"):
        sink(rows(spark, 1, "CAST(NULL AS STRING) AS topic").write, broker).save()


def test_an_empty_frame_writes_nothing(spark, broker, create: Create) -> None:
    topic = create()
    sink(rows(spark, 10).filter("value = 'no'").write, broker, topic=topic).save()
    assert source(spark.read, broker, subscribe=topic).count() == 0


WRONG_COLUMNS = {
    "no-topic": (["'v' AS value"], {}, "topic option required"),
    "no-value": (["'k' AS key"], {"topic": "t"}, "'value' not found"),
    "topic": (["'v' AS value", "1 AS topic"], {}, "topic.*must be a"),
    "value": (["1 AS value"], {"topic": "t"}, "value.*must be a"),
    "key": (["'v' AS value", "1 AS key"], {"topic": "t"}, "key.*must be a"),
    "partition": (["'v' AS value", "'1' AS partition"], {"topic": "t"}, "partition.*must be a"),
    "headers": (["'v' AS value", "'h' AS headers"], {"topic": "t", "includeHeaders": "true"}, "headers.*must be a"),
}


@pytest.mark.parametrize("case", WRONG_COLUMNS)
def test_columns_that_a_batch_cannot_write(spark, broker, case: str) -> None:
    columns, options, message = WRONG_COLUMNS[case]
    writer = sink(spark.range(1).selectExpr(*columns).write, broker, **options)
    with pytest.raises(AnalysisException, match=message):
        writer.save()


@pytest.mark.parametrize("case", WRONG_COLUMNS)
def test_columns_that_a_stream_cannot_write(spark, broker, create: Create, tmp_path, case: str) -> None:
    columns, options, message = WRONG_COLUMNS[case]
    frame = source(spark.readStream, broker, subscribe=create()).selectExpr(*columns)
    writer = sink(frame.writeStream, broker, checkpointLocation=str(tmp_path), **options)
    with pytest.raises((AnalysisException, StreamingQueryException), match=message):
        ended(writer.start())


@pytest.mark.parametrize("option", ["kafka.key.serializer", "kafka.value.serializer"])
def test_serializers_cannot_be_set(spark, broker, option: str) -> None:
    with pytest.raises(Exception, match=f"'{option.removeprefix('kafka.')}' is not supported"):
        sink(rows(spark, 1).write, broker, topic="t", **{option: "x"}).save()


@pytest.mark.parametrize("mode", ["overwrite", "ignore", "error"])
def test_a_topic_can_only_be_appended_to(spark, broker, create: Create, mode: str) -> None:
    """`error` is the default mode, and appends too."""
    topic = create()
    writer = sink(rows(spark, 3).write, broker, topic=topic).mode(mode)
    if mode == "error":
        writer.save()
        assert values(broker, topic, 3) == [0, 1, 2]
    else:
        with pytest.raises(AnalysisException, match="not allowed"):
            writer.save()


PRODUCERS = {
    "acks-0": {"acks": "0", "enable.idempotence": "false"},
    "acks-1": {"acks": "1", "enable.idempotence": "false"},
    "all-idempotent": {"acks": "all", "enable.idempotence": "true"},
    "one-in-flight-not-idempotent": {"max.in.flight.requests.per.connection": "1", "enable.idempotence": "false"},
    "big-batches": {"batch.size": "1000000", "linger.ms": "50", "compression.type": "gzip"},
    "no-batches": {"batch.size": "0", "linger.ms": "0", "compression.type": "snappy"},
}


@pytest.mark.parametrize("case", PRODUCERS)
def test_options_of_the_producer(spark, broker, create: Create, case: str) -> None:
    topic = create(2)
    options = {f"kafka.{key}": value for key, value in PRODUCERS[case].items()}
    frame = rows(spark, 500, "CAST(id AS STRING) AS key")
    sink(frame.write, broker, topic=topic, **options).save()
    assert values(broker, topic, 500) == list(range(500))


def test_many_tasks_write_concurrently(spark, broker, create: Create) -> None:
    topic = create(3)
    frame = spark.range(0, 20_000, 1, 8).selectExpr("CAST(id AS STRING) AS value")
    sink(frame.write, broker, topic=topic).save()
    read = source(spark.read, broker, subscribe=topic).selectExpr("CAST(value AS STRING) AS v")
    assert [read.count(), read.distinct().count()] == [20_000, 20_000]


def test_a_stream_of_appends(spark, broker, create: Create, tmp_path) -> None:
    """Topic, partition, key and headers of each row; then a restart from the checkpoint."""
    origin, first_topic, second_topic = create(2), create(2), create(2)
    produce(broker, origin, range(30), 2)

    def run() -> None:
        options = {"subscribe": origin, "startingOffsets": "earliest", "includeHeaders": "true"}
        frame = source(spark.readStream, broker, **options).selectExpr(
            "key",
            "value",
            "headers",
            "1 - partition AS partition",
            f"IF(partition = 0, '{first_topic}', '{second_topic}') AS topic",
        )
        writer = sink(frame.writeStream, broker, includeHeaders="true", checkpointLocation=str(tmp_path))
        ended(writer.trigger(availableNow=True).start())

    run()
    produce(broker, origin, range(30, 40), 2)
    run()
    for topic, first in ((first_topic, 0), (second_topic, 1)):
        messages = consume(broker, topic, 20)
        assert sorted(int(m.value()) for m in messages) == list(range(first, 40, 2))
        assert {m.partition() for m in messages} == {1 - first}
        assert all(m.headers() == [("n", m.value())] and m.key() == b"key-" + m.value() for m in messages)


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_a_stream_of_counts(spark, broker, create: Create, tmp_path, mode: str) -> None:
    """Each batch writes the changed counts (`update`) or all counts (`complete`)."""
    origin, target = create(), create()
    frame = (
        source(spark.readStream, broker, subscribe=origin, startingOffsets="earliest")
        .selectExpr("CAST(CAST(CAST(value AS STRING) AS INT) % 3 AS STRING) AS key")
        .groupBy("key")
        .count()
        .selectExpr("key", "CAST(count AS STRING) AS value")
    )
    query = sink(frame.writeStream.outputMode(mode), broker, topic=target, checkpointLocation=str(tmp_path)).start()
    for n in (0, 1, 3):
        produce(broker, origin, [n])
        query.processAllAvailable()
    query.stop()
    count = {"update": 3, "complete": 5}[mode]
    messages = sorted(consume(broker, target, count), key=lambda message: message.offset())
    records = [(m.key(), m.value()) for m in messages]
    assert records[-1 if mode == "update" else 0] == {"update": (b"0", b"2"), "complete": (b"0", b"1")}[mode]
    assert (
        sorted(records)
        == {
            "update": [(b"0", b"1"), (b"0", b"2"), (b"1", b"1")],
            "complete": [(b"0", b"1"), (b"0", b"1"), (b"0", b"2"), (b"1", b"1"), (b"1", b"1")],
        }[mode]
    )


def test_a_stream_of_closed_windows(spark, broker, create: Create, tmp_path) -> None:
    """Appends counts of windows that the watermark has closed, by the records' timestamps."""
    origin, target = create(), create()
    frame = (
        source(spark.readStream, broker, subscribe=origin, startingOffsets="earliest", maxOffsetsPerTrigger=10)
        .withWatermark("timestamp", "0 seconds")
        .groupBy(functions.window("timestamp", "10 seconds"))
        .count()
        .selectExpr("CAST(count AS STRING) AS value")
    )
    produce(broker, origin, range(40))
    writer = sink(frame.writeStream, broker, topic=target, checkpointLocation=str(tmp_path))
    ended(writer.trigger(availableNow=True).start())
    assert values(broker, target, 3)[:3] == [10, 10, 10]


def test_rows_written_are_counted_in_the_progress(spark, broker, create: Create, tmp_path) -> None:
    origin, target = create(), create()
    produce(broker, origin, range(25))
    frame = source(spark.readStream, broker, subscribe=origin, startingOffsets="earliest").select("value")
    writer = sink(frame.writeStream, broker, topic=target, checkpointLocation=str(tmp_path))
    query = writer.trigger(availableNow=True).start()
    ended(query)
    assert query.lastProgress["sink"]["numOutputRows"] == 25
    assert values(broker, target, 25) == list(range(25))


def test_each_batch_written_by_foreach_batch(spark, broker, create: Create, tmp_path) -> None:
    """foreachBatch with two writes of one batch, which is read twice."""
    origin, all_of_it, even = create(2), create(), create()
    produce(broker, origin, range(40), 2)

    def keep(batch: Any, _: int) -> None:
        sink(batch.select("value").write, broker, topic=all_of_it).save()
        sink(batch.filter("partition = 0").select("value").write, broker, topic=even).save()

    stream = source(spark.readStream, broker, subscribe=origin, startingOffsets="earliest", maxOffsetsPerTrigger=20)
    take_available(stream, keep, tmp_path)
    assert values(broker, all_of_it, 40) == list(range(40))
    assert values(broker, even, 20) == list(range(0, 40, 2))


def test_a_batch_that_failed_in_the_middle_is_written_again(spark, broker, create: Create, tmp_path) -> None:
    """The sink is at-least-once: nothing is lost, and records of the first attempt are duplicated."""
    origin, target = create(1), create(1)
    produce(broker, origin, range(20))

    def run(poison: str) -> None:
        stream = source(spark.readStream, broker, subscribe=origin, startingOffsets="earliest", maxOffsetsPerTrigger=10)
        frame = stream.selectExpr(f"IF(offset = {poison}, raise_error('interrupted'), CAST(value AS STRING)) AS value")
        writer = sink(frame.writeStream, broker, topic=target, checkpointLocation=str(tmp_path))
        ended(writer.trigger(availableNow=True).start())

    with pytest.raises(Exception, match="interrupted"):
        run("15")
    run("-1")
    wait_for(
        lambda: {*numbers(source(spark.read, broker, subscribe=target))} == {*range(20)},
        "all records are written",
        PATIENCE_S,
    )
    written = numbers(source(spark.read, broker, subscribe=target))
    assert [n for n in written if n < 10] == list(range(10))
    assert [n for n in range(15, 20) if written.count(n) != 1] == []


def test_json_written_and_read(spark, broker, create: Create) -> None:
    topic = create()
    frame = spark.range(5).selectExpr("to_json(named_struct('id', id, 'twice', id * 2)) AS value")
    sink(frame.write, broker, topic=topic).save()
    assert sorted(json.loads(m.value())["twice"] for m in consume(broker, topic, 5)) == [0, 2, 4, 6, 8]
    parsed = source(spark.read, broker, subscribe=topic).selectExpr(
        "from_json(CAST(value AS STRING), 'id INT, twice INT') AS it"
    )
    assert parsed.selectExpr("sum(it.twice) AS total").first().total == 20
