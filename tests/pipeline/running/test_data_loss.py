"""Changes of the source while a job is stopped, and aborted transactions: reported, never hidden."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas.spark.errors import MistakeError, PipelineError
from tests.pipeline.runs import consume, produce, run_here, toml
from tests.support.processes.server import Server


def archive_file(tmp_path: Path, topic: str, *more: str) -> Path:
    """The file of an archive job."""
    lines = [f'checkpoint = "{tmp_path}/checkpoint"', "[archive]", f'path = "{tmp_path}/out"', "[source]", *more]
    return toml(tmp_path / "archive.toml", [*lines, *([] if "pattern" in "".join(more) else [f'topic = "{topic}"'])])


def numbered(numbers: range) -> list[tuple[bytes | None, bytes | None]]:
    """Records with numbers as values."""
    return [(None, b"%d" % n) for n in numbers]


def archived(spark: Any, tmp_path: Path) -> list[int]:
    """The numbers in the archive."""
    return sorted(int(bytes(row.value)) for row in spark.read.parquet(str(tmp_path / "out")).collect())


def admin(broker: Server) -> AdminClient:
    """An admin client, for operations on topics."""
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def test_a_truncated_topic_is_reported(spark: Any, broker: Server, create: Any, tmp_path: Path) -> None:
    topic = create()
    config = archive_file(tmp_path, topic)
    produce(broker, topic, numbered(range(10)))
    run_here(spark, "archive", broker.bootstrap, config)
    produce(broker, topic, numbered(range(10, 20)))
    client = admin(broker)
    client.delete_records([TopicPartition(topic, 0, 15)])[TopicPartition(topic, 0, 15)].result(30)
    with pytest.raises(PipelineError, match="deleted before they were read") as failure:
        run_here(spark, "archive", broker.bootstrap, config)
    assert "fail_on_data_loss" in str(failure.value)
    assert "\n" not in str(failure.value)
    assert archived(spark, tmp_path) == list(range(10))


@pytest.mark.soak
def test_without_fail_on_data_loss_it_continues_at_the_first_record(
    spark: Any, broker: Server, create: Any, tmp_path: Path
) -> None:
    topic = create()
    config = archive_file(tmp_path, topic, "fail_on_data_loss = false")
    produce(broker, topic, numbered(range(20)))
    run_here(spark, "archive", broker.bootstrap, config)
    produce(broker, topic, numbered(range(20, 40)))
    client = admin(broker)
    client.delete_records([TopicPartition(topic, 0, 25)])[TopicPartition(topic, 0, 25)].result(30)
    run_here(spark, "archive", broker.bootstrap, config)
    assert archived(spark, tmp_path) == [*range(20), *range(25, 40)]


@pytest.mark.soak
@pytest.mark.parametrize("records", [5, 50], ids=["fewer records", "more records"])
def test_a_topic_that_was_created_again_is_reported(
    spark: Any, broker: Server, create: Any, tmp_path: Path, records: int
) -> None:
    """Also if the new topic has more records than were read of the old one, which Spark does not detect."""
    topic = create()
    config = archive_file(tmp_path, topic)
    produce(broker, topic, numbered(range(10)))
    run_here(spark, "archive", broker.bootstrap, config)
    client = admin(broker)
    client.delete_topics([topic])[topic].result(30)
    create(name=topic)
    produce(broker, topic, numbered(range(records)))
    with pytest.raises(MistakeError, match="was deleted and created again"):
        run_here(spark, "archive", broker.bootstrap, config)
    assert archived(spark, tmp_path) == list(range(10))


@pytest.mark.soak
def test_records_of_an_aborted_transaction_never_appear(
    spark: Any, broker: Server, create: Any, tmp_path: Path
) -> None:
    topic = create()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    for n in range(30):
        producer.begin_transaction()
        producer.produce(topic, b"%d" % n)
        producer.flush(30)
        if n % 3:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    assert len(consume(broker, topic, "read_uncommitted")) == 30
    run = run_here(spark, "archive", broker.bootstrap, archive_file(tmp_path, topic))
    assert archived(spark, tmp_path) == list(range(0, 30, 3))
    assert run.progress.totals["archive.archive"].rows_out == 10


@pytest.mark.soak
def test_an_open_transaction_blocks_later_records(spark: Any, broker: Server, create: Any, tmp_path: Path) -> None:
    topic = create()
    config = archive_file(tmp_path, topic)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    produce(broker, topic, numbered(range(5)))
    producer.begin_transaction()
    producer.produce(topic, b"5")
    producer.flush(30)
    produce(broker, topic, numbered(range(6, 10)))
    run_here(spark, "archive", broker.bootstrap, config)
    assert archived(spark, tmp_path) == list(range(5))
    producer.commit_transaction(30)
    run_here(spark, "archive", broker.bootstrap, config)
    assert archived(spark, tmp_path) == list(range(10))


@pytest.mark.soak
def test_an_empty_topic_is_not_an_error(spark: Any, broker: Server, create: Any, tmp_path: Path) -> None:
    topic = create(3)
    config = archive_file(tmp_path, topic)
    run_here(spark, "archive", broker.bootstrap, config)
    produce(broker, topic, numbered(range(9)), 3)
    run_here(spark, "archive", broker.bootstrap, config)
    run = run_here(spark, "archive", broker.bootstrap, config)
    assert archived(spark, tmp_path) == list(range(9))
    assert run.progress.totals["archive.archive"].rows_in == 0


@pytest.mark.soak
def test_a_pattern_reads_topics_created_later(
    spark: Any, broker: Server, create: Any, topic_name: Any, tmp_path: Path
) -> None:
    stem = topic_name()
    config = archive_file(tmp_path, stem, f'pattern = "{stem}-.*"')
    produce(broker, create(name=f"{stem}-a"), numbered(range(3)))
    run_here(spark, "archive", broker.bootstrap, config)
    produce(broker, create(name=f"{stem}-b"), numbered(range(3, 6)))
    run_here(spark, "archive", broker.bootstrap, config)
    assert archived(spark, tmp_path) == list(range(6))


@pytest.mark.soak
def test_columns_may_be_added_to_a_schema_but_types_may_not_change(
    spark: Any, broker: Server, create: Any, tmp_path: Path
) -> None:
    topic = create()

    def file(fields: str) -> Path:
        return toml(
            tmp_path / "etl.toml",
            [
                f'checkpoint = "{tmp_path}/checkpoint"',
                "[source]", f'topic = "{topic}"',
                "[schema]", f'fields = "{fields}"',
                "[output]", f'path = "{tmp_path}/out"',
                "[dead_letters]", f'topic = "{topic}-dead"',
            ],
        )  # fmt: skip

    produce(broker, topic, [(None, b'{"a": 1}')])
    run_here(spark, "etl", broker.bootstrap, file("a BIGINT"))
    produce(broker, topic, [(None, b'{"a": 2, "b": "two"}')])
    run_here(spark, "etl", broker.bootstrap, file("a bigint NOT NULL, b STRING"))
    rows = spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "out")).select("a", "b").collect()
    assert sorted((row.a, row.b) for row in rows) == [(1, None), (2, "two")]
    with pytest.raises(MistakeError, match=r"another type of a \(BIGINT before, STRING now\)"):
        run_here(spark, "etl", broker.bootstrap, file("a STRING, b STRING"))
