"""The records of a batch read: offsets, timestamps, topics, and the number of tasks.

Offset lookups are tested in each implementation of the connector: the relation that batches use, the scan of data
source V2, and the deprecated lookup with a consumer in a group.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.clients.spark.spark_kit import (
    EPOCH,
    Create,
    Name,
    admin_of,
    at,
    by_partition,
    delete_records,
    numbers,
    produce,
    source,
)
from tests.support.spark.session import MARKS

pytestmark = [*MARKS, pytest.mark.soak]
DEPRECATED = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
V1_SOURCES = "spark.sql.sources.useV1SourceList"
LATE = EPOCH + 10**8
Read = Callable[..., Any]


@pytest.fixture
def read(spark, broker) -> Read:
    """`read(**options) -> frame`, with the session's default settings."""
    return lambda **options: source(spark.read, broker, fetchOffset__retryIntervalMs=1, **options)


@pytest.fixture(params=["relation", "scan", "consumer"])
def each_read(request, spark, read: Read) -> Iterator[Read]:
    """`read` in each implementation: `scan` is data source V2, `consumer` looks up offsets with a consumer."""
    spark.conf.set(V1_SOURCES, "" if request.param == "scan" else "kafka")
    spark.conf.set(DEPRECATED, str(request.param == "consumer").lower())
    yield read
    spark.conf.unset(V1_SOURCES)
    spark.conf.unset(DEPRECATED)


@pytest.fixture
def evens_and_odds(broker, create: Create) -> str:
    """100 numbers in two partitions: number n is offset n // 2 of partition n % 2."""
    topic = create(2)
    produce(broker, topic, range(100), 2)
    return topic


def test_a_batch_reads_the_whole_topic_by_default(read: Read, evens_and_odds: str) -> None:
    assert numbers(read(subscribe=evens_and_odds)) == list(range(100))
    explicit = read(subscribe=evens_and_odds, startingOffsets="earliest", endingOffsets="latest")
    assert numbers(explicit) == list(range(100))


def test_offsets_of_each_partition_and_minus_one_and_two(each_read: Read, evens_and_odds: str) -> None:
    frame = each_read(
        subscribe=evens_and_odds,
        startingOffsets=by_partition(evens_and_odds, 10, -2),
        endingOffsets=by_partition(evens_and_odds, 20, -1),
    )
    assert numbers(frame) == sorted([*range(20, 40, 2), *range(1, 100, 2)])


def test_an_end_before_the_start_is_nothing(read: Read, evens_and_odds: str) -> None:
    frame = read(
        subscribe=evens_and_odds,
        startingOffsets=by_partition(evens_and_odds, 30, 50),
        endingOffsets=by_partition(evens_and_odds, 30, 50),
    )
    assert numbers(frame) == []


def test_offsets_must_name_every_partition(read: Read, evens_and_odds: str) -> None:
    with pytest.raises(Exception, match=r"you must specify all TopicPartitions|don't match what are assigned"):
        numbers(read(subscribe=evens_and_odds, startingOffsets=by_partition(evens_and_odds, 0)))


def test_timestamps_for_all_partitions(each_read: Read, evens_and_odds: str) -> None:
    """The read begins and ends at the first record at or after the timestamp."""
    frame = each_read(subscribe=evens_and_odds, startingTimestamp=at(30) - 500, endingTimestamp=at(40) - 500)
    assert numbers(frame) == list(range(30, 40))


def test_timestamps_of_each_partition(each_read: Read, evens_and_odds: str) -> None:
    frame = each_read(
        subscribe=evens_and_odds,
        startingOffsetsByTimestamp=by_partition(evens_and_odds, at(30), at(51)),
        endingOffsetsByTimestamp=by_partition(evens_and_odds, at(40), at(60)),
    )
    assert numbers(frame) == sorted([*range(30, 40, 2), *range(51, 60, 2)])


def test_timestamps_must_name_every_partition(read: Read, evens_and_odds: str) -> None:
    with pytest.raises(Exception, match=r"[Tt]imestamp.*|all TopicPartitions"):
        numbers(read(subscribe=evens_and_odds, startingOffsetsByTimestamp=by_partition(evens_and_odds, at(1))))


def test_a_start_that_no_record_has_reached_is_an_error(each_read: Read, evens_and_odds: str) -> None:
    """`error` is the default strategy; one partition without such a record suffices."""
    each = by_partition(evens_and_odds, at(0), at(500))
    for strategy in ({}, {"startingOffsetsByTimestampStrategy": "error"}):
        with pytest.raises(Exception, match="No offset matched"):
            numbers(each_read(subscribe=evens_and_odds, startingTimestamp=LATE, **strategy))
        with pytest.raises(Exception, match="No offset matched"):
            numbers(each_read(subscribe=evens_and_odds, startingOffsetsByTimestamp=each, **strategy))


def test_a_start_that_no_record_has_reached_is_the_end_with_strategy_latest(
    each_read: Read, evens_and_odds: str
) -> None:
    latest = {"subscribe": evens_and_odds, "startingOffsetsByTimestampStrategy": "latest"}
    assert numbers(each_read(startingTimestamp=LATE, **latest)) == []
    assert numbers(each_read(startingTimestamp=at(99), **latest)) == [99]
    each = by_partition(evens_and_odds, at(90), at(500))
    assert numbers(each_read(startingOffsetsByTimestamp=each, **latest)) == [90, 92, 94, 96, 98]


def test_an_end_that_no_record_has_reached_is_the_end_of_the_log(read: Read, evens_and_odds: str) -> None:
    assert numbers(read(subscribe=evens_and_odds, endingTimestamp=LATE)) == list(range(100))
    each = by_partition(evens_and_odds, at(2), at(500))
    assert numbers(read(subscribe=evens_and_odds, endingOffsetsByTimestamp=each)) == [0, *range(1, 100, 2)]


def test_precedence_of_timestamps_for_all_for_each_and_offsets(read: Read, evens_and_odds: str) -> None:
    each = {
        "subscribe": evens_and_odds,
        "startingOffsets": by_partition(evens_and_odds, 3, 3),
        "endingOffsets": by_partition(evens_and_odds, 5, 5),
        "startingOffsetsByTimestamp": by_partition(evens_and_odds, at(20), at(21)),
        "endingOffsetsByTimestamp": by_partition(evens_and_odds, at(24), at(25)),
    }
    assert numbers(read(**each)) == [20, 21, 22, 23]
    assert numbers(read(startingTimestamp=at(90), endingTimestamp=at(93), **each)) == [90, 91, 92]


def test_timestamps_that_the_broker_gave(read: Read, broker, create: Create) -> None:
    """LogAppendTime: the column contains it, and a record is found by it."""
    topic = create(1, message__timestamp__type="LogAppendTime")
    produce(broker, topic, range(5))
    produce(broker, topic, range(5, 10))
    rows = read(subscribe=topic).selectExpr("offset", "timestampType", "unix_millis(timestamp) AS ms").collect()
    times = {row.offset: row.ms for row in rows}
    assert {row.timestampType for row in rows} == {1}
    assert times[0] > at(1000)
    first = min(offset for offset, ms in times.items() if ms == times[9])
    assert numbers(read(subscribe=topic, startingTimestamp=times[9])) == list(range(first, 10))


def test_topics_by_list_by_pattern_and_partitions_by_name(
    each_read: Read, broker, create: Create, topic_name: Name
) -> None:
    stem = topic_name("many")
    first, second, other = create(1, f"{stem}-a"), create(3, f"{stem}-b"), create(1, f"other-{stem}-c")
    produce(broker, first, range(10))
    produce(broker, second, range(10, 40), 3)
    produce(broker, other, range(40, 50))
    assert numbers(each_read(subscribe=f"{first},{second}")) == list(range(40))
    assert numbers(each_read(subscribePattern=f"^{stem}-.")) == list(range(40))
    assigned = each_read(assign=json.dumps({first: [0], second: [0, 2]}))
    assert numbers(assigned) == sorted([*range(10), *range(12, 40, 3), *range(11, 40, 3)])
    both = json.dumps({first: {"0": 9}, second: {"0": -2, "1": 9, "2": 10}})
    assert numbers(each_read(subscribe=f"{first},{second}", startingOffsets=both)) == sorted([9, *range(12, 40, 3), 37])


def test_a_pattern_matches_parts_of_names(read: Read, broker, create: Create, topic_name: Name) -> None:
    """A pattern matches parts of names unless it is anchored; the deprecated lookup matches whole names."""
    stem = topic_name("within")
    for n, name in enumerate((f"{stem}-a", f"{stem}-a-b", f"not-{stem}-a")):
        produce(broker, create(1, name), [n])
    assert numbers(read(subscribePattern=f"{stem}-a")) == [0, 1, 2]
    assert numbers(read(subscribePattern=f"^{stem}-a$")) == [0]


def test_a_pattern_that_no_topic_has_is_nothing(read: Read, topic: str) -> None:
    assert numbers(read(subscribePattern=f"{topic}.*")) == []


def test_empty_topics_and_partitions(read: Read, broker, create: Create) -> None:
    empty, sparse = create(3), create(4)
    assert numbers(read(subscribe=empty)) == []
    assert numbers(read(subscribe=empty, startingOffsets=by_partition(empty, 0, 0, 0))) == []
    produce(broker, sparse, [2], 4)
    assert numbers(read(subscribe=f"{empty},{sparse}")) == [2]
    assert numbers(read(subscribe=sparse, startingOffsets=by_partition(sparse, -2, 0, 0, -2))) == [2]


def test_number_of_tasks(read: Read, evens_and_odds: str) -> None:
    """In a batch `maxRecordsPerPartition` applies only if `minPartitions` asks for more tasks than partitions."""

    def tasks(**options: object) -> int:
        frame = read(subscribe=evens_and_odds, **options)
        assert numbers(frame) == list(range(100))
        return int(frame.rdd.getNumPartitions())

    assert tasks() == 2
    assert tasks(minPartitions=7) >= 7
    assert tasks(maxRecordsPerPartition=20) == 2
    assert tasks(maxRecordsPerPartition=20, minPartitions=3) == 6


def test_a_frame_that_is_used_again_asks_again_where_a_topic_ends(read: Read, broker, create: Create) -> None:
    topic = create()
    produce(broker, topic, range(10))
    frame = read(subscribe=topic)
    assert [frame.count(), frame.count()] == [10, 10]
    produce(broker, topic, range(10, 30))
    assert [frame.count(), frame.filter("offset >= 10").count()] == [30, 20]
    fixed = read(subscribe=topic, endingOffsets=by_partition(topic, 20))
    produce(broker, topic, range(30, 40))
    assert fixed.count() == 20


def test_deleted_records_are_not_read(read: Read, broker, evens_and_odds: str) -> None:
    delete_records(broker, evens_and_odds, 40)
    assert numbers(read(subscribe=evens_and_odds)) == sorted([*range(80, 100, 2), *range(1, 100, 2)])
    gone = {"subscribe": evens_and_odds, "startingOffsets": by_partition(evens_and_odds, 30, 45)}
    assert numbers(read(failOnDataLoss="false", **gone)) == sorted([*range(80, 100, 2), *range(91, 100, 2)])
    with pytest.raises(Exception, match=r"KAFKA_DATA_LOSS|some data may have been missed|may have been lost"):
        numbers(read(failOnDataLoss="true", **gone))


def test_an_end_that_the_log_does_not_have(read: Read, evens_and_odds: str) -> None:
    """An error about lost data, or a read up to the log end."""
    beyond = {
        "subscribe": evens_and_odds,
        "endingOffsets": by_partition(evens_and_odds, 50, 60),
        "kafkaConsumer.pollTimeoutMs": 500,
    }
    with pytest.raises(Exception, match=r"Could not read records in offset \[50, 60\)"):
        numbers(read(**beyond))
    assert numbers(read(failOnDataLoss="false", **beyond)) == list(range(100))


def test_nothing_is_committed(each_read: Read, broker, evens_and_odds: str, topic: str) -> None:
    """The requested group is used, and its committed offsets do not change."""
    options = {"subscribe": evens_and_odds, "kafka.group.id": topic}
    assert numbers(each_read(**options)) == list(range(100))
    assert numbers(each_read(**options)) == list(range(100))
    from confluent_kafka import ConsumerGroupTopicPartitions

    admin = admin_of(broker)
    (offsets,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(topic)]).values()
    assert offsets.result(20).topic_partitions == []
