"""R31: a snapshot of the metadata is written by time as well as by size, by every node with a metadata log."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.config.load import load
from barnabas.broker.metadata.log import snapshots
from barnabas.broker.metadata.log.snapshot_schedule import RETRY_S, SnapshotSchedule
from barnabas.coord.cluster.metadata_log.checkpoint import parse_checkpoint_name
from barnabas.wire.messages.records.metadata_records import AbortTransactionRecord, BeginTransactionRecord
from tests.broker.fake_controller import FEATURES, FakeController, FakeQuorum
from tests.broker.metadata.scripted_controller import following, topic
from tests.broker.scripted_nodes import Wire
from tests.support.memory.broker import MemoryBroker
from tests.support.memory.controller import MemoryController

HOUR_S = 3600.0
EVERY_MINUTE = {"metadata.log.max.snapshot.interval.ms": "60000"}
BY_SIZE_ONLY = {"metadata.log.max.snapshot.interval.ms": "0"}


def schedule(**sets: str) -> SnapshotSchedule:
    return SnapshotSchedule(load({key.replace("_", "."): value for key, value in sets.items()}, {}, None), 100.0)


def checkpoints(data_dir: Path) -> list[int]:
    """The end offsets of the snapshots in a directory, without the one that begins a log."""
    names = (parse_checkpoint_name(path.name) for path in (data_dir / "__cluster_metadata-0").glob("*.checkpoint"))
    return sorted(snapshot_id[0] for snapshot_id in names if snapshot_id is not None and snapshot_id[0])


class TestSchedule:
    def test_an_hour_after_the_last_snapshot_if_there_are_records(self) -> None:
        """Kafka's default."""
        pace = schedule()
        assert pace.deadline is None
        pace.wrote(1)
        assert pace.deadline == 100 + HOUR_S
        assert not pace.is_due(99 + HOUR_S)
        assert pace.is_due(100 + HOUR_S)
        pace.has_snapshot(5000)
        assert pace.deadline is None
        pace.wrote(1)
        assert pace.deadline == 5000 + HOUR_S

    def test_at_once_when_the_log_is_large(self) -> None:
        pace = schedule(metadata_log_max_record_bytes_between_snapshots="10")
        pace.wrote(9)
        assert not pace.is_due(100)
        pace.wrote(1)
        assert pace.is_due(100)

    def test_never_by_time_with_0(self) -> None:
        pace = schedule(metadata_log_max_snapshot_interval_ms="0")
        pace.wrote(1)
        assert pace.deadline is None

    def test_again_after_a_while_when_it_failed(self) -> None:
        pace = schedule(metadata_log_max_record_bytes_between_snapshots="10")
        pace.wrote(20)
        pace.failed(200)
        assert pace.deadline == 200 + RETRY_S


def test_a_single_node_writes_one_when_nothing_more_happens(tmp_path: Path) -> None:
    memory = MemoryBroker(tmp_path / "data", EVERY_MINUTE)
    memory.create_topic("t")
    memory.advance(59)
    assert checkpoints(tmp_path / "data") == []
    memory.advance(2)
    (first,) = checkpoints(tmp_path / "data")
    memory.advance(600)
    assert checkpoints(tmp_path / "data") == [first], "nothing was written since"
    memory.create_topic("u")
    (second,) = checkpoints(tmp_path / "data")
    assert second > first, "the time had passed already"
    memory.advance(10)
    memory.create_topic("w")
    assert checkpoints(tmp_path / "data") == [second]
    memory.advance(51)
    (third,) = checkpoints(tmp_path / "data")
    assert third > second
    memory.close()
    again = MemoryBroker(tmp_path / "data", BY_SIZE_ONLY)
    assert {"t", "u", "w"} <= again.broker.image.topics.keys()
    again.create_topic("v")
    again.advance(2 * HOUR_S)
    assert checkpoints(tmp_path / "data") == [third]
    again.close()


def test_the_time_counts_from_a_snapshot_that_was_written_because_of_the_size(tmp_path: Path) -> None:
    memory = MemoryBroker(
        tmp_path / "data", {**EVERY_MINUTE, "metadata.log.max.record.bytes.between.snapshots": "2000"}
    )
    memory.advance(30)
    for index in range(9):
        memory.create_topic(f"t{index}")
    memory.advance(1)
    (by_size,) = checkpoints(tmp_path / "data")
    memory.create_topic("u")
    memory.advance(50)
    assert checkpoints(tmp_path / "data") == [by_size]
    memory.advance(12)
    (by_time,) = checkpoints(tmp_path / "data")
    assert by_time > by_size
    memory.close()


def test_the_controller_of_a_cluster_writes_them_and_keeps_the_one_before(tmp_path: Path) -> None:
    memory = MemoryController(tmp_path / "data", EVERY_MINUTE)
    seen: list[list[int]] = []
    for broker_id in (1, 2, 3):
        memory.register(broker_id)
        memory.advance(61)
        seen.append(checkpoints(tmp_path / "data"))
    assert [len(names) for names in seen] == [1, 2, 2]
    assert seen[2][0] == seen[1][1]
    memory.advance(600)
    assert checkpoints(tmp_path / "data") == seen[2]


def test_a_snapshot_that_cannot_be_written_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = MemoryController(tmp_path / "data", EVERY_MINUTE)
    memory.register(1)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "replace_file", fail)
        memory.advance(61)
        assert checkpoints(tmp_path / "data") == []
    memory.advance(RETRY_S + 1)
    assert len(checkpoints(tmp_path / "data")) == 1


class TestFollower:
    """A broker that follows other controllers, which send it no records meanwhile."""

    @pytest.fixture
    def quorum(self) -> FakeQuorum:
        quorum = FakeQuorum()
        quorum.write(*FEATURES)
        return quorum

    @pytest.fixture
    def controller(self, wire: Wire, quorum: FakeQuorum) -> FakeController:
        return FakeController(wire, quorum, 3000)

    def test_writes_snapshots_of_its_own(self, wire, tmp_path, quorum, controller) -> None:
        sets = {"metadata_log_max_snapshot_interval_ms": "20000"}
        member = following(wire, tmp_path, controller, **sets)
        quorum.write(*topic("t", 1))
        wire.advance(10)
        assert checkpoints(tmp_path / "data") == []
        wire.advance(11)
        (first,) = checkpoints(tmp_path / "data")
        wire.advance(60)
        assert checkpoints(tmp_path / "data") == [first]
        member.stop()
        again = following(wire, tmp_path, controller, **sets)
        assert set(again.image.topics) == {"t"}

    def test_not_of_a_transaction_that_is_open(self, wire, tmp_path, quorum, controller) -> None:
        following(wire, tmp_path, controller, metadata_log_max_snapshot_interval_ms="5000")
        quorum.write(BeginTransactionRecord(name="x"))
        wire.advance(20)
        assert checkpoints(tmp_path / "data") == []
        quorum.write(AbortTransactionRecord(reason="x"))
        wire.advance(5)
        assert len(checkpoints(tmp_path / "data")) == 1

    def test_not_of_what_no_controller_has_confirmed(self, wire, tmp_path, quorum, controller) -> None:
        """After a start the log may be large, and nothing of it is applied before a controller has answered."""
        member = following(wire, tmp_path, controller)
        quorum.write(*topic("t", 1))
        wire.advance(1)
        member.stop()
        again = following(wire, tmp_path, controller, metadata_log_max_record_bytes_between_snapshots="1")
        wire.advance(1)
        assert set(again.image.topics) == {"t"}
        assert checkpoints(tmp_path / "data") == [again.remote.copy.image.offset + 1]
