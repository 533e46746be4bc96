"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords, DescribeProducers, DescribeLogDirs."""

from __future__ import annotations

import pytest

from barnabas.storage.read.timestamps import IN_PLACE_UNITS
from barnabas.wire.batches.records import HEADER_SIZE
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.wire.messages.log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest, DescribeLogDirsResponse
from barnabas.wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.transactions import (
    DescribeProducersRequest,
    DescribeProducersRequestTopicRequest,
    DescribeProducersResponse,
)
from tests.support.cases import for_each
from tests.support.logs.raw_batches import BASE_MS, bomb, raw_batch
from tests.support.memory.broker import Client, MemoryBroker, batch
from tests.support.requests.fetch import append, at, fetch
from tests.support.world import START_MS


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    memory.create_topic("t", 2)
    return memory.client()


def look_up(client: Client, timestamp: int, version: int = 11, **options) -> ListOffsetsPartitionResponse:
    partition = ListOffsetsPartition(
        partition_index=options.pop("partition", 0),
        timestamp=timestamp,
        current_leader_epoch=options.pop("current_leader_epoch", -1),
    )
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=options.pop("topic", "t"), partitions=[partition])], **options
    )
    return client.ask(request, version, ListOffsetsResponse).topics[0].partitions[0]


def found(partition: ListOffsetsPartitionResponse) -> tuple[int, int, int]:
    assert partition.error_code == 0
    return partition.offset, partition.timestamp, partition.leader_epoch


@for_each("version", range(1, 12))
def test_every_version_lists_earliest_and_latest(memory: MemoryBroker, client: Client, version: int) -> None:
    append(memory, "t", b"a", b"b", b"c")
    epoch = 0 if version >= 4 else -1
    assert found(look_up(client, -1, version)) == (3, -1, epoch)
    assert found(look_up(client, -2, version)) == (0, -1, epoch)
    assert found(look_up(client, START_MS + 1, version)) == (1, START_MS + 1, epoch)


def test_special_timestamps(memory: MemoryBroker, client: Client) -> None:
    """R23: without remote storage the earliest local offset is the earliest, nothing is tiered or pending upload."""
    append(memory, "t", b"a", b"b")
    memory.broker.partitions.get("t", 0).append(memoryview(bytearray(batch(b"old", timestamp=START_MS - 9))), 0.0)
    assert found(look_up(client, -3)) == (1, START_MS + 1, 0)
    assert found(look_up(client, -4)) == (0, -1, 0)
    assert found(look_up(client, -5)) == (-1, -1, -1)
    assert found(look_up(client, -6)) == (-1, -1, -1)


@for_each(("timestamp", "version"), [(-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11), (-100, 11)])
def test_a_special_timestamp_before_its_version_is_rejected(client: Client, timestamp: int, version: int) -> None:
    assert look_up(client, timestamp, version).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_an_empty_log_and_a_time_after_the_last_record(memory: MemoryBroker, client: Client) -> None:
    assert found(look_up(client, -3)) == (-1, -1, -1)
    assert found(look_up(client, 0)) == (-1, -1, -1)
    append(memory, "t", b"a")
    assert found(look_up(client, START_MS + 1)) == (-1, -1, -1)
    assert found(look_up(client, 0)) == (0, START_MS, 0)


def test_read_committed_ends_at_the_last_stable_offset(memory: MemoryBroker, client: Client) -> None:
    append(memory, "t", b"a")
    records = batch(b"x", timestamp=START_MS + 50, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    memory.broker.partitions.get("t", 0).append(memoryview(bytearray(records)), 0.0, origin="coordinator")
    assert look_up(client, -1).offset == 2
    assert look_up(client, -1, isolation_level=1).offset == 1
    assert look_up(client, START_MS + 50).offset == 1
    assert look_up(client, START_MS + 50, isolation_level=1).offset == -1


def test_errors_of_list_offsets(memory: MemoryBroker, client: Client) -> None:
    """R3."""
    assert look_up(client, -1, topic="missing").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert look_up(client, -1, partition=9).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert look_up(client, -1, current_leader_epoch=5).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    memory.broker.partitions.get("t", 0).leader_epoch = 6
    assert look_up(client, -1, current_leader_epoch=5).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert look_up(client, -1, current_leader_epoch=6).error_code == 0


def test_a_repeated_partition_is_rejected(client: Client) -> None:
    partitions = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in (0, 1, 0)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=partitions)])
    answers = client.ask(request, 7, ListOffsetsResponse).topics[0].partitions
    assert [(one.partition_index, one.error_code) for one in answers] == [(0, ErrorCode.INVALID_REQUEST), (1, 0)]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_end_offsets_of_leader_epochs(memory: MemoryBroker, client: Client, version: int) -> None:
    """R2: as requested by a client that checks for truncation (KIP-320)."""
    partition = memory.broker.partitions.get("t", 0)
    append(memory, "t", b"a", b"b")
    partition.leader_epoch = 3
    append(memory, "t", b"c")

    def ask(epoch: int, current: int = -1) -> tuple[int, int, int]:
        requested = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="t", partitions=[requested])])
        response = client.ask(request, version, OffsetForLeaderEpochResponse).topics[0].partitions[0]
        return response.error_code, response.leader_epoch, response.end_offset

    assert ask(0) == (0, 0, 2)
    assert ask(2) == (0, 0, 2)
    assert ask(3) == (0, 3, 3)
    assert ask(4) == (0, -1, -1)
    assert ask(0, current=2)[0] == ErrorCode.FENCED_LEADER_EPOCH
    assert ask(0, current=4)[0] == ErrorCode.UNKNOWN_LEADER_EPOCH


def delete(client: Client, offset: int, topic: str = "t", version: int = 2) -> DeleteRecordsPartitionResult:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=1000)
    return client.ask(request, version, DeleteRecordsResponse).topics[0].partitions[0]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_delete_records_moves_the_log_start_offset(memory: MemoryBroker, client: Client, version: int) -> None:
    """L6."""
    for _ in range(4):
        append(memory, "t", b"a")
    response = delete(client, 2, version=version)
    assert (response.error_code, response.low_watermark) == (0, 2)
    assert look_up(client, -2).offset == 2
    gone = client.ask(fetch(at(1)), 12, FetchResponse).responses[0].partitions[0]
    assert gone.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (delete(client, 1).error_code, delete(client, 1).low_watermark) == (0, 2)
    assert delete(client, -1).low_watermark == 4


def test_delete_records_beyond_the_high_watermark_is_rejected(memory: MemoryBroker, client: Client) -> None:
    """L6."""
    append(memory, "t", b"a")
    for offset in (2, -2):
        response = delete(client, offset)
        assert (response.error_code, response.low_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert delete(client, 0, topic="missing").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_delete_records_of_a_compacted_topic_is_rejected(memory: MemoryBroker, client: Client) -> None:
    memory.broker.partitions.get("t", 0).log.config.cleanup_policy = frozenset({"compact"})
    assert delete(client, 0).error_code == ErrorCode.POLICY_VIOLATION


def test_deleted_records_stay_deleted_after_a_restart(tmp_path) -> None:
    """L5."""
    memory = MemoryBroker(tmp_path)
    memory.create_topic("t")
    for _ in range(3):
        append(memory, "t", b"a")
    assert delete(memory.client(), 2).error_code == 0
    memory.close()
    memory = MemoryBroker(tmp_path)
    assert look_up(memory.client(), -2).offset == 2
    memory.close()


def test_producers_are_described(memory: MemoryBroker, client: Client) -> None:
    records = batch(b"a", b"b", producer_id=7, producer_epoch=1, base_sequence=0)
    memory.broker.partitions.get("t", 0).append(memoryview(bytearray(records)), 0.0)
    request = DescribeProducersRequest(
        topics=[DescribeProducersRequestTopicRequest(name="t", partition_indexes=[0, 1, 2])]
    )
    busy, idle, missing = client.ask(request, 0, DescribeProducersResponse).topics[0].partitions
    (producer,) = busy.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (7, 1, 1)
    assert (producer.last_timestamp, producer.current_txn_start_offset) == (START_MS + 1, -1)
    assert (idle.error_code, idle.active_producers) == (0, [])
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@for_each("version", range(1, 6))
def test_log_dirs_are_described_with_their_sizes(memory: MemoryBroker, client: Client, version: int) -> None:
    append(memory, "t", bytes(1000))
    (whole,) = client.ask(DescribeLogDirsRequest(topics=None), version, DescribeLogDirsResponse).results
    assert whole.error_code == 0
    sizes = {
        (topic.name, partition.partition_index): partition.partition_size
        for topic in whole.topics
        for partition in topic.partitions
    }
    assert sizes["t", 0] == memory.broker.partitions.get("t", 0).log.size_bytes > 1000
    assert sizes["t", 1] == 0
    if version >= 4:
        assert 0 < whole.usable_bytes <= whole.total_bytes
    request = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic="t", partitions=[1, 7])])
    (result,) = client.ask(request, version, DescribeLogDirsResponse).results
    assert [partition.partition_index for topic in result.topics for partition in topic.partitions] == [1]


def test_a_lookup_in_a_large_batch_is_done_between_the_turns(memory: MemoryBroker) -> None:
    """A batch of a few KB can have a million records, and its header may claim a later timestamp than they have."""
    memory.create_topic("t")
    count = 4 * IN_PLACE_UNITS
    lie = raw_batch(bomb(4, count)[HEADER_SIZE:], count, codec=4, max_ms=BASE_MS + 10)
    memory.broker.partitions.get("t", 0).append(memoryview(bytearray(lie)), 0.0)
    client, other = memory.client(), memory.client()
    partition = ListOffsetsPartition(partition_index=0, timestamp=BASE_MS + 5)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[partition])])
    client.send(request, 7)
    assert client.answers() == []
    partition.timestamp = -1
    assert other.ask(request, 7, ListOffsetsResponse).topics[0].partitions[0].offset == count
    memory.advance(0)
    (response,) = client.answers()
    assert isinstance(response, ListOffsetsResponse)
    assert (response.topics[0].partitions[0].error_code, response.topics[0].partitions[0].offset) == (0, -1)


def test_an_unknown_isolation_level_fails_each_partition_as_it_is_named(client: Client) -> None:
    twice = [ListOffsetsPartition(partition_index=0, timestamp=-1)] * 2
    for level in (-1, 2):
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=level, topics=[ListOffsetsTopic(name="t", partitions=twice)]
        )
        answers = client.ask(request, 11, ListOffsetsResponse).topics[0].partitions
        assert [answer.error_code for answer in answers] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2


def test_records_of_a_partition_named_twice_are_deleted_to_the_last_offset(
    memory: MemoryBroker, client: Client
) -> None:
    append(memory, "t", b"a", b"b", b"c")
    partitions = [DeleteRecordsPartition(partition_index=0, offset=offset) for offset in (99, 1)]
    request = DeleteRecordsRequest(timeout_ms=1000, topics=[DeleteRecordsTopic(name="t", partitions=partitions)])
    (answer,) = client.ask(request, 2, DeleteRecordsResponse).topics[0].partitions
    assert (answer.error_code, answer.low_watermark) == (0, 1)
