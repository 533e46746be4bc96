"""A broker process on a small file system that is full, read-only or removed; and without free file descriptors.

The file systems are tmpfs mounts; the tests are skipped where mounting is not permitted.
"""

from __future__ import annotations

import resource
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from barnabas.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.clients.failures.several_dirs import SeveralDirs
from tests.support.memory.broker import batch
from tests.support.processes.server import BarnabasServer
from tests.support.requests.fetch import at, fetch, values
from tests.support.requests.produce import produce, to
from tests.support.requests.raw_client import RawClient
from tests.support.waiting import wait_for

WAIT_S = 60.0
Mount = Callable[..., Path]
Start = Callable[..., BarnabasServer]
Connect = Callable[[BarnabasServer], RawClient]
BATCH_BYTES = 60_000
SMALL = {"log.segment.bytes": str(1 << 20), "offsets.topic.num.partitions": "1", "log.segment.delete.delay.ms": "0"}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """A factory of tmpfs mounts with given options, unmounted after the test."""
    mounted: list[Path] = []

    def make(options: str) -> Path:
        path = tmp_path / f"disk{len(mounted)}"
        path.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"mounting is refused here: {done.stderr.strip()}")
        mounted.append(path)
        return path

    yield make
    for path in mounted:
        subprocess.run(["umount", "-l", str(path)], check=False, capture_output=True)


@pytest.fixture
def connect() -> Iterator[Connect]:
    """A factory of clients that are closed after the test."""
    clients: list[RawClient] = []

    def run(server: BarnabasServer) -> RawClient:
        clients.append(RawClient(server.bootstrap))
        return clients[-1]

    yield run
    for client in clients:
        client.close()


@pytest.fixture
def start() -> Iterator[Start]:
    """A factory of brokers that are stopped after the test."""
    servers: list[BarnabasServer] = []

    def run(data_dir: Path, config: dict[str, str] | None = None) -> BarnabasServer:
        server = SeveralDirs(data_dir, config={**SMALL, **(config or {})})
        servers.append(server)
        server.start()
        return server

    yield run
    for server in servers:
        server.stop()


def send(client: RawClient, topic: str, number: int, size: int = BATCH_BYTES) -> int:
    """Produce a record that contains the number, and return the error code."""
    records = batch(b"%08d" % number + bytes(size), timestamp=now_ms())
    return client(produce(to(0, records), topic=topic), 9).responses[0].partition_responses[0].error_code


def fill(client: RawClient, topic: str, numbers: Iterator[int]) -> list[int]:
    """Produce until the disk is full, and return the acknowledged numbers."""
    acknowledged = []
    for number in numbers:
        code = send(client, topic, number)
        if code:
            assert code == E.KAFKA_STORAGE_ERROR
            return acknowledged
        acknowledged.append(number)
    raise AssertionError("the disk was never full")


def read_all(client: RawClient, topic: str) -> list[int]:
    """The numbers of all records of a topic, in order."""
    numbers: list[int] = []
    offset = 0
    while True:
        partition = client(fetch(at(offset, max_bytes=4 << 20), topic=topic), 11).responses[0].partitions[0]
        assert partition.error_code == 0
        records = values(partition)
        if not records:
            return numbers
        numbers += [int((value or b"")[:8]) for _, value in records]
        offset = records[-1][0] + 1


def first_record(client: RawClient, topic: str) -> tuple[int, bytes]:
    """The offset and the value of the first record of a topic from which retention may delete concurrently."""
    requested = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-2)])
    while True:
        earliest = client(ListOffsetsRequest(replica_id=-1, topics=[requested]), 7).topics[0].partitions[0].offset
        partition = client(fetch(at(earliest), topic=topic), 11).responses[0].partitions[0]
        if partition.error_code != E.OFFSET_OUT_OF_RANGE:
            return earliest, values(partition)[0][1] or b""


def counting() -> Iterator[int]:
    yield from range(10_000)


@pytest.mark.parametrize("policy", ["always", "os"])
def test_a_full_disk_fails_appends_but_not_reads_until_space_is_free(
    mount: Mount, start: Start, connect: Connect, policy: str
) -> None:
    disk = mount("size=6m")
    (disk / "ballast").write_bytes(bytes(2 << 20))
    server = start(disk, {"barnabas.log.sync": policy})
    client, other = connect(server), connect(server)
    client.create_topic("t")
    numbers = counting()
    acknowledged = fill(client, "t", numbers)
    assert len(acknowledged) > 30
    assert [send(client, "t", number) for number in (9000, 9001)] == [E.KAFKA_STORAGE_ERROR] * 2
    assert read_all(other, "t") == acknowledged
    sizes = sum(path.stat().st_size for path in (disk / "t-0").glob("*.log"))
    assert sizes == sum(len(batch(b"%08d" % 0 + bytes(BATCH_BYTES))) for _ in acknowledged)  # no partial write
    (disk / "ballast").unlink()
    acknowledged += fill(client, "t", numbers)
    assert read_all(other, "t") == acknowledged
    lines = [line for line in server.log().splitlines() if "No space left on device in the log directory" in line]
    assert lines
    assert f"{disk}" in lines[0]
    assert "Traceback" not in server.log()


def test_records_acknowledged_on_a_full_disk_survive_kill9(mount: Mount, start: Start, connect: Connect) -> None:
    disk = mount("size=5m")
    (disk / "ballast").write_bytes(bytes(1 << 20))
    server = start(disk)
    client = connect(server)
    client.create_topic("t")
    acknowledged = fill(client, "t", counting())
    server.kill9()
    (disk / "ballast").unlink()
    server.restart()
    client = connect(server)
    assert read_all(client, "t") == acknowledged
    assert send(client, "t", 9000) == 0


def test_a_first_start_on_a_full_disk_fails_with_one_sentence(mount: Mount, start: Start) -> None:
    disk = mount("size=1m")
    with pytest.raises(OSError, match="No space left"):
        (disk / "ballast").write_bytes(bytes(2 << 20))
    with pytest.raises(RuntimeError, match="exited with 2"):
        start(disk)
    log = disk.with_name(disk.name + ".log").read_text()
    assert log.strip() == f"barnabas serve: Cannot use the data directory {disk}: No space left on device"


def test_a_stop_on_a_full_disk_is_reported_and_acknowledged_records_are_kept(
    mount: Mount, start: Start, connect: Connect
) -> None:
    disk = mount("size=5m")
    (disk / "ballast").write_bytes(bytes(1 << 20))
    server = start(disk)
    client = connect(server)
    client.create_topic("t")
    acknowledged = fill(client, "t", counting())
    code = server.stop()
    assert "Traceback" not in server.log()
    assert (code == 0) == ("Not all logs could be closed" not in server.log())
    (disk / "ballast").unlink()
    server.restart()
    assert read_all(connect(server), "t") == acknowledged


def test_retention_frees_space_on_a_full_disk(mount: Mount, start: Start, connect: Connect) -> None:
    disk = mount("size=6m")
    server = start(disk, {"log.retention.check.interval.ms": "100"})
    client = connect(server)
    client.create_topic("t")
    numbers = counting()
    acknowledged = fill(client, "t", numbers)
    resource_ = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=2,
        resource_name="t",
        configs=[
            IncrementalAlterConfigsRequestAlterableConfig(
                name="retention.bytes", config_operation=0, value=str(2 << 20)
            )
        ],
    )
    (disk / "t-0" / "00000000000000000000.index").unlink(missing_ok=True)  # frees a block for the metadata record
    changed = client(IncrementalAlterConfigsRequest(resources=[resource_]), 1)
    assert changed.responses[0].error_code == 0
    wait_for(lambda: send(client, "t", next(numbers)) == 0, "space that retention has freed")
    earliest, value = first_record(client, "t")
    assert 0 < earliest < len(acknowledged)
    assert int(value[:8]) == acknowledged[earliest]


def test_a_read_only_file_system_is_one_sentence_and_exit_code_2(mount: Mount, start: Start) -> None:
    disk = mount("size=8m")
    server = start(disk)
    assert server.stop() == 0
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    server.log_path.unlink()
    server.spawn()
    assert server.process is not None
    assert server.process.wait(WAIT_S) == 2
    sentence = f"barnabas serve: Cannot use the data directory {disk}: {disk}/.lock: Read-only file system"
    assert server.log().strip() == sentence


@pytest.mark.parametrize("policy", ["always", "os"])
def test_a_data_directory_that_is_removed_stops_the_broker(
    tmp_path: Path, start: Start, connect: Connect, policy: str
) -> None:
    server = start(tmp_path / "data", {"barnabas.log.sync": policy})
    client = connect(server)
    client.create_topic("t")
    assert send(client, "t", 1) == 0
    shutil.rmtree(tmp_path / "data", ignore_errors=True)
    assert server.process is not None
    assert server.process.wait(WAIT_S) == 1
    assert "the directory was removed" in server.log()
    assert "stopping, since no log directory is left" in server.log()
    assert "Traceback" not in server.log()


def test_an_unmounted_log_directory_does_not_stop_the_other(
    mount: Mount, tmp_path: Path, start: Start, connect: Connect
) -> None:
    disk = mount("size=8m")
    first = tmp_path / "first"
    server = start(first, {"log.dirs": f"{first},{disk}"})
    client = connect(server)
    topics = ["a", "b", "c"]
    for topic in topics:
        client.create_topic(topic)
        assert send(client, topic, 1) == 0
    lost = [topic for topic in topics if (disk / f"{topic}-0").exists()]
    assert 0 < len(lost) < len(topics)
    subprocess.run(["umount", "-l", str(disk)], check=True)
    wait_for(
        lambda: all(send(client, topic, 2) == E.KAFKA_STORAGE_ERROR for topic in lost),
        "partitions of the unmounted directory that are offline",
    )
    for topic in set(topics) - set(lost):
        assert send(client, topic, 2) == 0
        assert read_all(client, topic) == [1, 2]
    assert f"has failed in the log directory {disk}" in server.log()
    assert server.stop() == 0


def test_without_file_descriptors_logs_work_and_connections_wait(
    tmp_path: Path, start: Start, connect: Connect
) -> None:
    server = start(tmp_path / "data")
    client = connect(server)
    client.create_topic("t")
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (60, 60))
    crowd = [socket.create_connection((server.host, server.port), timeout=5) for _ in range(80)]
    for number in range(40):  # two rolls, which open files
        assert send(client, "t", number) == 0
    assert len(list((tmp_path / "data" / "t-0").glob("*.log"))) > 1
    wait_for(lambda: "Cannot accept connections for now" in server.log(), "a line about connections that wait")
    for connection in crowd:
        connection.close()
    late = connect(server)
    assert read_all(late, "t") == list(range(40))
    assert "Traceback" not in server.log()
