"""Records that are not in the page cache are read in threads: the event loop waits for no disk."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.net import page_cache
from barnabas.broker.net.connection import Connection
from barnabas.storage.files import File, Files, FileSlice
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchResponse
from tests.broker.turns import Turns, requests
from tests.support.disks.cold_files import ColdFiles
from tests.support.memory.broker import MemoryBroker
from tests.support.requests.fetch import append, at, fetch
from tests.support.requests.fetch import values as records_of
from tests.support.world import Flushes

MB = 1 << 20
SIZE = 5 * MB + 12345


class ColdDisk(Flushes):
    """A disk of which nothing is in the page cache until it was read by a thread, which the test runs."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.is_paused = True
        self.cached: set[int] = set()
        """The first bytes of the pages that were read."""
        self.cold_sends = 0
        """How many times the event loop has sent what was not in the page cache."""
        self.sent = 0
        sendfile = os.sendfile

        def send(out: int, fd: int, offset: int, count: int) -> int:
            self.cold_sends += not self.is_cached(fd, offset, offset + count)
            sent = sendfile(out, fd, offset, count)
            self.sent += sent
            return sent

        patch.setattr(page_cache, "is_cached", self.is_cached)
        patch.setattr(page_cache, "read_into_cache", self.read)
        patch.setattr(os, "sendfile", send)

    def is_cached(self, _fd: int, offset: int, end: int) -> bool:
        return self.cached.issuperset(range(offset // 4096, (end - 1) // 4096 + 1))

    def read(self, _file: object, offset: int, end: int) -> None:
        self.cached.update(range(offset // 4096, (end - 1) // 4096 + 1))


class SliceTurns(Turns):
    """A reactor that answers a request of cost 1 with a slice of a file."""

    file: File

    def _dispatch(self, connection: Connection, frame: memoryview) -> None:
        if frame[-1] != 1:
            super()._dispatch(connection, frame)
            return
        connection.out.append(struct.pack(">i", SIZE))
        connection.out.append(FileSlice(self.file, 0, SIZE))
        connection.out_bytes += SIZE + 4


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> ColdDisk:
    return ColdDisk(monkeypatch)


@pytest.fixture
def turns(disk: ColdDisk, tmp_path: Path) -> Iterator[SliceTurns]:
    files = Files()
    path = str(tmp_path / "log")
    turns = SliceTurns(disk=disk)
    turns.file = files.open(path)
    files.write_at(turns.file, os.urandom(SIZE), 0)
    yield turns
    turns.close()


def test_everybody_is_served_while_a_slice_is_read(turns: SliceTurns, disk: ColdDisk) -> None:
    reader, other = turns.connect(), turns.connect()
    reader.setblocking(False)
    reader.sendall(requests(1, 0.001))
    turns.until(lambda: len(disk.held) == 1)
    for count in range(1, 20):
        other.sendall(requests(1, 0.1))
        turns.until(lambda count=count: turns.count(other) == count)
        assert disk.sent == 0
    received, data = 0, b""
    while received < SIZE + 4:
        if disk.held:
            disk.run()
        turns.reactor.turn()
        try:
            data = reader.recv(MB)
        except BlockingIOError:
            continue
        received += len(data)
    assert disk.cold_sends == 0
    assert disk.sent == SIZE
    other.sendall(requests(1, 0.1))
    turns.until(lambda: turns.count(other) == 20)


def test_a_connection_that_waits_for_the_disk_costs_nothing(turns: SliceTurns, disk: ColdDisk) -> None:
    reader = turns.connect()
    reader.sendall(requests(1, 0.001))
    turns.until(lambda: len(disk.held) == 1)
    assert not any(turns.reactor.turn() for _ in range(5))


def test_a_connection_may_be_closed_while_its_slice_is_read(turns: SliceTurns, disk: ColdDisk) -> None:
    reader = turns.connect()
    reader.sendall(requests(1, 0.001))
    turns.until(lambda: len(disk.held) == 1)
    turns.reactor._close_all()
    disk.run()
    assert disk.sent == disk.cold_sends == 0


def test_few_slices_are_read_at_a_time(turns: SliceTurns, disk: ColdDisk) -> None:
    readers = [turns.connect() for _ in range(page_cache.MAX_READS + 5)]
    for reader in readers:
        reader.sendall(requests(1, 0.001))
    turns.until(lambda: len(turns.reactor._read_ahead._waiting) == 5)
    assert len(disk.held) == page_cache.MAX_READS
    disk.run()
    assert len(disk.held) == page_cache.MAX_READS


def test_without_a_thread_the_slice_is_sent_at_once(
    turns: SliceTurns, disk: ColdDisk, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def submit(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(disk, "submit", submit)
    reader = turns.connect()
    reader.sendall(requests(1, 0.001))
    turns.until(lambda: disk.sent > 0)
    assert "can't start new thread" in caplog.text


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux answers")
def test_the_page_cache_is_asked(tmp_path: Path) -> None:
    files = Files()
    file = files.open(str(tmp_path / "log"))
    files.write_at(file, bytes(3 * MB), 0)
    assert page_cache.is_cached(file.fd, 0, 3 * MB)
    files.sync(file)
    os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)
    was_cached = page_cache.is_cached(file.fd, MB, 2 * MB)  # file systems in memory keep it
    slice_ = FileSlice(file, 2 * MB, 1000)
    assert (slice_.read_from_cache() is None) == (not was_cached)
    page_cache.read_into_cache(file, MB, 2 * MB)
    page_cache.read_into_cache(file, 2 * MB, 3 * MB)
    assert page_cache.is_cached(file.fd, MB, 2 * MB)
    assert slice_.read_from_cache() == bytes(1000)


def test_a_system_that_cannot_tell_sends_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = Files()
    file = files.open(str(tmp_path / "log"))
    files.write_at(file, b"abc", 0)

    def refuse(*_: Any) -> int:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "preadv", refuse)
    assert page_cache.is_cached(file.fd, 0, 3)
    assert FileSlice(file, 0, 3).read_from_cache() == b"abc"


@pytest.fixture
def files() -> ColdFiles:
    return ColdFiles()


@pytest.fixture
def memory(tmp_path: Path, files: ColdFiles) -> Iterator[MemoryBroker]:
    """A broker with a topic of two partitions with two segments each, of which the first is not open."""
    memory = MemoryBroker(tmp_path / "data", files=files)
    memory.create_topic("t", 2)
    for partition in (0, 1):
        log = memory.broker.partitions.get("t", partition).log
        for _ in range(20):
            append(memory, "t", b"a" * 1000, partition=partition)
        log.roll(memory.clock.now)
        append(memory, "t", b"b", partition=partition)
        log.segments[0].release()
    memory.disk.is_paused = True
    files.waits.clear()
    yield memory
    memory.disk.is_paused = False
    memory.close()


def test_the_lookups_of_a_cold_fetch_wait_in_a_thread(memory: MemoryBroker, files: ColdFiles) -> None:
    client = memory.client()
    client.send(fetch(at(15, max_bytes=1), at(0, 1)), 12)
    assert client.answers() == []
    assert len(memory.disk.held) == 1
    files.run(memory.disk)
    (response,) = client.answers()
    assert isinstance(response, FetchResponse)
    first, second = response.responses[0].partitions
    assert [offset for offset, _ in records_of(first)] == [15]
    assert [offset for offset, _ in records_of(second)] == list(range(20))
    assert files.waits == []


def test_a_lookup_in_an_open_segment_waits_in_a_thread(memory: MemoryBroker, files: ColdFiles) -> None:
    client = memory.client()
    for offset in (15, 3):
        client.send(fetch(at(offset)), 12)
        files.run(memory.disk)
        (response,) = client.answers()
        assert isinstance(response, FetchResponse)
        assert records_of(response.responses[0].partitions[0])[0][0] == offset
    assert files.waits == []
    again = client.ask(fetch(at(3)), 12, FetchResponse)
    assert records_of(again.responses[0].partitions[0])[0][0] == 3


def test_the_lookup_of_a_fetch_that_is_known_waits_in_a_thread(memory: MemoryBroker, files: ColdFiles) -> None:
    client = memory.client()
    log = memory.broker.partitions.get("t", 0).log
    for offset in (15, 3, 7, 11):
        log.segments[0].release()
        client.send(fetch(at(offset)), 12)
        assert client.answers() == []
        files.run(memory.disk)
        (response,) = client.answers()
        assert isinstance(response, FetchResponse)
        assert records_of(response.responses[0].partitions[0])[0][0] == offset
    assert files.waits == []


def test_a_cold_fetch_may_wait_for_records_afterwards(memory: MemoryBroker, files: ColdFiles) -> None:
    client = memory.client()
    client.send(fetch(at(0), at(21, 1), min_bytes=30_000, max_wait_ms=5000), 12)
    files.run(memory.disk)
    (response,) = client.answers()  # the segment ends there
    assert isinstance(response, FetchResponse)
    client.send(fetch(at(20), at(21, 1), min_bytes=2000, max_wait_ms=5000), 12)
    while memory.disk.held:
        files.run(memory.disk)
    assert client.answers() == []
    append(memory, "t", b"c" * 2000, partition=1)
    assert len(client.answers()) == 1


def test_a_failure_of_the_thread_is_the_answer_of_the_partition(
    memory: MemoryBroker, files: ColdFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> bytes:
        raise OSError(5, "injected")

    client = memory.client()
    client.send(fetch(at(15), at(20, 1)), 12)
    with monkeypatch.context() as patch:
        patch.setattr(ColdFiles, "read_file", fails)
        work, then = memory.disk.held.pop(0)
        try:
            work()
        except OSError as error:
            then(error)
    (response,) = client.answers()
    assert isinstance(response, FetchResponse)
    assert [partition.error_code for partition in response.responses[0].partitions] == [
        ErrorCode.KAFKA_STORAGE_ERROR,
        0,
    ]


def test_a_client_may_disconnect_meanwhile(memory: MemoryBroker, files: ColdFiles) -> None:
    client = memory.client()
    client.send(fetch(at(15), max_wait_ms=5000, min_bytes=10_000_000), 12)
    client.connection.close()
    files.run(memory.disk)
    assert not memory.broker.partitions.get("t", 0).waiters
