"""What changes while a fetch waits, for the disk, its turn or records: it is read again before the answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.apis.fetch import fetch as api
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchResponse, FetchResponsePartitionData
from barnabas.wire.messages.topics import DeleteTopicsRequest
from tests.support.disks.cold_files import ColdFiles
from tests.support.memory.broker import Client, MemoryBroker
from tests.support.requests.fetch import append, at, fetch, values

WAIT_MS = 60_000


@pytest.fixture
def files() -> ColdFiles:
    return ColdFiles()


@pytest.fixture
def memory(tmp_path: Path, files: ColdFiles) -> Iterator[MemoryBroker]:
    """A broker with a topic of which partition 0 has a segment that is not in memory, and partition 1 no record."""
    memory = MemoryBroker(tmp_path / "data", files=files)
    memory.create_topic("t", 40)
    log = memory.broker.partitions.get("t", 0).log
    append(memory, "t", b"a")
    log.roll(memory.clock.now)
    append(memory, "t", b"b")
    log.segments[0].release()
    memory.disk.is_paused = True
    yield memory
    memory.disk.is_paused = False
    memory.close()


def cold_fetch(memory: MemoryBroker, **options: int) -> Client:
    """A client whose fetch of both partitions waits for the disk; partition 1 was read already, and is at its end."""
    client = memory.client()
    client.send(fetch(at(0), at(0, 1, **options), min_bytes=1000, max_wait_ms=WAIT_MS), 12)
    assert len(memory.disk.held) == 1
    return client


def read_from_disk(memory: MemoryBroker, files: ColdFiles) -> None:
    while memory.disk.held:
        files.run(memory.disk)


def answer_of(client: Client) -> list[FetchResponsePartitionData]:
    (response,) = client.answers()
    assert isinstance(response, FetchResponse)
    assert response.error_code == 0
    return response.responses[0].partitions


def lead_in_epoch(memory: MemoryBroker, index: int, epoch: int) -> None:
    """A new leader epoch of this broker."""
    memory.broker.partitions.get("t", index).leader_epoch = epoch


def test_records_that_came_while_the_disk_was_read_end_the_wait(memory: MemoryBroker, files: ColdFiles) -> None:
    memory.broker.partitions.get("t", 0).log.segments[1].release()
    client = cold_fetch(memory)
    append(memory, "t", b"c" * 2000, partition=1)
    assert client.answers() == []
    read_from_disk(memory, files)
    first, second = answer_of(client)
    assert values(second) == [(0, b"c" * 2000)]
    assert first.error_code == 0


def test_a_topic_that_was_deleted_while_the_disk_was_read_is_an_error_of_its_partitions(memory: MemoryBroker) -> None:
    client = cold_fetch(memory)
    (lookup,) = memory.disk.held
    memory.disk.held.clear()
    memory.disk.is_paused = False
    memory.client().send(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 3)
    memory.disk.held.append(lookup)
    memory.disk.run()
    assert {partition.error_code for partition in answer_of(client)} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_leader_epoch_that_ended_while_the_disk_was_read_is_fenced(memory: MemoryBroker, files: ColdFiles) -> None:
    epoch = memory.broker.partitions.get("t", 1).leader_epoch
    client = cold_fetch(memory, current_leader_epoch=epoch)
    lead_in_epoch(memory, 1, epoch + 1)
    read_from_disk(memory, files)
    _, second = answer_of(client)
    assert second.error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_records_that_came_while_others_were_served_end_the_wait(
    memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "PARTITIONS_OF_A_STEP", 10)
    client = memory.client()
    client.send(fetch(*(at(0, index) for index in range(1, 40)), max_wait_ms=WAIT_MS), 12)
    append(memory, "t", b"c", partition=1)  # which was read with the first ten
    memory.advance(0)
    partitions = {partition.partition_index: partition for partition in answer_of(client)}
    assert values(partitions[1]) == [(0, b"c")]
    assert len(partitions) == 39


def test_nothing_has_changed_while_others_were_served_and_the_fetch_waits(
    memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "PARTITIONS_OF_A_STEP", 10)
    client = memory.client()
    client.send(fetch(*(at(0, index) for index in range(1, 40)), max_wait_ms=WAIT_MS), 12)
    memory.advance(0)
    assert client.answers() == []
    append(memory, "t", b"c", partition=1)
    memory.advance(0)
    assert len(answer_of(client)) == 39


def test_another_leader_epoch_ends_the_wait_of_a_parked_fetch(memory: MemoryBroker) -> None:
    partition = memory.broker.partitions.get("t", 1)
    client = memory.client()
    client.send(fetch(at(0, 1, current_leader_epoch=partition.leader_epoch), max_wait_ms=WAIT_MS), 12)
    lead_in_epoch(memory, 1, partition.leader_epoch + 1)
    append(memory, "t", b"c", partition=1)
    (response,) = answer_of(client)
    assert response.error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_parked_fetch_whose_session_was_closed_is_answered_in_it(memory: MemoryBroker) -> None:
    client = memory.client()
    client.send(fetch(at(0, 1), session_epoch=0), 12)
    (opened,) = client.answers()
    assert isinstance(opened, FetchResponse)
    client.send(fetch(session_epoch=1, session_id=opened.session_id, max_wait_ms=WAIT_MS), 12)
    memory.broker.fetch_sessions.close(opened.session_id)
    append(memory, "t", b"c", partition=1)
    (response,) = client.answers()
    assert isinstance(response, FetchResponse)
    assert response.session_id == opened.session_id
    assert values(response.responses[0].partitions[0]) == [(0, b"c")]
