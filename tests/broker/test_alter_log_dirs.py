"""AlterReplicaLogDirs (KIP-113): replicas move between the log directories of a broker while they are used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.storage import layout
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from barnabas.wire.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.wire.types import uuid_from_text
from tests.broker.memory_broker import MemoryBroker, batch
from tests.broker.test_fetch import append, at, fetch, values

KEY = "replica.alter.log.dirs.io.max.bytes.per.second"


class Moving:
    """A broker with two directories and a topic."""

    def __init__(self, path: Path, sets: dict[str, str] | None = None) -> None:
        self.path = path
        self.sets = sets
        self.memory = self.start()

    def start(self) -> MemoryBroker:
        self.memory = MemoryBroker(self.path / "a", self.sets, more_dirs=[self.path / "b"])
        return self.memory

    def dir_of(self, topic: str = "t") -> str:
        log_dir = self.memory.broker.log_dirs.dir_of(topic, 0)
        assert log_dir is not None
        return log_dir.path

    def other(self, topic: str = "t") -> str:
        return str(self.path / "b") if self.dir_of(topic) == str(self.path / "a") else str(self.path / "a")

    def alter(self, path: str, topic: str = "t", version: int = 2) -> int:
        request = AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[0])])]
        )
        answer = self.memory.client().ask(request, version, AlterReplicaLogDirsResponse)
        return answer.results[0].partitions[0].error_code

    def throttle(self, rate: int | None) -> None:
        """Limit the bytes that are copied per second; None sets the limit back."""
        config = IncrementalAlterConfigsRequestAlterableConfig(
            name=KEY, config_operation=0 if rate is not None else 1, value=None if rate is None else str(rate)
        )
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=4, resource_name=str(self.memory.broker.node_id), configs=[config]
        )
        answer = self.memory.client().ask(
            IncrementalAlterConfigsRequest(resources=[resource]), 1, IncrementalAlterConfigsResponse
        )
        assert answer.responses[0].error_code == 0, answer

    def half_moved(self) -> str:
        """Begin a move and let it wait for its quota after a part of the log; the target."""
        for number in range(20):
            append(self.memory, "t", b"%d" % number + bytes(50_000))
        target = self.other()
        self.throttle(10_000)
        assert self.alter(target) == E.NONE
        self.settle()
        return target

    def settle(self, seconds: float = 2.0) -> None:
        """Do everything that is due within some seconds."""
        self.memory.broker.loop.end_turn()
        for _ in range(int(seconds * 10)):
            self.memory.advance(0.1)
            self.memory.broker.loop.end_turn()

    def read(self) -> list[bytes | None]:
        answer = self.memory.client().ask(fetch(at(0)), 11, FetchResponse)
        return [value for _, value in values(answer.responses[0].partitions[0])]

    def described(self) -> list[tuple[str, bool, int]]:
        answer = self.memory.client().ask(DescribeLogDirsRequest(topics=None), 4, DescribeLogDirsResponse)
        return [
            (result.log_dir, part.is_future_key, part.offset_lag)
            for result in answer.results
            for topic in result.topics
            if topic.name == "t"
            for part in topic.partitions
        ]

    def names(self, path: str) -> list[str]:
        return sorted(one.name for one in Path(path).iterdir() if one.is_dir() and one.name.startswith("t-"))


@pytest.fixture
def moving(tmp_path: Path) -> Iterator[Moving]:
    made = Moving(tmp_path)
    made.memory.create_topic("t")
    for value in (b"a", b"b"):
        append(made.memory, "t", value)
    yield made
    made.memory.close()


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
    assert layout.MOVED not in [one.name for one in (Path(target) / "t-0").iterdir()]


def test_the_metadata_has_the_new_directory(moving: Moving) -> None:
    target = moving.other()
    moving.alter(target)
    moving.settle()
    directory = moving.memory.broker.image.topics["t"].partitions[0].directories[0]
    ids = {one.path: one.directory_id for one in moving.memory.broker.log_dirs.dirs}
    assert directory == uuid_from_text(ids[target])


def test_a_future_replica_is_described_with_its_lag(moving: Moving) -> None:
    current, target = moving.dir_of(), moving.half_moved()
    future = next(one for one in moving.described() if one[1])
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
    answer = moving.memory.client().ask(
        DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5, DeleteTopicsResponse
    )
    assert answer.responses[0].error_code == 0
    moving.settle()
    assert all(name.endswith(layout.DELETE_DIR_SUFFIX) for name in moving.names(target))
    assert moving.memory.broker.log_dirs.futures.logs == {}


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_move_goes_on_after_a_restart(moving: Moving, is_clean: bool) -> None:
    target = moving.half_moved()
    lag = next(one[2] for one in moving.described() if one[1])
    if is_clean:
        moving.memory.close()
    else:
        moving.memory.broker.log_dirs.release()
    moving.start()
    assert [one[2] for one in moving.described() if one[1]] == [lag]
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
    failed = next(one for one in log_dirs.dirs if one.path == target)
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
    moving.memory.broker.log_dirs.truncate_log("t", 0, 1)
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
