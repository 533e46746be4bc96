"""The continuous trigger: tasks run without end, and every epoch commits their offsets to the checkpoint.

Each partition occupies a core: at most two here, and no other job while a query runs, not even a batch read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients.spark.spark_kit import (
    PATIENCE_S,
    Create,
    Name,
    add_partitions,
    by_partition,
    consume,
    numbers,
    produce,
    sink,
    source,
    transaction,
    transactional,
)
from tests.support.spark.session import MARKS
from tests.support.waiting import wait_for

pytestmark = [*MARKS, pytest.mark.soak]
EPOCHS = "200 milliseconds"


def run(frame: Any, broker: Any, topic: str, checkpoint: Path, epochs: str = EPOCHS) -> Any:
    """Start a continuous query that writes to a topic."""
    writer = sink(frame.select("key", "value").writeStream, broker, topic=topic, checkpointLocation=str(checkpoint))
    return writer.trigger(continuous=epochs).start()


def committed(checkpoint: Path, topic: str) -> dict[str, int]:
    """The offsets of the last committed epoch."""
    done = [int(file.name) for file in (checkpoint / "commits").glob("[0-9]*")]
    if not done:
        return {}
    text = (checkpoint / "offsets" / str(max(done))).read_text()
    return json.loads(text.splitlines()[-1]).get(topic, {})


def values(broker: Any, topic: str, count: int) -> list[int]:
    return sorted(int(message.value()) for message in consume(broker, topic, count))


def test_from_topic_to_topic_and_again_from_the_checkpoint(spark, broker, create: Create, tmp_path: Path) -> None:
    """Committed records are not written again, and records produced while the query was stopped are not lost."""
    origin, target = create(2), create(2)
    produce(broker, origin, range(40), 2)
    frame = source(spark.readStream, broker, subscribe=origin, startingOffsets="earliest")
    query = run(frame, broker, target, tmp_path, "1 second")
    wait_for(lambda: committed(tmp_path, origin) == {"0": 20, "1": 20}, "an epoch with all records", PATIENCE_S)
    produce(broker, origin, range(40, 60), 2)
    wait_for(lambda: committed(tmp_path, origin) == {"0": 30, "1": 30}, "an epoch with the later records", PATIENCE_S)
    query.stop()
    produce(broker, origin, range(60, 100), 2)
    query = run(frame, broker, target, tmp_path, "1 second")
    wait_for(lambda: committed(tmp_path, origin) == {"0": 50, "1": 50}, "the second run has committed", PATIENCE_S)
    query.stop()
    assert numbers(source(spark.read, broker, subscribe=target)) == list(range(100))


def test_where_it_begins(spark, broker, create: Create, tmp_path: Path) -> None:
    """At an offset of each partition; -1 is the end."""
    origin, target = create(2), create()
    produce(broker, origin, range(20), 2)
    frame = source(spark.readStream, broker, subscribe=origin, startingOffsets=by_partition(origin, 5, -1))
    query = run(frame, broker, target, tmp_path)
    wait_for(lambda: committed(tmp_path, origin) == {"0": 10, "1": 10}, "the first epoch is committed", PATIENCE_S)
    produce(broker, origin, range(20, 30), 2)
    wait_for(lambda: committed(tmp_path, origin) == {"0": 15, "1": 15}, "the rest is committed", PATIENCE_S)
    query.stop()
    assert values(broker, target, 15) == sorted([*range(10, 20, 2), *range(20, 30)])


def test_partitions_added_while_it_runs(spark, broker, create: Create, tmp_path: Path) -> None:
    origin, target = create(1), create()
    produce(broker, origin, range(10))
    frame = source(
        spark.readStream, broker, subscribe=origin, startingOffsets="earliest", **{"kafka.metadata.max.age.ms": "100"}
    )
    query = run(frame, broker, target, tmp_path)
    wait_for(lambda: committed(tmp_path, origin) == {"0": 10}, "the first partition is read", PATIENCE_S)
    add_partitions(broker, origin, 2)
    produce(broker, origin, range(10, 30), 2)
    wait_for(lambda: committed(tmp_path, origin) == {"0": 20, "1": 10}, "both partitions are read", PATIENCE_S)
    query.stop()
    assert set(numbers(source(spark.read, broker, subscribe=target))) == set(range(30))


def test_topics_of_a_pattern(spark, broker, create: Create, topic_name: Name, tmp_path: Path) -> None:
    stem, target = topic_name("continuous"), create()
    first = create(1, f"{stem}-a")
    produce(broker, first, range(10))
    frame = source(spark.readStream, broker, subscribePattern=f"^{stem}-.*", startingOffsets="earliest")
    query = run(frame, broker, target, tmp_path)
    wait_for(lambda: committed(tmp_path, first) == {"0": 10}, "the first topic is read", PATIENCE_S)
    second = create(1, f"{stem}-b")
    produce(broker, second, range(10, 20))
    wait_for(lambda: committed(tmp_path, second) == {"0": 10}, "the second topic is read", PATIENCE_S)
    query.stop()
    assert set(numbers(source(spark.read, broker, subscribe=target))) == set(range(20))


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_transactions(spark, broker, create: Create, topic: str, tmp_path: Path, level: str) -> None:
    """Aborted transactions and markers are skipped."""
    origin, target = create(), create()
    writer = transactional(broker, topic)
    transaction(writer, origin, range(10))
    transaction(writer, origin, range(10, 20), commit=False)
    transaction(writer, origin, range(20, 30))
    produce(broker, origin, range(30, 35))
    frame = source(
        spark.readStream, broker, subscribe=origin, startingOffsets="earliest", **{"kafka.isolation.level": level}
    )
    query = run(frame, broker, target, tmp_path)
    wait_for(lambda: committed(tmp_path, origin) == {"0": 38}, "all records are read", PATIENCE_S)
    query.stop()
    shown = range(35) if level == "read_uncommitted" else [*range(10), *range(20, 35)]
    assert values(broker, target, len(shown)) == list(shown)
