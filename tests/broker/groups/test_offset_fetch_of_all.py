"""OffsetFetch of all offsets of a group: in pieces, with what others change between them (KIP-447: stable offsets)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.apis.groups import offset_fetch as api
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups import offsets as o
from barnabas.wire.messages.topics import DeleteTopicsRequest
from tests.support.memory.broker import Client, MemoryBroker
from tests.support.requests.groups import commit, find
from tests.support.requests.transactions import TransactionalClient

PARTITIONS = 40
FEW = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "OFFSETS_OF_A_PIECE", 10)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryBroker]:
    """A broker with a group that has committed an offset of each partition."""
    broker = MemoryBroker(tmp_path / "data", FEW)
    broker.create_topic("t", PARTITIONS)
    client = broker.client()
    find(client)
    assert commit(client, "t", 1, partitions=range(PARTITIONS)) == {0}
    yield broker
    broker.close()


def begun(memory: MemoryBroker, version: int = 8, *, stable: bool = False) -> Client:
    """A client whose request has read its first ten offsets."""
    client = memory.client()
    if version >= 8:
        groups = [o.OffsetFetchRequestGroup(group_id="g", topics=None)]
        client.send(o.OffsetFetchRequest(groups=groups, require_stable=stable), version)
    else:
        client.send(o.OffsetFetchRequest(group_id="g", topics=None, require_stable=stable), version)
    assert client.answers() == []
    return client


def group_of(memory: MemoryBroker, client: Client) -> o.OffsetFetchResponseGroup:
    memory.advance(0)
    (response,) = client.answers()
    assert isinstance(response, o.OffsetFetchResponse)
    (group,) = response.groups
    return group


def offsets_of(group: o.OffsetFetchResponseGroup) -> dict[int, int]:
    assert group.error_code == 0
    return {
        partition.partition_index: partition.committed_offset
        for topic in group.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", [7, 8, 10])
def test_all_are_answered_and_others_are_served_between_the_pieces(memory: MemoryBroker, version: int) -> None:
    client = begun(memory, version)
    assert commit(memory.client(), "t", 100, partitions=[0]) == {0}  # it was read already
    memory.advance(0)
    (response,) = client.answers()
    assert isinstance(response, o.OffsetFetchResponse)
    topics = response.groups[0].topics if version >= 8 else response.topics
    offsets = {
        partition.partition_index: partition.committed_offset for topic in topics for partition in topic.partitions
    }
    assert offsets == dict.fromkeys(range(PARTITIONS), 1)


def test_an_offset_is_that_of_its_piece(memory: MemoryBroker) -> None:
    client = begun(memory)
    assert commit(memory.client(), "t", 100, partitions=[39]) == {0}
    assert offsets_of(group_of(memory, client))[39] == 100


def test_an_offset_that_is_deleted_before_its_piece_is_not_answered(memory: MemoryBroker) -> None:
    client = begun(memory)
    topic = o.OffsetDeleteRequestTopic(name="t", partitions=[o.OffsetDeleteRequestPartition(partition_index=39)])
    deleted = memory.client().ask(o.OffsetDeleteRequest(group_id="g", topics=[topic]), 0, o.OffsetDeleteResponse)
    assert deleted.error_code == 0
    assert 39 not in offsets_of(group_of(memory, client))


def test_an_offset_of_a_transaction_that_begins_before_its_piece_is_not_stable(memory: MemoryBroker) -> None:
    client = begun(memory, stable=True)
    producer = TransactionalClient(memory)
    assert producer.start() == 0
    assert producer.commit_offset(7, partition=39) == 0
    group = group_of(memory, client)
    errors = {item.partition_index: item.error_code for topic in group.topics for item in topic.partitions}
    assert {partition for partition, code in errors.items() if code} == {39}
    assert errors[39] == ErrorCode.UNSTABLE_OFFSET_COMMIT


def test_a_coordinator_that_was_loaded_again_meanwhile_is_none(memory: MemoryBroker) -> None:
    client = begun(memory)
    memory.broker.group_coordinators.reload("g", 0)
    memory.advance(0)
    assert group_of(memory, client).error_code in (
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    )


def test_the_answer_waits_for_what_was_committed_between_the_pieces(tmp_path: Path) -> None:
    memory = MemoryBroker(tmp_path / "synced", {**FEW, "barnabas.log.sync": "always"})
    memory.create_topic("t", PARTITIONS)
    other = memory.client()
    find(other)
    assert commit(other, "t", 1, partitions=range(PARTITIONS)) == {0}
    client = begun(memory)
    memory.flushes.is_paused = True
    topic = o.OffsetCommitRequestTopic(
        name="t", partitions=[o.OffsetCommitRequestPartition(partition_index=39, committed_offset=100)]
    )
    other.send(o.OffsetCommitRequest(group_id="g", topics=[topic]), 8)
    memory.advance(0)
    assert client.answers() == []
    memory.flushes.run()
    assert offsets_of(group_of(memory, client))[39] == 100
    memory.flushes.is_paused = False
    memory.close()


def test_a_topic_that_was_deleted_meanwhile_has_no_offsets_by_id(memory: MemoryBroker) -> None:
    client = begun(memory, 10)
    memory.client().send(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 3)
    memory.advance(0)
    assert group_of(memory, client).topics == []
