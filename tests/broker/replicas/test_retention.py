"""The broker's retention checks: configured by topic or broker, files renamed first and removed later. Rule L5."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.config.load import load
from barnabas.broker.config.server_config import ServerConfig
from barnabas.broker.replicas.cleaning.retention import Retention
from barnabas.storage.log_config import LogConfig
from barnabas.wire.configdef import ConfigError
from barnabas.wire.messages import configs as c
from tests.support.cases import for_each
from tests.support.memory.broker import MemoryBroker, batch
from tests.support.world import START_MS

DAY_S = 86_400
SEGMENT_BYTES = 1_048_576


def configured(**sets: str) -> ServerConfig:
    return load({name.replace("_", "."): text for name, text in sets.items()}, {}, None)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryBroker]:
    broker = MemoryBroker(tmp_path / "data", {"log.segment.bytes": str(SEGMENT_BYTES)})
    broker.create_topic("t")
    yield broker
    broker.close()


def produce(memory: MemoryBroker, count: int, timestamp: int = START_MS) -> None:
    """Append batches that fill a segment each."""
    partition = memory.broker.partitions.get("t", 0)
    for _ in range(count):
        records = bytearray(batch(b"v" * 900_000, timestamp=timestamp))
        partition.append(memoryview(records), memory.clock.now, origin="coordinator")


def set_topic(memory: MemoryBroker, name: str, value: str) -> None:
    config = c.IncrementalAlterConfigsRequestAlterableConfig(name=name, config_operation=0, value=value)
    resource = c.IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=2, resource_name="t", configs=[config]
    )
    request = c.IncrementalAlterConfigsRequest(resources=[resource])
    response = memory.client().ask(request, 1, c.IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == 0


def start(memory: MemoryBroker, topic: str = "t") -> int:
    return memory.broker.partitions.get(topic, 0).log.log_start_offset


def set_aside(memory: MemoryBroker) -> list[str]:
    """The names of the files that are renamed and not removed yet."""
    directory = Path(memory.broker.partitions.get("t", 0).log.directory)
    return sorted(path.name for path in directory.glob("*.deleted"))


@pytest.mark.trio
async def test_old_segments_are_deleted_after_a_week_by_default(
    memory: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    checks = Retention(memory.broker.loop, memory.broker.partitions)
    produce(memory, 2)
    memory.advance(7 * DAY_S)
    produce(memory, 1, timestamp=memory.clock.now_ms)
    await checks.check()
    assert start(memory) == 0
    memory.advance(1)
    with caplog.at_level(logging.INFO):
        await checks.check()
    assert start(memory) == 2
    assert "Deleting 2 segments of t-0 up to base offset 1 due to retention.ms breach" in caplog.text


@pytest.mark.trio
async def test_files_are_renamed_first_and_removed_after_the_delay(memory: MemoryBroker) -> None:
    """L5: file.delete.delay.ms is a minute; open files stay readable."""
    set_topic(memory, "retention.bytes", str(SEGMENT_BYTES))
    produce(memory, 3)
    await Retention(memory.broker.loop, memory.broker.partitions).check()
    assert "00000000000000000000.log.deleted" in set_aside(memory)
    assert memory.broker.log_dirs.deletions.take_due(memory.clock.now + 59.9) == []
    for path in memory.broker.log_dirs.deletions.take_due(memory.clock.now + 60):
        memory.broker.log_dirs.deletions.remove(path)
    assert set_aside(memory) == []


@pytest.mark.trio
async def test_changed_retention_holds_at_the_next_check(memory: MemoryBroker) -> None:
    checks = Retention(memory.broker.loop, memory.broker.partitions)
    produce(memory, 3)
    memory.advance(10)
    await checks.check()
    assert start(memory) == 0
    set_topic(memory, "retention.ms", "9999")
    await checks.check()
    assert start(memory) == 3


@pytest.mark.trio
async def test_timestamp_in_the_future_is_logged_once(memory: MemoryBroker, caplog: pytest.LogCaptureFixture) -> None:
    """L12: the producer's clock is wrong; the segment stays until that time has passed."""
    checks = Retention(memory.broker.loop, memory.broker.partitions)
    produce(memory, 1, timestamp=START_MS + 3_000_000)
    await checks.check()
    await checks.check()
    (warning,) = [record.getMessage() for record in caplog.records if "future" in record.getMessage()]
    assert warning.startswith(f"The oldest segment of t-0 holds the timestamp {START_MS + 3_000_000}, which lies in")


@pytest.mark.trio
async def test_one_failing_disk_does_not_stop_the_others(
    memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    memory.create_topic("u")
    set_topic(memory, "retention.ms", "1000")
    produce(memory, 1)
    memory.advance(10)
    log = memory.broker.partitions.get("u", 0).log

    class Failing(type(log.files)):  # type: ignore[misc]
        def open(self, path: str) -> object:
            raise OSError(5, "Input/output error")

    records = bytearray(batch(b"v", timestamp=1))
    memory.broker.partitions.get("u", 0).append(memoryview(records), 0.0, origin="coordinator")
    monkeypatch.setattr(log, "files", Failing())
    await Retention(memory.broker.loop, memory.broker.partitions).check()
    assert "Cannot apply retention to u-0: [Errno 5] Input/output error" in caplog.text
    monkeypatch.undo()
    assert (start(memory), start(memory, "u")) == (1, 0)


@for_each(
    ("sets", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log_retention_hours": "1"}, 3_600_000),
        ({"log_retention_hours": "1", "log_retention_minutes": "2"}, 120_000),
        ({"log_retention_hours": "1", "log_retention_minutes": "2", "log_retention_ms": "3"}, 3),
        ({"log_retention_hours": "-1"}, -1),
        ({"log_retention_minutes": "-1"}, -1),
        ({"log_retention_ms": "-1", "log_retention_hours": "5"}, -1),
    ],
)
def test_milliseconds_override_minutes_override_hours(sets: dict[str, str], retention_ms: int) -> None:
    assert LogConfig.from_map({}, configured(**sets).topic_defaults()).retention_ms == retention_ms


@pytest.mark.parametrize("name", ["log_retention_ms", "log_retention_minutes", "log_retention_hours"])
def test_a_retention_of_zero_is_refused_at_start(name: str) -> None:
    with pytest.raises(ConfigError, match=r"must be unlimited \(-1\) or, equal or greater than 1"):
        configured(**{name: "0"})
