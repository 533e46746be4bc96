"""Records in Spark: null keys, values and header values, every codec, large records, compacted logs, and options that
the source rejects before it connects to a broker.
"""

from __future__ import annotations

import json

import pytest
from pyspark.errors import IllegalArgumentException

from tests.clients.spark.spark_kit import (
    EPOCH,
    PATIENCE_S,
    Batches,
    Create,
    Name,
    Producer,
    by_partition,
    consume,
    create_topic,
    numbers,
    produce,
    sink,
    source,
    take_available,
)
from tests.support.spark.session import MARKS
from tests.support.waiting import wait_for

pytestmark = [*MARKS, pytest.mark.soak]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
LARGE = {"max__message__bytes": str(10_000_000)}


def test_columns_and_their_types(spark, broker, create: Create) -> None:
    topic = create()
    plain = {field.name: field.dataType.simpleString() for field in source(spark.read, broker, subscribe=topic).schema}
    assert plain == {
        "key": "binary",
        "value": "binary",
        "topic": "string",
        "partition": "int",
        "offset": "bigint",
        "timestamp": "timestamp",
        "timestampType": "int",
    }
    schema = source(spark.read, broker, subscribe=topic, includeHeaders="true").schema
    assert schema["headers"].dataType.simpleString() == "array<struct<key:string,value:binary>>"
    frame = source(spark.readStream, broker, subscribe=topic, includeHeaders="true")
    assert frame.isStreaming
    assert frame.schema["headers"].dataType.simpleString() == "array<struct<key:string,value:binary>>"


def bytes_of(cell: bytearray | None) -> bytes | None:
    """A binary cell of a row, which PySpark gives as a bytearray."""
    return None if cell is None else bytes(cell)


def test_missing_and_empty_keys_values_and_headers(spark, broker, create: Create, tmp_path) -> None:
    """Null and empty values are distinguished in a batch, in a stream, and in Spark's output."""
    topic, copy = create(), create()
    headers = [None, [], [("a", None), ("a", b""), ("b", b"\0\xff")]]
    sent = [(key, value, some) for key in (None, b"", b"k") for value in (None, b"", b"v") for some in headers]
    producer = Producer(broker.clients.librdkafka())
    for key, value, some in sent:
        producer.produce(topic, value, key=key, headers=some)
    assert producer.flush(30) == 0

    def plain(frame):
        return [
            (bytes_of(row.key), bytes_of(row.value), [(h.key, bytes_of(h.value)) for h in row.headers or []])
            for row in frame.orderBy("offset").collect()
        ]

    expected = [(key, value, some or []) for key, value, some in sent]
    frame = source(spark.read, broker, subscribe=topic, includeHeaders="true")
    assert plain(frame) == expected
    streamed: list[object] = []
    stream = source(spark.readStream, broker, subscribe=topic, includeHeaders="true", startingOffsets="earliest")
    take_available(stream, lambda batch, _: streamed.extend(plain(batch)), tmp_path)
    assert streamed == expected
    sink(frame.select("key", "value", "headers").write, broker, topic=copy, includeHeaders="true").save()
    messages = sorted(consume(broker, copy, len(sent)), key=lambda message: message.offset())
    assert [(m.key(), m.value(), m.headers() or []) for m in messages] == expected


@pytest.mark.parametrize("codec", CODECS)
def test_each_codec_read_and_written(spark, broker, create: Create, codec: str) -> None:
    """A read may begin and end inside a compressed batch."""
    topic, copy = create(), create()
    produce(broker, topic, range(500), codec=codec)
    middle = source(
        spark.read,
        broker,
        subscribe=topic,
        startingOffsets=by_partition(topic, 123),
        endingOffsets=by_partition(topic, 321),
    )
    assert numbers(middle) == list(range(123, 321))
    sink(middle.select("value").write, broker, topic=copy, kafka__compression__type=codec).save()
    assert sorted(int(message.value()) for message in consume(broker, copy, 198)) == list(range(123, 321))


def test_a_topic_with_every_codec(spark, broker, create: Create) -> None:
    topic = create()
    for part, codec in enumerate(CODECS):
        produce(broker, topic, range(part * 100, part * 100 + 100), codec=codec)
    frame = source(spark.read, broker, subscribe=topic, kafka__max__partition__fetch__bytes=500)
    assert numbers(frame) == list(range(500))


@pytest.mark.parametrize("megabytes", [1, 5])
def test_large_records_written_and_read(spark, broker, create: Create, megabytes: int) -> None:
    """Records above the fetch size: the first record of a response is complete."""
    topic = create(1, **LARGE)
    size = megabytes * 1_000_000
    letters = "array('a', 'b', 'c')"
    frame = spark.range(3).selectExpr(f"CAST(repeat({letters}[id], {size} + CAST(id AS INT)) AS BINARY) AS value")
    limit = {"kafka__max__request__size": 10_000_000}
    sink(frame.coalesce(1).write, broker, topic=topic, **limit).save()
    for fetch in ({}, {"kafka__max__partition__fetch__bytes": 1000, "kafka__fetch__max__bytes": 1000}):
        read = source(spark.read, broker, subscribe=topic, **fetch)
        rows = read.selectExpr("length(value) AS size", "substring(CAST(value AS STRING), 1, 1) AS letter").collect()
        assert sorted((row.size, row.letter) for row in rows) == [(size + n, "abc"[n]) for n in range(3)]


def test_a_record_that_the_topic_does_not_take_fails_the_write(spark, broker, create: Create) -> None:
    topic = create(1, max__message__bytes="1000")
    frame = spark.range(1).selectExpr("CAST(repeat('x', 2000) AS BINARY) AS value")
    with pytest.raises(Exception, match="RecordTooLargeException"):
        sink(frame.write, broker, topic=topic).save()


def test_gaps_that_compaction_makes(spark, start_broker, topic: str, tmp_path) -> None:
    """Every kind of read skips removed offsets, also if it begins or ends at one."""
    broker = start_broker(config={"log.cleaner.backoff.ms": "50"})
    create_topic(
        broker, topic, 1, cleanup__policy="compact", segment__bytes="1048576", min__cleanable__dirty__ratio="0.001"
    )
    producer = Producer(broker.clients.librdkafka() | {"linger.ms": 5})
    padding = b"x" * 1000
    for n in range(4000):
        key = b"shared-%d" % (n % 10) if n % 7 else b"own-%d" % n
        producer.produce(topic, b"%d" % n, key=key, headers=[("padding", padding)])
        producer.poll(0)
    assert producer.flush(30) == 0

    def read(**options: object):
        return source(spark.read, broker, subscribe=topic, **options)

    def settled() -> list[int]:
        return numbers(read(endingOffsets=by_partition(topic, 2500)))

    # records before 2500 are in closed segments and cannot change any more
    wait_for(lambda: settled() == list(range(0, 2500, 7)), "the log is compacted", PATIENCE_S)
    records = numbers(read())
    assert {n % 10: n for n in records if n % 7} == {n % 10: n for n in range(4000) if n % 7}
    between = {"startingOffsets": by_partition(topic, 102), "endingOffsets": by_partition(topic, 144)}
    assert numbers(read(**between)) == [105, 112, 119, 126, 133, 140]
    nothing = {"startingOffsets": by_partition(topic, 106), "endingOffsets": by_partition(topic, 111)}
    assert numbers(read(**nothing)) == []
    batches = Batches()
    stream = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 1500}
    take_available(source(spark.readStream, broker, subscribe=topic, **stream), batches, tmp_path)
    assert [n for n in batches.all() if n < 2500] == list(range(0, 2500, 7))
    assert batches.all()[-1] == 3999
    assert len(batches.of) == 3


REFUSED = {
    "no-strategy": ({"subscribe": None}, "One of the following options must be specified"),
    "two-strategies": ({"subscribePattern": "t.*"}, "Only one of the following options can be specified"),
    "no-topics": ({"subscribe": " , "}, "No topics to subscribe"),
    "no-pattern": ({"subscribe": None, "subscribePattern": ""}, "Pattern to subscribe is empty"),
    "no-partitions": ({"subscribe": None, "assign": "[]"}, "No topicpartitions to assign"),
    "auto.offset.reset": ({"kafka.auto.offset.reset": "latest"}, "'auto.offset.reset' is not supported"),
    "enable.auto.commit": ({"kafka.enable.auto.commit": "true"}, "'enable.auto.commit' is not supported"),
    "key.deserializer": ({"kafka.key.deserializer": "x"}, "'key.deserializer' is not supported"),
    "value.deserializer": ({"kafka.value.deserializer": "x"}, "'value.deserializer' is not supported"),
    "interceptor.classes": ({"kafka.interceptor.classes": "x"}, "'interceptor.classes' is not supported"),
    "no-tasks": ({"minPartitions": "0"}, "minPartitions must be positive"),
    "no-records": ({"maxRecordsPerPartition": "0"}, "must be positive"),
    "strange-strategy": ({"startingOffsetsByTimestampStrategy": "first"}, "No value found for 'FIRST'"),
    "strange-timestamp": ({"startingTimestamp": "yesterday"}, "Expected a single long value"),
    "strange-offsets": ({"startingOffsets": "{"}, "Expected e.g."),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_option_that_no_read_takes(spark, broker, case: str) -> None:
    invalid, message = REFUSED[case]
    options = {key: value for key, value in ({"subscribe": "t"} | invalid).items() if value is not None}
    with pytest.raises(Exception, match=message):
        numbers(source(spark.read, broker, **options))


ONLY_IN_STREAMS = {
    "start": ({"startingOffsets": "latest"}, "starting offset can't be latest"),
    "end": ({"endingOffsets": "earliest"}, "ending offset can't be earliest"),
    "start-of-a-partition": ({"startingOffsets": json.dumps({"t": {"0": -1}})}, "can't be latest for batch"),
    "end-of-a-partition": ({"endingOffsets": json.dumps({"t": {"0": -2}})}, "can't be earliest for batch"),
}


@pytest.mark.parametrize("case", ONLY_IN_STREAMS)
def test_an_option_that_a_batch_does_not_take(spark, broker, case: str) -> None:
    options, message = ONLY_IN_STREAMS[case]
    with pytest.raises(IllegalArgumentException, match=message):
        numbers(source(spark.read, broker, subscribe="t", **options))


ONLY_IN_BATCHES = {
    "end": ({"endingOffsets": "latest"}, "ending offset not valid in streaming"),
    "time-of-end": ({"endingOffsetsByTimestamp": json.dumps({"t": {"0": EPOCH}})}, "ending timestamp not valid"),
    "more-than-at-most": ({"minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "5"}, "is higher than the max"),
}


@pytest.mark.parametrize("case", ONLY_IN_BATCHES)
def test_an_option_that_a_stream_does_not_take(spark, broker, tmp_path, case: str) -> None:
    options, message = ONLY_IN_BATCHES[case]
    with pytest.raises(IllegalArgumentException, match=message):
        take_available(source(spark.readStream, broker, subscribe="t", **options), Batches(), tmp_path)


def test_the_address_of_a_broker_is_needed(spark) -> None:
    with pytest.raises(IllegalArgumentException, match=r"kafka\.bootstrap\.servers"):
        spark.read.format("kafka").option("subscribe", "t").load().collect()


def test_a_missing_topic_is_reported(spark, broker, topic_name: Name) -> None:
    """The lookup does not create the topic."""
    frame = source(spark.read, broker, subscribe=topic_name(), fetchOffset__numRetries=1)
    with pytest.raises(Exception, match="UnknownTopicOrPartition"):
        frame.collect()
