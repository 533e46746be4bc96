"""Fetch: long polls, limits, isolation, epochs, topic ids, errors of single partitions."""

from __future__ import annotations

import pytest

from barnabas.wire.batches.records import iter_batches
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestReplicaState,
    FetchResponse,
)
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse
from tests.support.cases import for_each
from tests.support.memory.broker import Client, MemoryBroker, batch
from tests.support.requests.fetch import append, at, fetch, values
from tests.support.world import START_MS


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    memory.create_topic("t", 3)
    return memory.client()


@for_each("version", range(4, 13))
def test_every_version_by_name_reads_what_was_written(memory: MemoryBroker, client: Client, version: int) -> None:
    append(memory, "t", b"a", b"b")
    request = fetch(at(0))
    response = client.ask(request, version, FetchResponse).responses[0]
    assert response.topic == "t"
    partition = response.partitions[0]
    assert (partition.error_code, partition.high_watermark, partition.last_stable_offset) == (0, 2, 2)
    assert values(partition) == [(0, b"a"), (1, b"b")]


@for_each("version", range(13, 19))
def test_every_version_by_id_reads_what_was_written(memory: MemoryBroker, client: Client, version: int) -> None:
    append(memory, "t", b"a", b"b")
    topic_id = memory.broker.image.topics["t"].topic_id
    response = client.ask(fetch(at(0), topic_id=topic_id), version, FetchResponse).responses[0]
    assert response.topic_id == topic_id
    assert values(response.partitions[0]) == [(0, b"a"), (1, b"b")]


def test_an_unknown_topic_id_is_an_error(client: Client) -> None:
    """R22."""
    response = client.ask(fetch(at(0), topic_id=b"x" * 16), 13, FetchResponse)
    assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(
    ("partition", "code"),
    [
        (at(0, partition=9), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (at(5), ErrorCode.OFFSET_OUT_OF_RANGE),
        (at(-1), ErrorCode.OFFSET_OUT_OF_RANGE),
        (at(0, current_leader_epoch=99), ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_an_error_is_reported_for_its_partition_only(
    memory: MemoryBroker, client: Client, partition: FetchRequestFetchPartition, code: ErrorCode
) -> None:
    append(memory, "t", b"a", partition=1)
    response = client.ask(fetch(partition, at(0, partition=1), max_wait_ms=1000), 12, FetchResponse)
    wrong, right = response.responses[0].partitions
    assert wrong.error_code == code
    assert wrong.high_watermark == -1
    assert values(right) == [(0, b"a")]


def test_an_older_leader_epoch_is_fenced(memory: MemoryBroker, client: Client) -> None:
    """R3."""
    memory.broker.partitions.get("t", 0).leader_epoch = 5
    response = client.ask(fetch(at(0, current_leader_epoch=4)), 12, FetchResponse)
    assert response.responses[0].partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_long_poll_ends_with_an_append(memory: MemoryBroker, client: Client) -> None:
    client.send(fetch(at(0), max_wait_ms=60_000), 12)
    assert client.answers() == []
    append(memory, "t", b"now")
    (response,) = client.answers()
    assert isinstance(response, FetchResponse)
    assert values(response.responses[0].partitions[0]) == [(0, b"now")]


def test_a_long_poll_is_not_ended_by_another_partition(memory: MemoryBroker, client: Client) -> None:
    client.send(fetch(at(0), max_wait_ms=60_000), 12)
    append(memory, "t", b"elsewhere", partition=1)
    assert client.answers() == []


def test_a_long_poll_ends_at_max_wait(memory: MemoryBroker, client: Client) -> None:
    client.send(fetch(at(0), max_wait_ms=500), 12)
    memory.advance(0.499)
    assert client.answers() == []
    memory.advance(0.001)
    (response,) = client.answers()
    assert isinstance(response, FetchResponse)
    assert values(response.responses[0].partitions[0]) == []


def test_a_long_poll_waits_for_min_bytes_over_all_its_partitions(memory: MemoryBroker, client: Client) -> None:
    size = len(batch(b"12345"))
    client.send(fetch(at(0), at(0, partition=1), max_wait_ms=60_000, min_bytes=2 * size + 1), 12)
    append(memory, "t", b"12345")
    append(memory, "t", b"12345", partition=1)
    assert client.answers() == []
    append(memory, "t", b"12345")
    (response,) = client.answers()
    assert isinstance(response, FetchResponse)
    assert [len(values(partition)) for partition in response.responses[0].partitions] == [2, 1]


def test_appends_of_one_turn_wake_a_reader_once(memory: MemoryBroker, client: Client) -> None:
    client.send(fetch(at(0), max_wait_ms=60_000), 12)
    producer = memory.client()
    frames = b"".join(
        producer.frame(
            ProduceRequest(
                acks=1,
                topic_data=[
                    TopicProduceData(
                        name="t", partition_data=[PartitionProduceData(index=0, records=batch(b"%d" % number))]
                    )
                ],
            ),
            9,
        )
        for number in range(5)
    )
    producer.feed(frames)
    (response,) = client.answers()
    assert isinstance(response, FetchResponse)
    assert len(values(response.responses[0].partitions[0])) == 5


def test_a_deleted_topic_ends_the_long_poll(memory: MemoryBroker, client: Client) -> None:
    client.send(fetch(at(0), max_wait_ms=60_000), 12)
    deleted = memory.client().ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 3, DeleteTopicsResponse)
    assert deleted.responses[0].error_code == 0
    memory.broker.loop.end_turn()
    (response,) = client.answers()
    assert isinstance(response, FetchResponse)
    assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_first_batch_is_whole_even_beyond_every_limit(memory: MemoryBroker, client: Client) -> None:
    """KIP-74."""
    append(memory, "t", bytes(5000))
    append(memory, "t", bytes(5000), partition=1)
    response = client.ask(fetch(at(0, max_bytes=10), at(0, partition=1, max_bytes=10), max_bytes=10), 12, FetchResponse)
    first, second = response.responses[0].partitions
    assert len(values(first)) == 1
    assert values(second) == []


def test_max_bytes_limits_the_response(memory: MemoryBroker, client: Client) -> None:
    size = len(batch(bytes(1000)))
    for partition in range(3):
        for _ in range(4):
            append(memory, "t", bytes(1000), partition=partition)
    request = fetch(*[at(0, partition=partition) for partition in range(3)], max_bytes=6 * size)
    response = client.ask(request, 12, FetchResponse)
    assert [len(values(partition)) for partition in response.responses[0].partitions] == [4, 2, 0]


def test_fetch_max_bytes_of_the_broker_limits_it_too(tmp_path) -> None:
    memory = MemoryBroker(tmp_path, {"fetch.max.bytes": "1024"})
    memory.create_topic("t")
    for _ in range(10):
        append(memory, "t", bytes(400))
    response = memory.client().ask(fetch(at(0)), 12, FetchResponse)
    assert len(values(response.responses[0].partitions[0])) == 2
    memory.close()


def test_an_offset_inside_a_batch_gives_the_whole_batch(memory: MemoryBroker, client: Client) -> None:
    append(memory, "t", b"a", b"b", b"c")
    response = client.ask(fetch(at(1)), 12, FetchResponse)
    assert values(response.responses[0].partitions[0])[0] == (0, b"a")


def test_an_open_transaction_holds_back_only_read_committed(memory: MemoryBroker, client: Client) -> None:
    """R15."""
    append(memory, "t", b"a")
    memory.broker.partitions.get("t", 0).append(
        memoryview(bytearray(batch(b"open", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))),
        0.0,
        origin="coordinator",
    )
    uncommitted = client.ask(fetch(at(0)), 12, FetchResponse).responses[0].partitions[0]
    committed = client.ask(fetch(at(0), isolation_level=1), 12, FetchResponse).responses[0].partitions[0]
    assert len(values(uncommitted)) == 2
    assert uncommitted.aborted_transactions is None
    assert len(values(committed)) == 1
    assert committed.aborted_transactions == []
    assert (committed.high_watermark, committed.last_stable_offset) == (2, 1)


def test_a_read_committed_long_poll_waits_while_a_transaction_is_open(memory: MemoryBroker, client: Client) -> None:
    client.send(fetch(at(0), isolation_level=1, max_wait_ms=1000), 12)
    memory.broker.partitions.get("t", 0).append(
        memoryview(bytearray(batch(b"open", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))),
        0.0,
        origin="coordinator",
    )
    memory.broker.loop.end_turn()
    assert client.answers() == []
    memory.advance(1)
    assert len(client.answers()) == 1


def test_a_diverging_epoch_is_reported(memory: MemoryBroker, client: Client) -> None:
    """KIP-595, R5: a last fetched epoch that ended earlier here returns that epoch and its end, no records."""
    partition = memory.broker.partitions.get("t", 0)
    append(memory, "t", b"a", b"b")
    partition.leader_epoch = 3
    append(memory, "t", b"c")
    response = client.ask(fetch(at(3, last_fetched_epoch=0), max_wait_ms=60_000), 12, FetchResponse)
    fetched = response.responses[0].partitions[0]
    assert (fetched.diverging_epoch.epoch, fetched.diverging_epoch.end_offset) == (0, 2)
    assert values(fetched) == []
    right = client.ask(fetch(at(2, last_fetched_epoch=0)), 12, FetchResponse).responses[0].partitions[0]
    assert right.diverging_epoch.epoch == -1
    assert values(right) == [(2, b"c")]


def test_a_fetch_of_an_unknown_follower_is_rejected(memory: MemoryBroker, client: Client) -> None:
    """NOT_LEADER_OR_FOLLOWER; UNKNOWN_LEADER_EPOCH if it names the epoch, since the leader may learn of it later."""
    old = client.ask(fetch(at(0), replica_id=2), 4, FetchResponse)
    assert old.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    state = FetchRequestReplicaState(replica_id=2)
    topic_id = memory.broker.partitions.get("t", 0).topic_id
    new = client.ask(fetch(at(0, current_leader_epoch=0), topic_id=topic_id, replica_state=state), 15, FetchResponse)
    assert new.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_fetch_without_partitions_is_answered_immediately(client: Client) -> None:
    assert client.ask(FetchRequest(max_wait_ms=60_000, min_bytes=1), 12, FetchResponse).responses == []


def test_records_have_the_leader_epoch_of_their_append(memory: MemoryBroker, client: Client) -> None:
    """R1."""
    memory.broker.partitions.get("t", 0).leader_epoch = 4
    append(memory, "t", b"a")
    data = bytes(client.ask(fetch(at(0)), 12, FetchResponse).responses[0].partitions[0].records or b"")
    (record_batch,) = iter_batches(memoryview(data))
    assert record_batch.partition_leader_epoch == 4
    assert record_batch.base_timestamp == START_MS
    assert record_batch.crc_is_valid()


def test_negative_limits_fail_only_where_there_are_records(memory: MemoryBroker, client: Client) -> None:
    append(memory, "t", b"a")
    codes = []
    for offset in (0, 1, 1000):
        response = client.ask(fetch(at(offset), max_bytes=-1), 12, FetchResponse)
        codes.append(response.responses[0].partitions[0].error_code)
    assert codes == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE]


def test_an_unknown_isolation_level_fails_the_request_if_a_partition_would_be_read(
    memory: MemoryBroker, client: Client
) -> None:
    failed = client.ask(fetch(at(0), isolation_level=2), 12, FetchResponse)
    assert failed.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert failed.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    request = fetch(at(0), isolation_level=2, session_id=7)
    request.topics[0].topic_id = memory.broker.partitions.get("t", 0).log.topic_id
    failed = client.ask(request, 13, FetchResponse)
    assert (failed.error_code, failed.session_id, failed.responses) == (ErrorCode.UNKNOWN_SERVER_ERROR, 7, [])
    request = fetch(at(0), isolation_level=2)
    request.topics[0].topic = "unknown"
    missing = client.ask(request, 12, FetchResponse)
    assert missing.error_code == 0
    assert missing.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
