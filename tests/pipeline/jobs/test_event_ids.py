"""Event ids in headers, and removing duplicates by them, in a batch and in a stream."""

from __future__ import annotations

from pyspark.sql import functions as f

from barnabas.spark.topics.kafka import EVENT_ID, deduplicated, event_id, with_event_id
from tests.pipeline.records import AT, record, records


def with_id(value, offset, id_=None, **more):
    headers = [("other", b"x"), (EVENT_ID, id_.encode())] if id_ else more.pop("headers", None)
    return record(value, offset, headers=headers, **more)


ROWS = [
    with_id("a", 0, "id-1"), with_id("b", 1, "id-2"), with_id("a", 2, "id-1"), with_id("c", 3), with_id("c", 4),
    with_id("d", 5, headers=[("other", b"id-1")]), with_id("a", 0, "id-1", partition=1), with_id("e", 1, partition=1),
]  # fmt: skip
ONCE = ["a", "b", "c", "c", "d", "e"]


def texts(frame):
    return sorted(bytes(row.value).decode() for row in frame.collect())


def test_a_batch_keeps_each_id_once_and_all_without_an_id(spark):
    frame = records(spark, ROWS)
    unique = deduplicated(frame)
    assert unique.columns == frame.columns
    assert texts(unique) == ONCE


def test_a_stream_keeps_each_id_once_over_its_batches(spark, tmp_path):
    unique = []
    for number, rows in enumerate((ROWS[:3], ROWS[3:])):
        records(spark, rows).coalesce(1).write.parquet(str(tmp_path / "in" / f"part={number}"))
    stream = spark.readStream.schema(records(spark, []).schema).option("maxFilesPerTrigger", 1)
    query = (
        deduplicated(stream.parquet(str(tmp_path / "in" / "*")))
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .foreachBatch(lambda batch, _: unique.extend(texts(batch)))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert sorted(unique) == ONCE


def test_the_id_is_written_to_the_headers_and_replaces_an_older_one(spark):
    rows = [with_id("a", 0, "old"), record("b", 1), record("c", 2, headers=[]), record("d", 3, headers=[("h", None)])]
    frame = with_event_id(records(spark, rows).withColumn("event_id", f.concat(f.lit("id-"), "offset")), "offset")
    assert frame.columns == ["key", "value", "headers", "topic", "partition", "offset"]
    headers = {row.offset: [(h.key, h.value and bytes(h.value)) for h in row.headers] for row in frame.collect()}
    assert headers == {
        0: [("other", b"x"), (EVENT_ID, b"id-0")], 1: [(EVENT_ID, b"id-1")], 2: [(EVENT_ID, b"id-2")],
        3: [("h", None), (EVENT_ID, b"id-3")],
    }  # fmt: skip


def test_the_id_of_a_record_is_its_last_one_or_null(spark):
    rows = [
        record("a", 0, headers=[(EVENT_ID, b"x"), (EVENT_ID, b"y")]), record("b", 1), record("c", 2, headers=[]),
        record("d", 3, headers=[(EVENT_ID, None)]), record("e", 4, headers=[("h", b"x")], timestamp=AT),
    ]  # fmt: skip
    collected = records(spark, rows).orderBy("offset").select(event_id().alias("id")).collect()
    assert [row.id for row in collected] == ["y", None, None, None, None]


def test_without_an_id_only_columns_are_selected(spark):
    frame = with_event_id(records(spark, ROWS[:1]).select("value", "key", "timestamp"))
    assert frame.columns == ["key", "value"]
