"""L2: a partition whose log cannot be served is offline for every request, and the other partitions are served."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.wire.messages.log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from barnabas.wire.messages.metadata import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestTopicRequest,
    DescribeTopicPartitionsResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from barnabas.wire.messages.transactions import (
    DescribeProducersRequest,
    DescribeProducersRequestTopicRequest,
    DescribeProducersResponse,
)
from tests.support.memory.broker import Client, MemoryBroker, batch
from tests.support.requests.fetch import append, at, fetch, values

WHY = "the disk has lost a part of it"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryBroker]:
    """A broker that is the only replica of its partitions, other than the one of the other files of this room."""
    broker = MemoryBroker(tmp_path / "data")
    yield broker
    broker.close()


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    """A topic with two partitions, of which the first fails."""
    memory.create_topic("t", 2)
    for partition in (0, 1):
        append(memory, "t", b"a", partition=partition)
    memory.broker.partitions.get("t", 0).fail(WHY)
    memory.broker.loop.end_turn()
    return memory.client()


def produce_code(client: Client, partition: int, topic: str = "t") -> int:
    data = [PartitionProduceData(index=partition, records=batch(b"b"))]
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)])
    return client.ask(request, 9, ProduceResponse).responses[0].partition_responses[0].error_code


def test_every_request_of_an_offline_partition_is_answered_with_a_storage_error(client: Client) -> None:
    assert [produce_code(client, partition) for partition in (0, 1)] == [E.KAFKA_STORAGE_ERROR, 0]
    fetched = client.ask(fetch(at(0, 0), at(0, 1)), 12, FetchResponse).responses[0].partitions
    assert [partition.error_code for partition in fetched] == [E.KAFKA_STORAGE_ERROR, 0]
    assert [len(values(partition)) for partition in fetched] == [0, 2]
    requested = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in (0, 1)]
    offsets = client.ask(
        ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=requested)]),
        7,
        ListOffsetsResponse,
    )
    assert [item.error_code for item in offsets.topics[0].partitions] == [E.KAFKA_STORAGE_ERROR, 0]
    epochs = [OffsetForLeaderPartition(partition=index, leader_epoch=0) for index in (0, 1)]
    ends = client.ask(
        OffsetForLeaderEpochRequest(replica_id=-2, topics=[OffsetForLeaderTopic(topic="t", partitions=epochs)]),
        4,
        OffsetForLeaderEpochResponse,
    )
    assert [item.error_code for item in ends.topics[0].partitions] == [E.KAFKA_STORAGE_ERROR, 0]
    limits = [DeleteRecordsPartition(partition_index=index, offset=0) for index in (0, 1)]
    deleted = client.ask(
        DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=limits)], timeout_ms=1000),
        2,
        DeleteRecordsResponse,
    )
    assert [item.error_code for item in deleted.topics[0].partitions] == [E.KAFKA_STORAGE_ERROR, 0]
    producers = client.ask(
        DescribeProducersRequest(topics=[DescribeProducersRequestTopicRequest(name="t", partition_indexes=[0, 1])]),
        0,
        DescribeProducersResponse,
    )
    assert [item.error_code for item in producers.topics[0].partitions] == [E.KAFKA_STORAGE_ERROR, 0]
    assert WHY in (producers.topics[0].partitions[0].error_message or "")


def test_metadata_shows_an_offline_partition_without_leader(client: Client) -> None:
    response = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12, MetadataResponse)
    offline, online = sorted(response.topics[0].partitions, key=lambda partition: partition.partition_index)
    assert (offline.error_code, offline.leader_id, offline.offline_replicas) == (E.LEADER_NOT_AVAILABLE, -1, [1])
    assert (online.error_code, online.leader_id, online.offline_replicas) == (0, 1, [])
    described = client.ask(
        DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsRequestTopicRequest(name="t")], response_partition_limit=10
        ),
        0,
        DescribeTopicPartitionsResponse,
    )
    leaders = [(item.leader_id, item.offline_replicas) for item in described.topics[0].partitions]
    assert leaders == [(-1, [1]), (1, [])]
    sizes = client.ask(DescribeLogDirsRequest(topics=None), 4, DescribeLogDirsResponse)
    assert [item.partition_index for item in sizes.results[0].topics[0].partitions] == [1]


def test_a_delayed_fetch_is_answered(memory: MemoryBroker) -> None:
    memory.create_topic("t")
    client = memory.client()
    client.send(fetch(at(0), max_wait_ms=30_000), 12)
    assert client.answers() == []
    memory.broker.partitions.get("t", 0).fail(WHY)
    memory.broker.loop.end_turn()
    (response,) = client.answers()
    assert response.responses[0].partitions[0].error_code == E.KAFKA_STORAGE_ERROR  # type: ignore[attr-defined]


def test_the_log_line_says_what_happened_and_what_to_do(
    memory: MemoryBroker, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        memory.broker.partitions.get("t", 1).fail(WHY)
    (record,) = caplog.records
    assert f"Partition t-1 is offline, the others are served: {WHY}. " in record.getMessage()
    assert "barnabas storage check" in record.getMessage()


def corrupt(data: Path, partition: str) -> None:
    (data / partition / "leader-epoch-checkpoint").write_text("not a checkpoint\n")


def test_a_log_that_cannot_be_loaded_is_offline_until_it_can(tmp_path: Path) -> None:
    """Files and checkpoints survive clean stops, or a later start would treat the damage as a torn tail."""
    data = tmp_path / "data"
    first = MemoryBroker(data)
    first.create_topic("t", 2)
    append(first, "t", b"kept")
    first.close()
    good = (data / "t-0" / "leader-epoch-checkpoint").read_bytes()
    points = (data / "recovery-point-offset-checkpoint").read_text()
    corrupt(data, "t-0")
    for _ in range(2):
        broker = MemoryBroker(data)
        assert [produce_code(broker.client(), partition) for partition in (0, 1)] == [E.KAFKA_STORAGE_ERROR, 0]
        broker.close()
        assert "t 0 1" in (data / "recovery-point-offset-checkpoint").read_text().splitlines()
        assert not (data / ".kafka_cleanshutdown").exists()
    assert "t 0 1" in points.splitlines()
    (data / "t-0" / "leader-epoch-checkpoint").write_bytes(good)
    broker = MemoryBroker(data)
    response = broker.client().ask(fetch(at(0)), 12, FetchResponse).responses[0].partitions[0]
    assert values(response) == [(0, b"kept")]
    broker.close()
    assert (data / ".kafka_cleanshutdown").exists()


def test_log_that_has_lost_synced_records_is_offline(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = tmp_path / "data"
    first = MemoryBroker(data)
    first.create_topic("t", 2)
    append(first, "t", b"lost")
    first.close()
    path = data / "t-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1])
    with caplog.at_level(logging.ERROR):
        broker = MemoryBroker(data)
    assert [produce_code(broker.client(), partition) for partition in (0, 1)] == [E.KAFKA_STORAGE_ERROR, 0]
    broker.close()
    (record,) = caplog.records
    assert "t-0 is offline" in record.getMessage()
    assert f"{path} is damaged at byte 0" in record.getMessage()


def test_damage_found_by_a_fetch_fails_only_fetches_that_cross_it(memory: MemoryBroker, tmp_path: Path) -> None:
    """R28: a single node goes on with what it has."""
    memory.create_topic("t", 2)
    for _ in range(2):
        append(memory, "t", b"a")
    path = tmp_path / "data" / "t-0" / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[16] = 0
    path.write_bytes(content)
    client = memory.client()
    for _ in range(2):
        response = client.ask(fetch(at(1)), 12, FetchResponse).responses[0].partitions[0]
        assert response.error_code == E.KAFKA_STORAGE_ERROR
    assert not memory.broker.partitions.offline
    assert [produce_code(client, partition) for partition in (0, 1)] == [0, 0]
    assert "damaged at byte 0" in next(iter(memory.broker.partitions.local_failures.damaged.values()))


def test_recovery_logs_what_it_truncated(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = tmp_path / "data"
    killed = MemoryBroker(data)
    killed.create_topic("t")
    append(killed, "t", b"torn")
    killed.broker.log_dirs.release()
    path = data / "t-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1])
    size = path.stat().st_size
    with caplog.at_level(logging.WARNING):
        MemoryBroker(data).close()
    assert f"Recovery of t-0 has cut {size} bytes that were not synced, from offset 0 on" in caplog.text


def test_topic_with_an_offline_partition_can_be_deleted(memory: MemoryBroker, client: Client, tmp_path: Path) -> None:
    response = client.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5, DeleteTopicsResponse)
    assert response.responses[0].error_code == 0
    assert not [path for path in (tmp_path / "data").iterdir() if path.name in ("t-0", "t-1")]
    memory.create_topic("t", 2)
    assert [produce_code(client, partition) for partition in (0, 1)] == [0, 0]


def test_group_whose_partition_is_offline_has_no_coordinator(memory: MemoryBroker) -> None:
    client = memory.client()
    find = g.FindCoordinatorRequest(coordinator_keys=["g"])
    assert client.ask(find, 6, g.FindCoordinatorResponse).coordinators[0].error_code == 0
    heartbeat = g.HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert client.ask(heartbeat, 4, g.HeartbeatResponse).error_code == E.UNKNOWN_MEMBER_ID
    for partition in list(memory.broker.partitions):
        if partition.topic == "__consumer_offsets":
            partition.fail(WHY)
    memory.broker.loop.end_turn()
    assert client.ask(heartbeat, 4, g.HeartbeatResponse).error_code == E.NOT_COORDINATOR
    assert client.ask(find, 6, g.FindCoordinatorResponse).coordinators[0].error_code == E.COORDINATOR_NOT_AVAILABLE


def test_a_partition_stays_offline_when_no_log_directory_works_any_more(memory: MemoryBroker) -> None:
    """Found by the simulation: a partition that could not be made is tried again after its only directory failed."""
    broker = memory.broker
    memory.create_topic("new", 1)
    topic = broker.image.topics["new"]
    broker.partitions.take_offline(broker.partitions.get("new", 0), "test")
    broker.partitions._offline.to_reopen[topic.topic_id, 0] = None
    broker.log_dirs._log_dir_of.pop(("new", 0))  # as if its directory could not be made
    broker.log_dirs.dirs[0].failure = "Input/output error"
    broker.partitions.reopen(broker.image)
    assert ("new", 0) in broker.partitions.offline
