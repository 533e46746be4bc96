"""Failing disks: EIO on sync, write and read, no space, no descriptors, a directory that has disappeared (L2, L5)."""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from barnabas.broker.config.load import load
from barnabas.broker.server import Server
from barnabas.broker.start.start_errors import StartError
from barnabas.broker.world import World
from barnabas.storage import layout
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.wire.messages.log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from barnabas.wire.messages.produce import ProduceResponse
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from tests.support.cases import for_each
from tests.support.disks.failing_files import FailingFiles
from tests.support.memory.broker import Client, MemoryBroker, batch
from tests.support.requests.fetch import at, fetch, values
from tests.support.requests.groups import commit, find
from tests.support.requests.groups import fetch as fetch_committed
from tests.support.requests.produce import answers, produce, to

ALWAYS = {"barnabas.log.sync": "always", "offsets.topic.num.partitions": "1"}


def check_disks(memory: MemoryBroker) -> None:
    """What the broker does every second in the background."""
    memory.broker.log_dir_failures.check()
    memory.broker.partitions.reopen(memory.broker.image)


@pytest.fixture
def files() -> FailingFiles:
    return FailingFiles()


@pytest.fixture
def memory(tmp_path: Path, files: FailingFiles) -> Iterator[MemoryBroker]:
    """Two log directories: the metadata and topic `here` are in `a`, topic `there` is in `b`."""
    memory = MemoryBroker(tmp_path / "a", ALWAYS, files=files, more_dirs=[tmp_path / "b"])
    memory.create_topic("there")
    memory.create_topic("here")
    assert memory.broker.log_dirs.dir_of("there", 0) is memory.broker.log_dirs.dirs[1]
    assert memory.broker.log_dirs.dir_of("here", 0) is memory.broker.log_dirs.dirs[0]
    files.errors_in = str(tmp_path / "b")
    assert send(memory, "there") == send(memory, "here") == 0
    yield memory
    memory.close()


def send(memory: MemoryBroker, topic: str, value: bytes = b"x") -> int:
    """The error code of a produce request."""
    return answers(memory.client().ask(produce(to(0, batch(value)), topic=topic), 9, ProduceResponse))[0].error_code


def read(memory: MemoryBroker, topic: str) -> tuple[int, list[bytes | None]]:
    """Error code and values of a fetch from the start."""
    partition = memory.client().ask(fetch(at(0), topic=topic), 12, FetchResponse).responses[0].partitions[0]
    return partition.error_code, [value for _, value in values(partition)]


def latest(memory: MemoryBroker, topic: str, timestamp: int = -1) -> int:
    requested = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=timestamp)])
    response = memory.client().ask(ListOffsetsRequest(replica_id=-1, topics=[requested]), 7, ListOffsetsResponse)
    return response.topics[0].partitions[0].error_code


def create(memory: MemoryBroker, topic: str) -> int:
    request = CreateTopicsRequest(topics=[CreatableTopic(name=topic, num_partitions=1, replication_factor=1)])
    return memory.client().ask(request, 7, CreateTopicsResponse).topics[0].error_code


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    assert not [record for record in caplog.records if record.exc_info]
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


class TestFailedSync:
    def test_fails_its_directory_and_no_other(self, memory: MemoryBroker, files: FailingFiles, caplog) -> None:
        files.errors["sync"] = errno.EIO
        assert send(memory, "there") == E.KAFKA_STORAGE_ERROR
        assert (send(memory, "there"), read(memory, "there")[0], latest(memory, "there")) == (56, 56, 56)
        assert (send(memory, "here"), read(memory, "here"), latest(memory, "here")) == (0, (0, [b"x", b"x"]), 0)
        assert memory.broker.halt_reason is None
        first, second = errors(caplog)
        assert "sync has failed in the log directory" in first
        assert "Input/output error" in first
        assert "1 partitions are offline" in second
        assert "there-0" in second

    def test_is_never_retried(self, memory: MemoryBroker, files: FailingFiles) -> None:
        files.errors["sync"] = errno.EIO
        send(memory, "there")
        files.errors.clear()
        files.done.clear()
        for _ in range(3):
            assert send(memory, "there") == E.KAFKA_STORAGE_ERROR
        memory.broker.log_dirs.write_checkpoint(layout.RECOVERY_POINT_CHECKPOINT)
        memory.broker.log_dirs.write_checkpoint(layout.REPLICATION_CHECKPOINT)
        memory.advance(3600)
        assert not [path for path in files.paths("sync") if files.errors_in in path]

    def test_fails_all_requests_that_wait_for_it(self, memory: MemoryBroker, files: FailingFiles) -> None:
        memory.flushes.is_paused = True
        clients = [memory.client() for _ in range(3)]
        reader = memory.client()
        reader.send(fetch(at(1), topic="there", max_wait_ms=10_000), 12)
        for item in clients:
            item.send(produce(to(0, batch(b"y")), topic="there"), 9)
        files.errors["sync"] = errno.EIO
        memory.run_flush()
        partitions = [answers(item.answers()[0])[0] for item in clients]
        assert [(item.error_code, item.base_offset) for item in partitions] == [(E.KAFKA_STORAGE_ERROR, -1)] * 3
        assert reader.answers()[0].responses[0].partitions[0].error_code == E.KAFKA_STORAGE_ERROR
        assert memory.flushes.held == []

    def test_leaves_no_clean_shutdown_marker_so_the_next_start_recovers(
        self, memory: MemoryBroker, files: FailingFiles, tmp_path: Path
    ) -> None:
        files.errors["sync"] = errno.EIO
        send(memory, "there", b"in doubt")
        files.errors.clear()
        memory.broker.log_dirs.close()
        assert (tmp_path / "a" / ".kafka_cleanshutdown").exists()
        assert not (tmp_path / "b" / ".kafka_cleanshutdown").exists()
        again = MemoryBroker(tmp_path / "a", ALWAYS, more_dirs=[tmp_path / "b"])
        assert read(again, "there")[1][0] == b"x"
        assert send(again, "there") == 0
        again.close()

    def test_is_shown_by_describe_log_dirs(self, memory: MemoryBroker, files: FailingFiles, tmp_path: Path) -> None:
        files.errors["sync"] = errno.EIO
        send(memory, "there")
        response = memory.client().ask(DescribeLogDirsRequest(topics=None), 4, DescribeLogDirsResponse)
        log_dirs = {
            result.log_dir: (result.error_code, [topic.name for topic in result.topics]) for result in response.results
        }
        assert log_dirs[str(tmp_path / "b")] == (E.KAFKA_STORAGE_ERROR, [])
        assert log_dirs[str(tmp_path / "a")][0] == 0
        assert "here" in log_dirs[str(tmp_path / "a")][1]

    def test_new_partitions_are_created_in_working_directories(self, memory: MemoryBroker, files: FailingFiles) -> None:
        files.errors["sync"] = errno.EIO
        send(memory, "there")
        for name in ("one", "two", "three"):
            assert create(memory, name) == 0
            assert send(memory, name) == 0

    def test_a_topic_of_a_failed_directory_can_be_deleted(
        self, memory: MemoryBroker, files: FailingFiles, tmp_path: Path
    ) -> None:
        files.errors["sync"] = errno.EIO
        send(memory, "there")
        request = DeleteTopicsRequest(topic_names=["there"], timeout_ms=1000)
        assert memory.client().ask(request, 5, DeleteTopicsResponse).responses[0].error_code == 0
        assert send(memory, "there") == E.UNKNOWN_TOPIC_OR_PARTITION
        assert (tmp_path / "b" / "there-0").exists()

    @pytest.mark.parametrize("where", ["a/here-0", "a/__cluster_metadata-0"])
    def test_of_the_metadatas_directory_stops_the_broker(
        self, memory: MemoryBroker, files: FailingFiles, tmp_path: Path, where: str, caplog
    ) -> None:
        halted = []
        memory.broker.on_halt = lambda: halted.append(True)
        files.errors_in = str(tmp_path / where)
        files.errors["sync"] = errno.EIO
        code = send(memory, "here") if "here" in where else create(memory, "more")
        assert code == E.KAFKA_STORAGE_ERROR
        files.errors.clear()
        files.done.clear()
        assert create(memory, "another") == E.KAFKA_STORAGE_ERROR
        assert files.paths("sync") == []
        assert halted == [True]
        assert "metadata" in (memory.broker.halt_reason or "")
        assert any("stopping, since" in line for line in errors(caplog))

    def test_of_the_last_directory_stops_the_broker(self, tmp_path: Path, files: FailingFiles) -> None:
        memory = MemoryBroker(tmp_path, ALWAYS, files=files)
        memory.create_topic("t")
        files.errors["sync"] = errno.EIO
        assert send(memory, "t") == E.KAFKA_STORAGE_ERROR
        assert memory.broker.halt_reason == "no log directory is left"
        memory.close()

    def test_takes_its_groups_offline(self, tmp_path: Path, files: FailingFiles) -> None:
        """G2: a commit that may be lost is not acknowledged, and the group has no coordinator."""
        memory = MemoryBroker(tmp_path / "a", ALWAYS, files=files, more_dirs=[tmp_path / "b"])
        client = memory.client()
        find(client)
        memory.create_topic("t")
        log_dir = memory.broker.log_dirs.dir_of("__consumer_offsets", 0)
        assert log_dir is memory.broker.log_dirs.dirs[1]
        assert commit(client, "t", 5) == {0}
        files.errors_in = log_dir.path
        files.errors["sync"] = errno.EIO
        assert commit(client, "t", 6) == {E.NOT_COORDINATOR}
        assert fetch_committed(client, "t") == E.NOT_COORDINATOR
        assert find(client).error_code == E.COORDINATOR_NOT_AVAILABLE
        memory.close()


class TestRefusedWrite:
    def test_on_a_full_disk_undoes_the_append_and_works_again_once_there_is_space(
        self, memory: MemoryBroker, files: FailingFiles, caplog
    ) -> None:
        log = memory.broker.partitions.get("there", 0).log
        files.errors["write"] = errno.ENOSPC
        for _ in range(5):
            assert send(memory, "there") == E.KAFKA_STORAGE_ERROR
        assert Path(log.segments.active.stem + ".log").stat().st_size == log.size_bytes
        assert (read(memory, "there"), latest(memory, "there")) == ((0, [b"x"]), 0)
        (line,) = errors(caplog)
        assert line.startswith("No space left on device in the log directory")
        assert "Free space" in line
        memory.advance(31)
        assert send(memory, "there") == E.KAFKA_STORAGE_ERROR
        assert len(errors(caplog)) == 2
        files.errors.clear()
        assert send(memory, "there") == 0
        assert read(memory, "there") == (0, [b"x", b"x"])
        with caplog.at_level(logging.INFO):
            check_disks(memory)
        assert "There is space again in the log directory" in caplog.text
        caplog.clear()
        check_disks(memory)
        assert caplog.text == ""

    def test_an_offset_commit_fails_on_a_full_disk_and_succeeds_later(
        self, tmp_path: Path, files: FailingFiles
    ) -> None:
        memory = MemoryBroker(tmp_path, ALWAYS, files=files)
        client = memory.client()
        find(client)
        memory.create_topic("t")
        assert commit(client, "t", 5) == {0}
        files.errors_in, files.errors["write"] = "__consumer_offsets", errno.ENOSPC
        assert commit(client, "t", 6) == {E.NOT_COORDINATOR}
        assert fetch_committed(client, "t") == 5
        files.errors.clear()
        assert commit(client, "t", 7) == {0}
        assert fetch_committed(client, "t") == 7
        memory.close()

    def test_a_roll_is_postponed_without_descriptors(self, memory: MemoryBroker, files: FailingFiles, caplog) -> None:
        log = memory.broker.partitions.get("there", 0).log
        log.config.segment_bytes = 200
        files.errors["open"] = errno.EMFILE
        assert [send(memory, "there", bytes(100)) for _ in range(2)] == [E.KAFKA_STORAGE_ERROR] * 2
        assert memory.broker.log_dirs.dirs[1].failure is None
        assert read(memory, "there") == (0, [b"x"])
        assert "ulimit -n" in errors(caplog)[0]
        files.errors.clear()
        assert send(memory, "there", bytes(100)) == 0
        assert len(log.segments) == 2

    def test_a_flush_without_a_descriptor_is_started_again(self, memory: MemoryBroker, files: FailingFiles) -> None:
        client = memory.client()
        memory.create_topic("third")
        home = memory.broker.log_dirs.dir_of("third", 0)
        assert home is not None
        files.errors_in, files.errors["open"] = f"{home.path}/third-0/partition.metadata", errno.EMFILE
        client.send(produce(to(0, batch(b"y")), topic="third"), 9)
        assert client.answers() == []
        memory.advance(1)
        assert client.answers() == []
        files.errors.clear()
        memory.advance(0.2)
        assert answers(client.answers()[0])[0].error_code == 0

    def test_a_write_error_fails_the_directory(self, memory: MemoryBroker, files: FailingFiles) -> None:
        files.errors["write"] = errno.EIO
        assert send(memory, "there") == E.KAFKA_STORAGE_ERROR
        files.errors.clear()
        assert send(memory, "there") == E.KAFKA_STORAGE_ERROR
        assert memory.broker.log_dirs.dirs[1].failure is not None
        assert send(memory, "here") == 0

    def test_a_topic_cannot_be_created_on_a_full_disk_and_leaves_no_files(
        self, memory: MemoryBroker, files: FailingFiles, tmp_path: Path
    ) -> None:
        files.errors_in, files.errors["write"] = str(tmp_path / "a"), errno.ENOSPC
        assert create(memory, "new") == E.KAFKA_STORAGE_ERROR
        assert "new" not in memory.broker.image.topics
        files.errors.clear()
        assert create(memory, "new") == 0
        assert send(memory, "new") == 0

    @pytest.mark.parametrize("operation", ["mkdirs", "write", "open"])
    def test_a_partition_is_created_as_soon_as_there_is_space(
        self, memory: MemoryBroker, files: FailingFiles, operation: str, caplog
    ) -> None:
        files.errors_in, files.errors[operation] = "new-0", errno.EMFILE if operation == "open" else errno.ENOSPC
        assert create(memory, "new") == 0
        assert send(memory, "new") == E.KAFKA_STORAGE_ERROR
        for _ in range(3):
            check_disks(memory)
        assert send(memory, "new") == E.KAFKA_STORAGE_ERROR
        assert len(errors(caplog)) == 1
        files.errors.clear()
        check_disks(memory)
        assert send(memory, "new") == 0
        assert memory.broker.partitions.offline == {}

    def test_failed_checkpoints_are_logged_once_and_written_later(
        self, memory: MemoryBroker, files: FailingFiles, caplog
    ) -> None:
        files.errors["write"] = errno.ENOSPC
        for _ in range(10):
            assert not memory.broker.log_dirs.write_checkpoint(layout.REPLICATION_CHECKPOINT)
        assert len(errors(caplog)) == 1
        files.errors.clear()
        assert memory.broker.log_dirs.write_checkpoint(layout.REPLICATION_CHECKPOINT)

    def test_records_are_deleted_on_a_full_disk_though_the_response_is_an_error(
        self, memory: MemoryBroker, files: FailingFiles
    ) -> None:
        """L5: whole segments are deleted, oldest first, to free space; the error says that the start is not durable."""
        log = memory.broker.partitions.get("there", 0).log
        log.config.segment_bytes = 200
        for _ in range(3):
            assert send(memory, "there", bytes(100)) == 0
        files.errors["write"] = errno.ENOSPC
        requested = DeleteRecordsTopic(name="there", partitions=[DeleteRecordsPartition(partition_index=0, offset=3)])
        response = memory.client().ask(
            DeleteRecordsRequest(topics=[requested], timeout_ms=1000), 2, DeleteRecordsResponse
        )
        assert response.topics[0].partitions[0].error_code == E.KAFKA_STORAGE_ERROR
        assert (len(log.segments), log.log_start_offset) == (1, 3)
        files.errors.clear()
        response = memory.client().ask(
            DeleteRecordsRequest(topics=[requested], timeout_ms=1000), 2, DeleteRecordsResponse
        )
        assert (response.topics[0].partitions[0].error_code, response.topics[0].partitions[0].low_watermark) == (0, 3)


class TestReadError:
    def test_fails_the_fetch_and_nothing_else(self, memory: MemoryBroker, files: FailingFiles, caplog) -> None:
        log = memory.broker.partitions.get("there", 0).log
        log.segments.active.release()
        files.errors["read"] = errno.EIO
        for _ in range(3):
            assert read(memory, "there") == (E.KAFKA_STORAGE_ERROR, [])
        assert latest(memory, "there", timestamp=1) == E.KAFKA_STORAGE_ERROR
        assert (send(memory, "there"), send(memory, "here"), read(memory, "here")[0]) == (0, 0, 0)
        (line,) = errors(caplog)
        assert line.startswith("Cannot read there-0: [Errno 5] Input/output error")
        files.errors.clear()
        assert read(memory, "there") == (0, [b"x", b"x"])

    @pytest.mark.parametrize("size", [10, 100_000])
    def test_a_truncated_file_never_corrupts_the_response_stream(self, memory: MemoryBroker, size: int, caplog) -> None:
        """As many bytes as the frame's length says arrive, or an error, or the connection is closed."""
        assert send(memory, "there", bytes(size)) == 0
        log = memory.broker.partitions.get("there", 0).log
        client = memory.client()
        client.feed(client.frame(fetch(at(1), topic="there"), 12))
        end = Path(log.segments.active.stem + ".log").stat().st_size
        os.truncate(log.segments.active.stem + ".log", end - 5)
        second = memory.client()
        second.send(fetch(at(1), topic="there"), 12)
        if size < 16_000:
            (response,) = second.answers()
            assert response.responses[0].partitions[0].error_code == E.KAFKA_STORAGE_ERROR
            assert "Cannot read" in errors(caplog)[0]
        else:
            with pytest.raises(OSError, match="ended early"):
                second.answers()


class TestMissingDirectory:
    def test_acknowledges_no_lost_record(self, memory: MemoryBroker, tmp_path: Path, caplog) -> None:
        shutil.rmtree(tmp_path / "b")
        assert send(memory, "there") == E.KAFKA_STORAGE_ERROR
        assert send(memory, "here") == 0
        assert "the directory was removed" in errors(caplog)[0]

    def test_is_found_by_the_disk_check(self, memory: MemoryBroker, tmp_path: Path) -> None:
        (tmp_path / "b").rename(tmp_path / "c")
        check_disks(memory)
        assert send(memory, "there") == E.KAFKA_STORAGE_ERROR
        (tmp_path / "a").rename(tmp_path / "d")
        check_disks(memory)
        assert memory.broker.halt_reason == "no log directory is left"


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    return memory.client()


class TestClockJumps:
    """L12: deadlines use the monotonic clock, and no decision about files uses the wall clock."""

    @for_each("jump_ms", [86_400_000, -86_400_000, 3_600_000, -3_600_000, -(10**12)])
    def test_a_clock_jump_rolls_and_deletes_nothing(self, memory: MemoryBroker, jump_ms: int) -> None:
        memory.clock.now_ms += jump_ms
        now_ms = memory.clock.now_ms
        log = memory.broker.partitions.get("here", 0).log
        for number in range(3):
            request = produce(to(0, batch(b"%d" % number, timestamp=now_ms)), topic="here")
            assert answers(memory.client().ask(request, 9, ProduceResponse))[0].error_code == 0
        assert read(memory, "here") == (0, [b"x", b"0", b"1", b"2"])
        memory.clock.now_ms -= jump_ms
        request = produce(to(0, batch(b"back")), topic="here")
        code = answers(memory.client().ask(request, 9, ProduceResponse))[0].error_code
        assert code == 0
        assert len(log.segments) <= 2

    @pytest.mark.parametrize("jump_ms", [86_400_000, -86_400_000])
    def test_a_clock_jump_does_not_move_deadlines_of_fetches_and_flushes(self, tmp_path: Path, jump_ms: int) -> None:
        memory = MemoryBroker(tmp_path, {"barnabas.log.sync": "interval", "log.flush.interval.ms": "500"})
        memory.create_topic("t")
        reader = memory.client()
        reader.send(fetch(at(0), max_wait_ms=1000, min_bytes=1000), 12)
        send(memory, "t")
        memory.clock.now_ms += jump_ms
        memory.advance(0.6)
        assert memory.broker.partitions.get("t", 0).log.synced_offset == 1
        assert reader.answers() == []
        memory.advance(0.5)
        assert len(reader.answers()) == 1
        memory.close()


def test_a_start_whose_registration_cannot_be_synced_fails_with_one_sentence(
    tmp_path: Path, files: FailingFiles
) -> None:
    """The registration is the first write that is synced: its failure is the user's to see, not a traceback."""
    config = load({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)}, {}, None, "dev")
    files.errors_in = "__cluster_metadata-0/00000000000000000000.log"
    files.errors["sync"] = errno.EIO

    servers = []

    async def start() -> None:
        servers.append(Server(config, world=World(files=files)))
        servers[0].start()

    with pytest.raises(StartError, match=r"Cannot use the data directory .*Input/output error"):
        trio.run(start)
    (server,) = servers
    for listener in server._listeners:
        listener.socket.close()
    server.broker.log_dirs.release()
