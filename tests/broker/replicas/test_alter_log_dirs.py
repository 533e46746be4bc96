"""AlterReplicaLogDirs (KIP-113): replicas move between the log directories of a broker while they are used."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage import layout
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.wire.types import uuid_from_text
from tests.broker.moving import Moving
from tests.support.logs.log_driver import truncate
from tests.support.memory.broker import batch
from tests.support.requests.fetch import append


@pytest.mark.parametrize("version", [1, 2])
def test_a_replica_moves(moving: Moving, version: int) -> None:
    former, target = moving.dir_of(), moving.other()
    assert moving.alter(target, version=version) == E.NONE
    moving.settle()
    assert moving.dir_of() == target
    append(moving.memory, "t", b"c")
    assert moving.read() == [b"a", b"b", b"c"]
    assert moving.described() == [(target, False, 0)]
    moving.settle(65)
    assert all(name.endswith(layout.DELETE_DIR_SUFFIX) for name in moving.names(former))
    assert moving.names(target) == ["t-0"]
    assert layout.MOVED not in [entry.name for entry in (Path(target) / "t-0").iterdir()]


def test_the_metadata_has_the_new_directory(moving: Moving) -> None:
    target = moving.other()
    moving.alter(target)
    moving.settle()
    directory = moving.memory.broker.image.topics["t"].partitions[0].directories[0]
    ids = {log_dir.path: log_dir.directory_id for log_dir in moving.memory.broker.log_dirs.dirs}
    assert directory == uuid_from_text(ids[target])


def test_a_future_replica_is_described_with_its_lag(moving: Moving) -> None:
    current, target = moving.dir_of(), moving.half_moved()
    future = next(replica for replica in moving.described() if replica[1])
    assert future[0] == target
    assert 0 < future[2] < 22
    assert (current, False, 0) in moving.described()
    assert any(name.endswith(layout.FUTURE_DIR_SUFFIX) for name in moving.names(target))
    moving.throttle(None)
    moving.settle()
    assert moving.described() == [(target, False, 0)]
    assert len(moving.read()) == 22


def test_a_move_is_cancelled_by_a_move_to_the_current_directory(moving: Moving) -> None:
    current, target = moving.dir_of(), moving.half_moved()
    assert moving.alter(current) == E.NONE
    moving.throttle(None)
    moving.settle()
    assert moving.described() == [(current, False, 0)]
    assert all(name.endswith(layout.DELETE_DIR_SUFFIX) for name in moving.names(target))


def test_a_future_replica_is_deleted_with_its_topic(moving: Moving) -> None:
    target = moving.half_moved()
    response = moving.memory.client().ask(
        DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5, DeleteTopicsResponse
    )
    assert response.responses[0].error_code == 0
    moving.settle()
    assert all(name.endswith(layout.DELETE_DIR_SUFFIX) for name in moving.names(target))
    assert moving.memory.broker.log_dirs.futures.logs == {}


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_move_goes_on_after_a_restart(moving: Moving, is_clean: bool) -> None:
    target = moving.half_moved()
    lag = next(replica[2] for replica in moving.described() if replica[1])
    if is_clean:
        moving.memory.close()
    else:
        moving.memory.broker.log_dirs.release()
    moving.start()
    assert [replica[2] for replica in moving.described() if replica[1]] == [lag]
    moving.throttle(None)
    moving.settle()
    assert moving.described() == [(target, False, 0)]
    assert len(moving.read()) == 22


def test_a_crash_right_after_the_change_of_directories_keeps_what_came_later(moving: Moving) -> None:
    former, target = moving.dir_of(), moving.other()
    moving.alter(target)
    moving.settle(1)
    append(moving.memory, "t", b"c")
    assert "t-0" in moving.names(former)
    moving.memory.broker.log_dirs.release()
    moving.start()
    assert moving.dir_of() == target
    assert moving.read() == [b"a", b"b", b"c"]
    assert moving.names(former) == []


def test_there_and_back_again(moving: Moving) -> None:
    first, second = moving.dir_of(), moving.other()
    for target in (second, first, second, first):
        assert moving.alter(target) == E.NONE
        moving.settle(1)
        assert moving.dir_of() == target
        append(moving.memory, "t", b"x")
    moving.memory.broker.log_dirs.release()
    moving.start()
    assert moving.dir_of() == first
    assert moving.read() == [b"a", b"b", b"x", b"x", b"x", b"x"]


def test_errors(moving: Moving) -> None:
    assert moving.alter("/nowhere") == E.LOG_DIR_NOT_FOUND
    assert moving.alter(moving.other(), "x" * 249) == E.INVALID_TOPIC_EXCEPTION
    assert moving.alter(moving.other(), "unknown") == E.UNKNOWN_TOPIC_OR_PARTITION
    log_dirs = moving.memory.broker.log_dirs
    target = moving.other()
    failed = next(log_dir for log_dir in log_dirs.dirs if log_dir.path == target)
    moving.memory.broker.log_dir_failures.take_offline(failed, "write", OSError(5, "broken"))
    assert moving.alter(target) == E.KAFKA_STORAGE_ERROR
    assert moving.alter(moving.dir_of()) == E.NONE


def test_a_topic_is_made_in_the_directory_that_was_wanted_before(moving: Moving) -> None:
    for topic in ("u", "v"):
        target = str(moving.path / "b")
        assert moving.alter(target, topic) == E.UNKNOWN_TOPIC_OR_PARTITION
        moving.memory.create_topic(topic)
        assert moving.dir_of(topic) == target


def test_producers_and_open_transactions_move_along(moving: Moving) -> None:
    partition = moving.memory.broker.partitions.get("t", 0)
    begun = batch(b"open", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    partition.append(memoryview(bytearray(begun)), 0.0)
    stable = partition.log.last_stable_offset
    target = moving.other()
    moving.alter(target)
    moving.settle()
    assert moving.dir_of() == target
    assert partition.log.last_stable_offset == stable == 2
    repeated = partition.append(memoryview(bytearray(begun)), 0.0)
    assert repeated.duplicate
    moving.memory.broker.log_dirs.release()
    moving.start()
    partition = moving.memory.broker.partitions.get("t", 0)
    assert partition.log.last_stable_offset == 2
    assert partition.append(memoryview(bytearray(begun)), 0.0).duplicate


def test_deleted_records_do_not_come_back(moving: Moving) -> None:
    target = moving.half_moved()
    partition = moving.memory.broker.partitions.get("t", 0)
    partition.log.advance_log_start_offset(5)
    moving.memory.broker.partitions.persist_log_starts()
    moving.throttle(None)
    moving.settle()
    assert moving.dir_of() == target
    assert partition.log.log_start_offset == 5
    moving.memory.broker.log_dirs.release()
    moving.start()
    assert moving.memory.broker.partitions.get("t", 0).log.log_start_offset == 5


def test_a_log_whose_start_passes_the_copy_is_copied_from_there(moving: Moving) -> None:
    target = moving.half_moved()
    partition = moving.memory.broker.partitions.get("t", 0)
    partition.log.advance_log_start_offset(21)
    moving.throttle(None)
    moving.settle()
    assert moving.dir_of() == target
    assert (partition.log.log_start_offset, partition.log.log_end_offset) == (21, 22)


def test_a_truncation_is_followed(moving: Moving) -> None:
    target = moving.half_moved()
    partition = moving.memory.broker.partitions.get("t", 0)
    truncate(partition.log, 1)
    partition.leader_epoch += 1
    for value in (b"n1", b"n2", b"n3"):
        append(moving.memory, "t", value)
    moving.throttle(None)
    moving.settle()
    assert moving.dir_of() == target
    assert moving.read() == [b"a", b"n1", b"n2", b"n3"]


def test_with_sync_always_records_are_acknowledged_across_the_move(tmp_path: Path) -> None:
    moving = Moving(tmp_path, {"barnabas.log.sync": "always"})
    moving.memory.create_topic("t")
    append(moving.memory, "t", b"a")
    target = moving.other()
    moving.alter(target)
    moving.settle()
    assert moving.dir_of() == target
    append(moving.memory, "t", b"b")
    log = moving.memory.broker.partitions.get("t", 0).log
    assert log.synced_offset == log.high_watermark == 2
    assert moving.read() == [b"a", b"b"]
    moving.memory.close()
