"""Micro-batches: starting offsets, batch sizes, restarts, added partitions and topics, metrics."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from tests.clients.spark.spark_kit import (
    EPOCH,
    PATIENCE_S,
    Batches,
    Create,
    Name,
    add_partitions,
    admin_of,
    at,
    by_partition,
    consume,
    create_topic,
    ended,
    numbers,
    produce,
    sink,
    source,
    start,
    take_available,
)
from tests.support.spark.session import MARKS
from tests.support.waiting import wait_for

pytestmark = [*MARKS, pytest.mark.soak]
DEPRECATED = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
LATE = EPOCH + 10**8
Stream = Callable[..., Any]


@pytest.fixture
def stream(spark, broker) -> Stream:
    """`stream(**options) -> frame`: a source with `startingOffsets=earliest` unless given."""

    def read(**options: object) -> Any:
        return source(spark.readStream, broker, **({"startingOffsets": "earliest"} | options))

    return read


def test_a_stream_begins_at_the_end_by_default_and_continues_there(spark, broker, create: Create, tmp_path) -> None:
    """After a restart the checkpoint's offsets apply, not the option: records produced between the runs are read."""
    topic, batches = create(2), Batches()
    produce(broker, topic, range(10), 2)

    def run() -> Any:
        return start(source(spark.readStream, broker, subscribe=topic), batches, tmp_path)

    query = run()
    query.processAllAvailable()
    assert batches.all() == []
    produce(broker, topic, range(10, 20), 2)
    query.processAllAvailable()
    query.stop()
    produce(broker, topic, range(20, 30), 2)
    query = run()
    query.processAllAvailable()
    query.stop()
    assert batches.all() == list(range(10, 30))


def test_offsets_of_each_partition_begin_a_stream(stream: Stream, broker, create: Create, tmp_path) -> None:
    topic, batches = create(3), Batches()
    produce(broker, topic, range(30), 3)
    query = start(stream(subscribe=topic, startingOffsets=by_partition(topic, 5, -1, -2)), batches, tmp_path)
    query.processAllAvailable()
    assert batches.all() == sorted([*range(15, 30, 3), *range(2, 30, 3)])
    produce(broker, topic, range(30, 36), 3)
    query.processAllAvailable()
    query.stop()
    assert batches.all() == sorted([*range(15, 30, 3), *range(2, 30, 3), *range(30, 36)])


def test_timestamps_begin_a_stream(stream: Stream, broker, create: Create, tmp_path) -> None:
    topic = create(2)
    produce(broker, topic, range(40), 2)
    for name, options, expected in [
        ("all", {"startingTimestamp": at(31)}, list(range(31, 40))),
        ("each", {"startingOffsetsByTimestamp": by_partition(topic, at(30), at(37))}, [30, 32, 34, 36, 37, 38, 39]),
        ("no end", {"startingTimestamp": at(38), "endingTimestamp": at(39)}, [38, 39]),
    ]:
        batches = Batches()
        take_available(stream(subscribe=topic, **options), batches, tmp_path / name)
        assert batches.all() == expected, name


def test_a_timestamp_that_no_record_has_reached(stream: Stream, broker, create: Create, tmp_path) -> None:
    """An error, or a start at the log end: later records are read even if they are older than the timestamp."""
    topic, batches = create(2), Batches()
    produce(broker, topic, range(10), 2)
    late = {"subscribe": topic, "startingTimestamp": LATE, "fetchOffset__numRetries": 1}
    with pytest.raises(StreamingQueryException, match="No offset matched"):
        take_available(stream(**late), batches, tmp_path / "error")
    query = start(stream(startingOffsetsByTimestampStrategy="latest", **late), batches, tmp_path / "latest")
    query.processAllAvailable()
    produce(broker, topic, range(10, 20), 2)
    query.processAllAvailable()
    query.stop()
    assert batches.all() == list(range(10, 20))


def test_max_offsets_per_trigger(stream: Stream, broker, create: Create, tmp_path) -> None:
    """AvailableNow runs until all is read, and each partition contributes its share of a batch."""
    big, small, batches = create(2), create(), Batches()
    produce(broker, big, range(80), 2)
    produce(broker, small, range(80, 100))
    take_available(stream(subscribe=f"{big},{small}", maxOffsetsPerTrigger=25), batches, tmp_path)
    assert batches.all() == list(range(100))
    assert all(size <= 25 for size in batches.sizes())
    assert len(batches.of) == 4
    assert len([n for n in batches.of[0] if n < 80]) == 20


def test_once_takes_all_in_one_batch(stream: Stream, broker, create: Create, tmp_path) -> None:
    topic, batches = create(), Batches()
    produce(broker, topic, range(100))
    ended(start(stream(subscribe=topic, maxOffsetsPerTrigger=10), batches, tmp_path, once=True))
    assert batches.sizes() == [100]


def test_available_now_does_not_read_later_records(stream: Stream, broker, create: Create, tmp_path) -> None:
    topic, batches = create(2), Batches()
    produce(broker, topic, range(40), 2)

    def keep(frame: Any, batch_id: int) -> None:
        batches(frame, batch_id)
        produce(broker, topic, range(1000 + batch_id * 10, 1010 + batch_id * 10), 2)

    take_available(stream(subscribe=topic, maxOffsetsPerTrigger=20), keep, tmp_path)
    assert batches.all() == list(range(40))
    take_available(stream(subscribe=topic), batches, tmp_path)
    assert batches.all() == [*range(40), *range(1000, 1020)]


def test_min_offsets_per_trigger(stream: Stream, broker, create: Create, tmp_path) -> None:
    topic, batches = create(), Batches()
    produce(broker, topic, range(10))
    options = {"minOffsetsPerTrigger": 20, "maxTriggerDelay": "10m"}
    query = start(stream(subscribe=topic, **options), batches, tmp_path)
    query.processAllAvailable()  # the first batch does not wait
    produce(broker, topic, range(10, 15))
    wait_for(
        lambda: latest_offset(query, topic) == 15, "the stream has received the offset of the five records", PATIENCE_S
    )
    assert batches.sizes() == [10]
    produce(broker, topic, range(15, 40))
    wait_for(lambda: batches.sizes() == [10, 30], "there are enough records for a batch", PATIENCE_S)
    query.stop()


def test_max_trigger_delay(stream: Stream, broker, create: Create, tmp_path) -> None:
    topic, batches = create(), Batches()
    produce(broker, topic, range(10))
    options = {"minOffsetsPerTrigger": 1000, "maxTriggerDelay": "1s"}
    query = start(stream(subscribe=topic, **options), batches, tmp_path)
    query.processAllAvailable()
    produce(broker, topic, range(10, 15))
    wait_for(lambda: batches.sizes() == [10, 5], "the delay is over", PATIENCE_S)
    query.stop()


def latest_offset(query: Any, topic: str) -> int:
    """The latest offset of partition 0 in the query's progress, or -1."""
    progress = query.lastProgress
    latest = progress and progress["sources"][0]["latestOffset"]
    return json.loads(latest)[topic]["0"] if latest else -1


def test_tasks_of_a_batch(stream: Stream, broker, create: Create, tmp_path) -> None:
    """In streams, unlike in batches, `maxRecordsPerPartition` alone limits the records of a task."""
    topic, tasks = create(2), []
    produce(broker, topic, range(100), 2)
    for name, options in [("a", {}), ("b", {"minPartitions": 6}), ("c", {"maxRecordsPerPartition": 20})]:
        frame = stream(subscribe=topic, **options)
        take_available(frame, lambda batch, _: tasks.append(batch.rdd.getNumPartitions()), tmp_path / name)
    assert tasks == [2, 6, 6]


def test_an_interrupted_batch_is_repeated_with_the_same_records(
    stream: Stream, broker, create: Create, tmp_path
) -> None:
    topic, batches = create(2), Batches()
    produce(broker, topic, range(60), 2)
    broken: list[list[int]] = []

    def fail(frame: Any, batch_id: int) -> None:
        if batch_id == 1:
            broken.append(numbers(frame))
            raise RuntimeError("interrupted")
        batches(frame, batch_id)

    with pytest.raises(StreamingQueryException, match="interrupted"):
        take_available(stream(subscribe=topic, maxOffsetsPerTrigger=20), fail, tmp_path)
    assert sorted(batches.of) == [0]
    produce(broker, topic, range(60, 100), 2)
    take_available(stream(subscribe=topic, maxOffsetsPerTrigger=50), batches, tmp_path)
    assert batches.of[1] == broken[0]
    assert batches.all() == list(range(100))


def test_partitions_added_while_the_stream_runs(stream: Stream, broker, create: Create, tmp_path) -> None:
    """A new partition is read from its first record, whatever `startingOffsets` was."""
    topic, batches = create(1), Batches()
    query = start(stream(subscribe=topic, startingOffsets="latest"), batches, tmp_path)
    query.processAllAvailable()
    add_partitions(broker, topic, 4)
    produce(broker, topic, range(40), 4)
    wait_for(lambda: batches.all() == list(range(40)), "all partitions are read", PATIENCE_S)
    query.stop()


def test_topics_added_under_a_pattern_while_the_stream_runs(
    stream: Stream, broker, create: Create, topic_name: Name, tmp_path
) -> None:
    stem, batches = topic_name("pattern"), Batches()
    produce(broker, create(1, f"{stem}-a"), range(10))
    query = start(stream(subscribePattern=f"^{stem}-.*", startingOffsets="latest"), batches, tmp_path)
    query.processAllAvailable()
    assert batches.all() == []
    produce(broker, create(2, f"{stem}-b"), range(10, 20), 2)
    produce(broker, create(2, f"not-{stem}-b"), range(100, 110), 2)
    wait_for(lambda: batches.all() == list(range(10, 20)), "the new topic is read", PATIENCE_S)
    query.stop()


def test_how_far_behind_a_stream_is(stream: Stream, broker, create: Create, tmp_path) -> None:
    """Offsets and lag in the progress of each batch."""
    topic = create(2)
    produce(broker, topic, [*range(0, 100, 2), *range(1, 20, 2)], 2)
    query = start(
        stream(subscribe=topic, maxOffsetsPerTrigger=30),
        lambda batch, _: batch.count(),
        tmp_path,
        availableNow=True,
    )
    ended(query)
    sources = [progress["sources"][0] for progress in query.recentProgress if progress["numInputRows"]]
    assert [source["numInputRows"] for source in sources] == [30, 30]
    ends, latest = ([json.loads(source[which])[topic] for source in sources] for which in ("endOffset", "latestOffset"))
    assert json.loads(sources[1]["startOffset"])[topic] == ends[0]
    assert ends[1] == latest[0] == latest[1] == {"0": 50, "1": 10}
    behind = [50 - ends[0]["0"], 10 - ends[0]["1"]]
    assert sources[0]["metrics"] == {
        "minOffsetsBehindLatest": str(min(behind)),
        "maxOffsetsBehindLatest": str(max(behind)),
        "avgOffsetsBehindLatest": str(sum(behind) / 2),
    }
    assert set(sources[1]["metrics"].values()) == {"0", "0.0"}


def test_queries_share_a_topic_and_each_has_all(stream: Stream, broker, create: Create, tmp_path) -> None:
    topic, results = create(2), [Batches(), Batches(), Batches()]
    produce(broker, topic, range(50), 2)
    queries = [start(stream(subscribe=topic), batches, tmp_path / str(n)) for n, batches in enumerate(results)]
    produce(broker, topic, range(50, 100), 2)
    for query in queries:
        query.processAllAvailable()
        query.stop()
    assert [batches.all() for batches in results] == [list(range(100))] * 3


def test_two_sources_of_one_query(stream: Stream, broker, create: Create, tmp_path) -> None:
    """A union of two topics, and of a topic with itself: each source has its own offsets."""
    first_topic, second_topic, batches = create(2), create(), Batches()
    produce(broker, first_topic, range(20), 2)
    produce(broker, second_topic, range(20, 30))
    both = stream(subscribe=first_topic).union(stream(subscribe=second_topic)).union(stream(subscribe=second_topic))
    take_available(both, batches, tmp_path)
    produce(broker, second_topic, range(30, 35))
    take_available(both, batches, tmp_path)
    assert batches.all() == sorted([*range(20), *range(20, 35), *range(20, 35)])


def test_a_topic_joined_with_itself(stream: Stream, broker, create: Create, tmp_path) -> None:
    topic, joined = create(2), []
    produce(broker, topic, range(20), 2)
    left = stream(subscribe=topic).selectExpr("CAST(CAST(value AS STRING) AS INT) AS n")
    right = stream(subscribe=topic).selectExpr("CAST(CAST(value AS STRING) AS INT) + 5 AS n", "key")
    take_available(left.join(right, "n"), lambda batch, _: joined.extend(batch.collect()), tmp_path)
    assert sorted((row.n, bytes(row.key)) for row in joined) == [(n, b"key-%d" % (n - 5)) for n in range(5, 20)]


@pytest.mark.parametrize("deprecated", ["true", "false"])
def test_the_group_of_a_stream(spark, stream: Stream, broker, create: Create, tmp_path, deprecated: str) -> None:
    """Only the deprecated lookup uses a group, with the given prefix or name; nothing is committed."""
    topic, of_prefixed, of_named = create(2), Batches(), Batches()
    produce(broker, topic, range(20), 2)
    spark.conf.set(DEPRECATED, deprecated)
    try:
        prefixed = start(stream(subscribe=topic, groupIdPrefix=f"pre-{topic}"), of_prefixed, tmp_path / "a")
        prefixed.processAllAvailable()
        named = start(stream(subscribe=topic, **{"kafka.group.id": f"own-{topic}"}), of_named, tmp_path / "b")
        named.processAllAvailable()
    finally:
        spark.conf.unset(DEPRECATED)
    admin = admin_of(broker)
    groups = [
        listing.group_id for listing in admin.list_consumer_groups().result(20).valid if topic in listing.group_id
    ]
    if deprecated == "true":
        assert [f"own-{topic}"] == [group for group in groups if group.startswith("own")]
        assert len([group for group in groups if group.startswith(f"pre-{topic}") and group.endswith("driver-0")]) == 1
        (described,) = admin.describe_consumer_groups([f"own-{topic}"]).values()
        assert described.result(20).state.name == "STABLE"
    else:
        assert groups == []
    produce(broker, topic, range(20, 30), 2)
    for query in (prefixed, named):
        query.processAllAvailable()
        query.stop()
    assert of_prefixed.all() == of_named.all() == list(range(30))


def test_a_stream_continues_when_its_broker_is_back(spark, start_broker, topic_name: Name, tmp_path) -> None:
    """From topic to topic, with a clean restart of the broker between batches."""
    broker = start_broker()
    origin, target = create_topic(broker, topic_name(), 2), create_topic(broker, topic_name(), 2)
    produce(broker, origin, range(200), 2)
    options = {"subscribe": origin, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 50}
    frame = source(spark.readStream, broker, **options).select("key", "value")
    query = sink(frame.writeStream, broker, topic=target, checkpointLocation=str(tmp_path)).start()
    wait_for(lambda: len(query.recentProgress) >= 2, "two batches are complete", PATIENCE_S)
    broker.stop()
    broker.restart()
    produce(broker, origin, range(200, 300), 2)
    query.processAllAvailable()
    query.stop()
    assert sorted(int(message.value()) for message in consume(broker, target, 300)) == list(range(300))
