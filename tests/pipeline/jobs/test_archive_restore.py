"""archive and restore: records are restored byte for byte, also if the restore is interrupted or repeated."""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from barnabas.spark.errors import MistakeError
from barnabas.spark.jobs import restore
from tests.pipeline.runs import consume, produce, run_here, toml
from tests.support.processes.server import Server

PARTITIONS = 3
BEGAN_MS = int(time.time()) * 1000 - 86_400_000  # within the default retention
Record = tuple[int, Any, Any, Any, Any]


def odd_records() -> list[dict[str, Any]]:
    """Records with null and empty values, repeated and null headers, every byte, and unordered times."""
    kinds: list[dict[str, Any]] = [
        {"key": None, "value": None},
        {"key": b"", "value": b""},
        {"key": bytes(range(256)), "value": bytes(reversed(range(256)))},
        {"key": b"k", "value": None, "headers": [("gone", None)]},
        {"key": "schlüssel", "value": "wert", "headers": [("a", b"1"), ("a", b"2"), ("ü", b"\xff\x00")]},
        {"value": b"x" * 500_000},
    ]
    return [
        {**kinds[n % len(kinds)], "partition": n % PARTITIONS, "timestamp": BEGAN_MS + (n * 7919) % 100_000}
        for n in range(60)
    ]


def records(broker: Server, topic: str) -> list[Record]:
    """Everything that a consumer sees of a topic's records except offsets, in order, by partition."""
    seen = [(m.partition(), m.key(), m.value(), m.headers(), m.timestamp()) for m in consume(broker, topic)]
    return sorted(seen, key=lambda record: record[0])


@pytest.fixture
def archived(spark: Any, broker: Server, create: Any, tmp_path: Path) -> str:
    """A topic with unusual records, and its archive."""
    topic = str(create(PARTITIONS))
    producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": "zstd"})
    for record in odd_records():
        producer.produce(topic, **record)
    assert producer.flush(30) == 0
    lines = [f'checkpoint = "{tmp_path}/cp"', "[source]", f'topic = "{topic}"', "[archive]", f'path = "{tmp_path}/a"']
    run_here(spark, "archive", broker.bootstrap, toml(tmp_path / "archive.toml", lines))
    return topic


def restore_file(tmp_path: Path, topic: str, target: str, *more: str) -> Path:
    """The file of a restore job."""
    lines = ["[archive]", f'path = "{tmp_path}/a"', f'topic = "{topic}"', *more, "[target]", f'topic = "{target}"']
    return toml(tmp_path / f"restore-{target}.toml", lines)


def test_a_restored_topic_is_byte_equal(spark: Any, broker: Server, archived: str, tmp_path: Path) -> None:
    config = restore_file(tmp_path, archived, f"{archived}-back")
    run = run_here(spark, "restore", broker.bootstrap, config)
    assert run.counts == (60, 60)
    assert records(broker, f"{archived}-back") == records(broker, archived)
    again = run_here(spark, "restore", broker.bootstrap, config)
    assert again.counts == (60, 0)
    assert records(broker, f"{archived}-back") == records(broker, archived)


@pytest.mark.soak
def test_an_interrupted_restore_continues(
    spark: Any, broker: Server, archived: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The restore fails in the middle of a transaction, after some committed ones."""
    config = restore_file(tmp_path, archived, f"{archived}-back")
    monkeypatch.setattr(restore, "_write_partitions", _FailingWriter())
    with pytest.raises(Exception, match="the restore fails"):
        run_here(spark, "restore", broker.bootstrap, config)
    monkeypatch.undo()
    assert 0 < len(records(broker, f"{archived}-back")) < 60
    run_here(spark, "restore", broker.bootstrap, config)
    assert records(broker, f"{archived}-back") == records(broker, archived)


class _FailingWriter:
    """Writes transactions of seven records, and fails at the twelfth record of a partition, like a killed process."""

    def __call__(self, batches: Any, target: Any) -> Any:
        chunk, row, calls = restore.CHUNK, restore._row, count(1)

        def failing_row(record: dict[str, Any]) -> Any:
            if next(calls) == 12:
                raise RuntimeError("the restore fails")
            return row(record)

        try:
            restore.CHUNK, restore._row = 7, failing_row
            yield from restore._write_partitions(batches, target)
        finally:
            restore.CHUNK, restore._row = chunk, row


@pytest.mark.soak
def test_a_part_of_an_archive(spark: Any, broker: Server, archived: str, tmp_path: Path) -> None:
    config = restore_file(tmp_path, archived, f"{archived}-part", 'where = "offset < 5 AND partition <> 1"')
    assert run_here(spark, "restore", broker.bootstrap, config).counts == (10, 10)
    expected = [record for record in records(broker, archived) if record[0] != 1]
    by_partition = [[record for record in expected if record[0] == p][:5] for p in (0, 2)]
    assert records(broker, f"{archived}-part") == by_partition[0] + by_partition[1]


@pytest.mark.soak
def test_old_records_are_kept_in_a_new_topic_and_refused_for_one_that_would_delete_them(
    spark: Any, broker: Server, create: Any, tmp_path: Path
) -> None:
    """Retention uses the records' timestamps, so restored old records would be deleted soon."""
    topic = create()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    forever = ConfigResource(
        ConfigResource.Type.TOPIC,
        topic,
        incremental_configs=[ConfigEntry("retention.ms", "-1", incremental_operation=AlterConfigOpType.SET)],
    )
    admin.incremental_alter_configs([forever])[forever].result(30)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, b"old", timestamp=1_357_000_000_000)
    assert producer.flush(30) == 0
    lines = [f'checkpoint = "{tmp_path}/cp"', "[source]", f'topic = "{topic}"', "[archive]", f'path = "{tmp_path}/a"']
    run_here(spark, "archive", broker.bootstrap, toml(tmp_path / "archive.toml", lines))
    with pytest.raises(MistakeError, match="would delete"):
        run_here(spark, "restore", broker.bootstrap, restore_file(tmp_path, topic, create()))
    run_here(spark, "restore", broker.bootstrap, restore_file(tmp_path, topic, f"{topic}-back"))
    resource = ConfigResource(ConfigResource.Type.TOPIC, f"{topic}-back")
    assert admin.describe_configs([resource])[resource].result(30)["retention.ms"].value == "-1"
    assert [m.value() for m in consume(broker, f"{topic}-back")] == [b"old"]


@pytest.mark.soak
def test_a_topic_in_use_is_not_written_to(
    spark: Any, broker: Server, create: Any, archived: str, tmp_path: Path
) -> None:
    used, small = create(PARTITIONS), create(1)
    produce(broker, used, [(None, b"mine")])
    with pytest.raises(MistakeError, match="has other records"):
        run_here(spark, "restore", broker.bootstrap, restore_file(tmp_path, archived, used))
    with pytest.raises(MistakeError, match="has 1 partitions and the archive 3"):
        run_here(spark, "restore", broker.bootstrap, restore_file(tmp_path, archived, small))
    assert len(records(broker, used)) == 1
