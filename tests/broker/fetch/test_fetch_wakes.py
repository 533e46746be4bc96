"""What wakes a parked fetch, and what it reads then (KIP-98 for read_committed)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.storage.log import Log
from barnabas.wire.messages.fetch import FetchResponse
from tests.support.memory.broker import Client, MemoryBroker
from tests.support.requests.fetch import append, at, fetch, values
from tests.support.requests.transactions import FEW, TransactionalClient

READ_COMMITTED = 1


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryBroker]:
    broker = MemoryBroker(tmp_path / "data", FEW)
    broker.create_topic("t", 100)
    yield broker
    broker.close()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The directories of the logs that are read."""
    directories: list[str] = []
    original = Log.read

    def read(log: Log, *args: Any, **kwargs: Any) -> Any:
        directories.append(log.directory.rpartition("/")[2])
        return original(log, *args, **kwargs)

    monkeypatch.setattr(Log, "read", read)
    return directories


def _parked(memory: MemoryBroker, *indexes: int, **options: Any) -> Client:
    client = memory.client()
    partitions = [at(0, index) for index in indexes or range(100)]
    client.send(fetch(*partitions, max_wait_ms=10_000, **options), 12)
    assert client.answers() == []
    return client


def _sizes(client: Client) -> dict[int, int]:
    """By partition: the number of record bytes in the response, without empty partitions."""
    (response,) = client.answers()
    assert isinstance(response, FetchResponse)
    sizes = {partition.partition_index: len(partition.records or b"") for partition in response.responses[0].partitions}
    return {index: size for index, size in sizes.items() if size}


def test_a_commit_that_makes_min_bytes_visible_ends_the_wait(memory: MemoryBroker) -> None:
    producer = TransactionalClient(memory)
    assert producer.start() == 0
    client = _parked(memory, 0, isolation_level=READ_COMMITTED, min_bytes=1000)
    assert producer.produce(b"x" * 2000) == 0
    assert client.answers() == []
    assert producer.end() == 0
    assert _sizes(client)[0] > 2000


def test_a_commit_of_records_that_were_there_before_the_fetch_ends_the_wait(memory: MemoryBroker) -> None:
    producer = TransactionalClient(memory)
    assert producer.start() == 0
    assert producer.produce(b"x" * 2000) == 0
    client = _parked(memory, 0, isolation_level=READ_COMMITTED, min_bytes=1000)
    assert producer.end() == 0
    assert _sizes(client)[0] > 2000


def test_fewer_bytes_that_are_committed_do_not(memory: MemoryBroker) -> None:
    first, second = TransactionalClient(memory, "x"), TransactionalClient(memory, "y")
    assert first.start() == second.start() == 0
    client = _parked(memory, 0, isolation_level=READ_COMMITTED, min_bytes=1000)
    assert first.produce(b"x" * 100) == 0
    assert second.produce(b"y" * 5000) == 0
    assert first.end() == 0
    assert client.answers() == []
    assert second.end() == 0
    assert _sizes(client)[0] > 5000


def test_bytes_of_several_partitions_add_up(memory: MemoryBroker) -> None:
    producer = TransactionalClient(memory)
    assert producer.start() == 0
    committed = _parked(memory, isolation_level=READ_COMMITTED, min_bytes=1000)
    uncommitted = _parked(memory, min_bytes=1000)
    append(memory, "t", b"a" * 300, partition=3)
    assert producer.produce(b"x" * 400, partition=4) == 0
    assert committed.answers() == uncommitted.answers() == []
    append(memory, "t", b"a" * 300, partition=5)
    assert set(_sizes(uncommitted)) == {3, 4, 5}
    assert committed.answers() == []
    assert producer.end() == 0
    assert set(_sizes(committed)) == {3, 4, 5}


def test_a_wake_reads_only_the_partition_that_changed(memory: MemoryBroker, reads: list[str]) -> None:
    clients = [_parked(memory, isolation_level=isolation) for isolation in (0, 1) for _ in range(5)]
    reads.clear()
    append(memory, "t", b"a", partition=7)
    assert reads == ["t-7"] * 10
    assert [set(_sizes(client)) for client in clients] == [{7}] * 10


def test_a_commit_reads_only_the_partition_that_changed(memory: MemoryBroker, reads: list[str]) -> None:
    producer = TransactionalClient(memory)
    assert producer.start() == 0
    client = _parked(memory, isolation_level=READ_COMMITTED)
    reads.clear()
    assert producer.produce(b"a", partition=7) == 0
    assert reads == []
    assert producer.end() == 0
    assert reads == ["t-7"]
    assert set(_sizes(client)) == {7}


def test_records_below_min_bytes_are_not_read_with_every_append(memory: MemoryBroker, reads: list[str]) -> None:
    client = _parked(memory, min_bytes=1000)
    reads.clear()
    for partition in range(5):
        append(memory, "t", b"a" * 100, partition=partition)
    assert reads == []
    append(memory, "t", b"a" * 500, partition=9)
    assert sorted(set(reads)) == ["t-0", "t-1", "t-2", "t-3", "t-4", "t-9"]
    assert len(reads) == 6
    assert set(_sizes(client)) == {0, 1, 2, 3, 4, 9}


def test_a_parked_fetch_keeps_no_file_open(memory: MemoryBroker) -> None:
    append(memory, "t", b"a")
    client = _parked(memory, 0, min_bytes=1000)
    segment = memory.broker.partitions.get("t", 0).log.segments.active
    (woken,) = memory.broker.partitions.get("t", 0).waiters
    assert not any(response.records for _, response in woken._attempt.answers.values())  # type: ignore[attr-defined]
    segment.close_file()
    append(memory, "t", b"b" * 2000)
    (response,) = client.answers()
    assert isinstance(response, FetchResponse)
    assert [value for _, value in values(response.responses[0].partitions[0])] == [b"a", b"b" * 2000]


def test_the_end_of_a_segment_is_not_waited_for(memory: MemoryBroker) -> None:
    append(memory, "t", b"a")
    log = memory.broker.partitions.get("t", 0).log
    log.roll(memory.clock.now)
    append(memory, "t", b"b")
    response = memory.client().ask(fetch(at(0), max_wait_ms=5000, min_bytes=100_000), 12, FetchResponse)
    assert values(response.responses[0].partitions[0]) == [(0, b"a")]
