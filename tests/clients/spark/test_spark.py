"""PySpark 4.0.0 with its Kafka connector: batch and stream, read and write, restart from a checkpoint.

confluent-kafka reads what Spark wrote and writes what Spark reads, so that two errors of Spark cannot cancel out.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.clients.spark.spark_kit import (
    EPOCH,
    PATIENCE_S,
    consume,
    create_topic,
    delete_records,
    delete_topic,
    numbers,
    produce,
    source,
)
from tests.support.spark.session import MARKS

pytestmark = MARKS


def test_batch_read_gives_every_column(spark, broker, create) -> None:
    topic = create(2)
    produce(broker, topic, range(20), 2)
    rows = source(spark.read, broker, subscribe=topic, includeHeaders="true").orderBy("timestamp").collect()
    assert [bytes(row.value) for row in rows] == [b"%d" % n for n in range(20)]
    assert [bytes(row.key) for row in rows] == [b"key-%d" % n for n in range(20)]
    assert [(row.topic, row.partition, row.offset) for row in rows] == [(topic, n % 2, n // 2) for n in range(20)]
    assert [[(h.key, bytes(h.value)) for h in row.headers] for row in rows] == [[("n", b"%d" % n)] for n in range(20)]
    assert {row.timestampType for row in rows} == {0}


def test_batch_read_by_offsets(spark, broker, create) -> None:
    topic = create(2)
    produce(broker, topic, range(100), 2)
    frame = source(
        spark.read,
        broker,
        subscribe=topic,
        startingOffsets=json.dumps({topic: {"0": 10, "1": -2}}),
        endingOffsets=json.dumps({topic: {"0": 20, "1": -1}}),
    )
    assert numbers(frame) == sorted([*range(20, 40, 2), *range(1, 100, 2)])


def test_batch_read_by_timestamps(spark, broker, create) -> None:
    topic = create(2)
    produce(broker, topic, range(100), 2)
    frame = source(
        spark.read,
        broker,
        subscribe=topic,
        startingOffsetsByTimestamp=json.dumps({topic: {"0": EPOCH + 30_000, "1": EPOCH + 30_000}}),
        endingOffsetsByTimestamp=json.dumps({topic: {"0": EPOCH + 40_000, "1": EPOCH + 500_000}}),
    )
    assert numbers(frame) == sorted([*range(30, 40, 2), *range(31, 100, 2)])
    assert numbers(source(spark.read, broker, subscribe=topic, startingTimestamp=str(EPOCH + 95_500))) == [
        96,
        97,
        98,
        99,
    ]


def test_batch_read_by_a_timestamp_after_the_last_record_by_strategy(spark, broker, create) -> None:
    """ListOffsets returns -1, which Spark handles as `startingOffsetsByTimestampStrategy` says."""
    topic = create()
    produce(broker, topic, range(10))
    late = {"subscribe": topic, "startingTimestamp": str(EPOCH + 60_000)}
    from pyspark.errors import IllegalArgumentException

    with pytest.raises(IllegalArgumentException, match="No offset matched"):
        numbers(source(spark.read, broker, **late))
    assert numbers(source(spark.read, broker, startingOffsetsByTimestampStrategy="latest", **late)) == []


def test_batch_read_of_assigned_partitions(spark, broker, create) -> None:
    topic = create(3)
    produce(broker, topic, range(30), 3)
    assert numbers(source(spark.read, broker, assign=json.dumps({topic: [2]}))) == list(range(2, 30, 3))


def test_batch_read_of_a_big_topic_is_complete(spark, broker, create) -> None:
    topic = create(4)
    produce(broker, topic, range(40_000), 4)
    frame = source(spark.read, broker, subscribe=topic, minPartitions="8")
    assert frame.count() == 40_000
    assert frame.selectExpr("CAST(value AS STRING)").distinct().count() == 40_000


def test_batch_write_with_keys_headers_and_partition_column(spark, broker, create) -> None:
    topic = create(3)
    frame = spark.range(300).selectExpr(
        "CAST(CONCAT('key-', id) AS BINARY) AS key",
        "CAST(CAST(id AS STRING) AS BINARY) AS value",
        "array(struct('n' AS key, CAST(CAST(id AS STRING) AS BINARY) AS value)) AS headers",
        "CAST(id % 3 AS INT) AS partition",
        f"'{topic}' AS topic",
    )
    writer = frame.write.format("kafka").options(**broker.clients.spark())
    writer.option("includeHeaders", "true").option("kafka.compression.type", "zstd").save()
    messages = consume(broker, topic, 300)
    by_value = {int(m.value()): (m.key(), m.headers(), m.partition()) for m in messages}
    assert len(messages) == 300
    assert by_value == {n: (b"key-%d" % n, [("n", b"%d" % n)], n % 3) for n in range(300)}


def test_sink_creates_its_topic(spark, broker, topic) -> None:
    frame = spark.range(50).selectExpr("CAST(CAST(id AS STRING) AS BINARY) AS value")
    frame.write.format("kafka").options(**broker.clients.spark()).option("topic", topic).save()
    assert sorted(int(m.value()) for m in consume(broker, topic, 50)) == list(range(50))


def run_available(frame: Any, out: Path, checkpoint: Path) -> None:
    """Process all available records into a parquet directory, and stop."""
    query = (
        frame.selectExpr("CAST(value AS STRING)", "partition", "offset")
        .writeStream.format("parquet")
        .option("path", str(out))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(PATIENCE_S), "the stream did not end in time"


def test_stream_restarts_from_its_checkpoint_losing_and_repeating_nothing(spark, broker, create, tmp_path) -> None:
    topic = create(3)
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    for part in range(3):
        produce(broker, topic, range(part * 200, part * 200 + 200), 3)
        stream = source(
            spark.readStream, broker, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="70"
        )
        run_available(stream, out, checkpoint)
    read = spark.read.parquet(str(out))
    assert sorted(int(row.value) for row in read.collect()) == list(range(600))
    assert read.select("partition", "offset").distinct().count() == 600


def test_stream_stopped_in_the_middle_continues(spark, broker, create, tmp_path) -> None:
    topic = create(2)
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    produce(broker, topic, range(400), 2)

    def stream() -> Any:
        return source(spark.readStream, broker, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="40")

    query = (
        stream()
        .selectExpr("CAST(value AS STRING)", "partition", "offset")
        .writeStream.format("parquet")
        .option("path", str(out))
        .option("checkpointLocation", str(checkpoint))
        .start()
    )
    deadline = time.monotonic() + PATIENCE_S
    while len(query.recentProgress) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    query.stop()
    produce(broker, topic, range(400, 500), 2)
    run_available(stream(), out, checkpoint)
    assert sorted(int(row.value) for row in spark.read.parquet(str(out)).collect()) == list(range(500))


def test_stream_survives_a_restart_of_the_broker(spark, start_broker, topic_name, tmp_path) -> None:
    server = start_broker()
    topic = create_topic(server, topic_name(), 2)
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    produce(server, topic, range(100), 2)
    query = (
        source(spark.readStream, server, subscribe=topic, startingOffsets="earliest")
        .selectExpr("CAST(value AS STRING)", "partition", "offset")
        .writeStream.format("parquet")
        .option("path", str(out))
        .option("checkpointLocation", str(checkpoint))
        .start()
    )
    query.processAllAvailable()
    server.kill9()
    server.restart()
    produce(server, topic, range(100, 200), 2)
    query.processAllAvailable()
    query.stop()
    assert sorted(int(row.value) for row in spark.read.parquet(str(out)).collect()) == list(range(200))


def test_stream_from_topic_to_topic(spark, broker, create, tmp_path) -> None:
    origin, target = create(2), create(2)
    produce(broker, origin, range(200), 2)
    query = (
        source(spark.readStream, broker, subscribe=origin, startingOffsets="earliest", includeHeaders="true")
        .select("key", "value", "headers")
        .writeStream.format("kafka")
        .options(**broker.clients.spark())
        .option("topic", target)
        .option("includeHeaders", "true")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(PATIENCE_S)
    messages = consume(broker, target, 200)
    assert sorted(int(m.value()) for m in messages) == list(range(200))
    assert all(m.headers() == [("n", m.value())] for m in messages)


def test_subscribe_pattern_reads_all_topics_that_match(spark, broker, create, topic_name, tmp_path) -> None:
    stem = topic_name("pattern")
    first, second = create(1, f"{stem}-a"), create(2, f"{stem}-b")
    produce(broker, first, range(10))
    produce(broker, second, range(10, 30), 2)
    assert numbers(source(spark.read, broker, subscribePattern=f"{stem}-.*")) == list(range(30))

    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    for step in (30, 40):
        third = f"{stem}-c{step}"
        create(1, third)
        produce(broker, third, range(step, step + 10))
        stream = source(spark.readStream, broker, subscribePattern=f"{stem}-.*", startingOffsets="earliest")
        run_available(stream, out, checkpoint)
    assert sorted(int(row.value) for row in spark.read.parquet(str(out)).collect()) == list(range(50))


def test_deprecated_offset_fetching_uses_a_group(spark, broker, create) -> None:
    topic = create(2)
    produce(broker, topic, range(40), 2)
    key = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
    spark.conf.set(key, "true")
    try:
        assert numbers(source(spark.read, broker, subscribe=topic)) == list(range(40))
    finally:
        spark.conf.unset(key)


def test_read_committed_source_reads_plain_records(spark, broker, create) -> None:
    topic = create(2)
    produce(broker, topic, range(40), 2)
    frame = source(spark.read, broker, subscribe=topic, kafka__isolation__level="read_committed")
    assert numbers(frame) == list(range(40))


def test_truncation_under_a_stream_is_reported(spark, broker, create, tmp_path) -> None:
    """A stream whose next offset was deleted fails, unless `failOnDataLoss` is false."""
    topic = create(1)
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    produce(broker, topic, range(10))

    def stream(fail: str) -> Any:
        return source(spark.readStream, broker, subscribe=topic, startingOffsets="earliest", failOnDataLoss=fail)

    run_available(stream("true"), out, checkpoint)
    produce(broker, topic, range(10, 30))
    delete_records(broker, topic, 20)
    from pyspark.errors import StreamingQueryException

    with pytest.raises(StreamingQueryException):
        run_available(stream("true"), out, checkpoint)
    run_available(stream("false"), out, checkpoint)
    numbers = sorted(int(row.value) for row in spark.read.parquet(str(out)).collect())
    assert numbers == [*range(10), *range(20, 30)]


def test_recreated_topic_under_a_stream_is_reported(spark, broker, create, tmp_path) -> None:
    """R22: a stream that has read more offsets than the new topic has must not continue."""
    topic = create(1)
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    produce(broker, topic, range(10))

    def stream() -> Any:
        return source(spark.readStream, broker, subscribe=topic, startingOffsets="earliest")

    run_available(stream(), out, checkpoint)
    delete_topic(broker, topic)
    create(1, topic)
    produce(broker, topic, range(5))
    from pyspark.errors import StreamingQueryException

    with pytest.raises(StreamingQueryException):
        run_available(stream(), out, checkpoint)
