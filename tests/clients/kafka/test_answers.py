"""Answers to requests that clients rarely send, field by field as Kafka gives them (`--against kafka` shows that)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from barnabas.wire.batches.batch_header import iter_batches
from barnabas.wire.batches.compression import compress
from barnabas.wire.batches.crc import crc32c
from barnabas.wire.batches.records import CRC_START, HEADER, HEADER_SIZE, TIMESTAMP_TYPE_BIT
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.groups.classic_groups import FindCoordinatorRequest
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.wire.messages.produce import InitProducerIdRequest, PartitionProduceResponse
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.transactions import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from tests.support.logs.raw_batches import record
from tests.support.processes.server import Server
from tests.support.requests.fetch import at, fetch
from tests.support.requests.produce import answers, produce, to
from tests.support.requests.raw_client import RawClient
from tests.support.waiting import wait_for

E = ErrorCode
LATE_MS = 2**61


@pytest.fixture
def client(broker: Server) -> Iterator[RawClient]:
    with closing(RawClient(broker.bootstrap)) as client:
        yield client


def batch_of(
    body: bytes = record(0),
    count: int = 1,
    *,
    attributes: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    at_ms: int | None = None,
    base_offset: int = 0,
    magic: int = 2,
) -> bytes:
    """A batch with these fields and a right CRC."""
    at_ms = int(time.time() * 1000) if at_ms is None else at_ms
    fields = [base_offset, HEADER_SIZE - 12 + len(body), -1, magic, 0, attributes, count - 1, at_ms, at_ms]
    data = bytearray(HEADER.pack(*fields, *producer, count) + body)
    fields[4] = crc32c(memoryview(data)[CRC_START:])
    HEADER.pack_into(data, 0, *fields, *producer, count)
    return bytes(data)


def offsets(client: RawClient, topic: str, timestamp: int, isolation_level: int = 0) -> ListOffsetsPartitionResponse:
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=-1)
    topics = [ListOffsetsTopic(name=topic, partitions=[partition])]
    return (
        client(ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=topics), 9)
        .topics[0]
        .partitions[0]
    )


def created(client: RawClient, topic: str, partitions: int = 1) -> bytes:
    """The id of a new topic that is led: Kafka shows a leader a moment before it leads."""
    topic_id = client.create_topic(topic, partitions)
    wait_for(lambda: offsets(client, topic, -1).error_code == 0 or None, f"a leader of {topic}")
    return topic_id


def deleted(client: RawClient, topic: str) -> None:
    client.delete_topic(topic)
    gone = E.UNKNOWN_TOPIC_OR_PARTITION
    wait_for(lambda: offsets(client, topic, -1).error_code == gone or None, f"the end of {topic}")


def produced(client: RawClient, topic: str, *batches: tuple[int, bytes]) -> list[PartitionProduceResponse]:
    return answers(client(produce(*[to(index, records) for index, records in batches], topic=topic), 11))


def cut(batch: bytes, **changes: int) -> bytes:
    """A batch with other bytes at some positions."""
    data = bytearray(batch)
    for position, value in changes.items():
        data[int(position.removeprefix("at_"))] = value
    return bytes(data)


REFUSED_BY_THE_LOG = {
    "an unknown codec": (batch_of(attributes=5), E.UNKNOWN_SERVER_ERROR),
    "another unknown codec": (batch_of(attributes=7), E.UNKNOWN_SERVER_ERROR),
    "a control batch": (batch_of(attributes=0x20), E.INVALID_RECORD),
    "a producer without a sequence": (batch_of(producer=(5, 0, -1)), E.INVALID_RECORD),
    "no records": (batch_of(b"", 0), E.INVALID_RECORD),
    "garbage": (batch_of(b"\xff\x13garbage"), E.INVALID_RECORD),
    "a base offset": (batch_of(base_offset=9), E.INVALID_RECORD),
    "a late timestamp": (batch_of(at_ms=LATE_MS), E.INVALID_TIMESTAMP),
    "a late append time": (batch_of(at_ms=LATE_MS, attributes=TIMESTAMP_TYPE_BIT), E.INVALID_TIMESTAMP),
    "a middle record with a wrong header count": (
        batch_of(record(0) + record(1, header_count=2, rest=b"\x00\x00") + record(2), 3),
        E.INVALID_RECORD,
    ),
}
"""These answers have the log start offset."""
REFUSED_BEFORE = {
    "a transactional batch without a transaction": (
        batch_of(attributes=0x10, producer=(1, 0, 0)),
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    "too many bytes": (batch_of(record(0, bytes(1_100_000))), E.MESSAGE_TOO_LARGE),
    "a wrong CRC": (cut(batch_of(), at_20=0xFF), E.CORRUPT_MESSAGE),
    "a batch that is cut off": (batch_of()[:-3], E.INVALID_RECORD),
    "half a header": (batch_of()[:30], E.INVALID_RECORD),
    "no bytes": (b"", E.INVALID_RECORD),
    "an old magic": (batch_of(magic=1), E.INVALID_RECORD),
    "a new magic": (batch_of(magic=3), E.CORRUPT_MESSAGE),
    "two batches": (batch_of() * 2, E.INVALID_RECORD),
}


def test_a_refused_batch_is_answered_with_the_log_start_offset_if_its_log_was_asked(
    client: RawClient, topic: str
) -> None:
    created(client, topic)
    found = {}
    for name, (batch, _) in {**REFUSED_BY_THE_LOG, **REFUSED_BEFORE}.items():
        (answer,) = produced(client, topic, (0, batch))
        found[name] = (E(answer.error_code).name, answer.base_offset, answer.log_start_offset)
    assert found == {
        **{name: (code.name, -1, 0) for name, (_, code) in REFUSED_BY_THE_LOG.items()},
        **{name: (code.name, -1, -1) for name, (_, code) in REFUSED_BEFORE.items()},
    }
    assert offsets(client, topic, -1).offset == 0


def test_a_batch_with_append_time_is_stored_with_create_time(client: RawClient, topic: str) -> None:
    """Copies of batches of a topic with LogAppendTime."""
    created(client, topic)
    for codec in (0, 3):
        records = batch_of(compress(codec, record(0)), attributes=TIMESTAMP_TYPE_BIT | codec)
        assert produced(client, topic, (0, records))[0].error_code == 0
    (partition,) = client(fetch(at(0), topic=topic), 11).responses[0].partitions
    stored = list(iter_batches(bytes(partition.records)))
    assert [(view.attributes, view.max_timestamp > 0) for view in stored] == [(0, True), (3, True)]
    assert all(view.crc_is_valid() for view in stored)


def test_of_a_partition_that_is_named_twice_the_last_batch_is_appended(client: RawClient, topic: str) -> None:
    created(client, topic, 2)
    batches = [(index, batch_of(record(0, value))) for index, value in ((0, b"a"), (1, b"b"), (0, b"c"))]
    answered = {answer.index: (answer.error_code, answer.base_offset) for answer in produced(client, topic, *batches)}
    assert answered == {0: (0, 0), 1: (0, 0)}
    (partition,) = client(fetch(at(0), topic=topic), 11).responses[0].partitions
    assert b"c" in bytes(partition.records)
    assert offsets(client, topic, -1).offset == 1
    wrong = produced(client, topic, (0, batch_of()), (0, batch_of(attributes=5)))
    assert [answer.error_code for answer in wrong] == [E.UNKNOWN_SERVER_ERROR]


def summary(response: FetchResponse) -> list[tuple[int, str, bool, object]]:
    """Of each partition: index, error, whether there are records, aborted transactions."""
    return [
        (
            partition.partition_index,
            E(partition.error_code).name,
            bool(partition.records),
            partition.aborted_transactions,
        )
        for topic in response.responses
        for partition in topic.partitions
    ]


def test_negative_limits_of_a_fetch(client: RawClient, topic: str) -> None:
    created(client, topic, 2)
    produced(client, topic, (0, batch_of()), (1, batch_of()))
    failed, read = (E.UNKNOWN_SERVER_ERROR.name, False, None), ("NONE", True, None)

    def fetched(*parts, **options) -> list:
        return summary(client(fetch(*parts, topic=topic, **options), 11))

    assert fetched(at(0, max_bytes=-1), at(0, 1)) == [(0, *failed), (1, *read)]
    assert fetched(at(0), at(0, 1, max_bytes=-1)) == [(0, *read), (1, *failed)]
    assert fetched(at(0), at(0, 1), max_bytes=-1) == [(0, *failed), (1, *read)]
    assert fetched(at(0, max_bytes=0)) == [(0, *read)]
    assert fetched(at(0), max_bytes=0) == [(0, *read)]


def test_an_unknown_isolation_level(client: RawClient, topic: str) -> None:
    created(client, topic)
    response = client(fetch(at(0), topic=topic, isolation_level=2), 11)
    assert (response.error_code, summary(response)) == (-1, [(0, E.UNKNOWN_SERVER_ERROR.name, False, [])])
    assert offsets(client, topic, -1, isolation_level=2).error_code == E.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("version", [11, 13, 17])
def test_a_topic_that_is_created_again_in_a_fetch_session(client: RawClient, topic: str, version: int) -> None:
    """Sessions know the name of a topic id: so the answer differs from that to a fetch without one."""
    epoch = 0

    def in_session(*parts, topic_id: bytes = bytes(16)) -> list:
        nonlocal epoch
        request = fetch(*parts, topic=topic, topic_id=topic_id) if parts else FetchRequest(topics=[])
        request.session_id, request.session_epoch = session_id, epoch
        request.max_wait_ms, request.min_bytes = 0, 1
        epoch += 1
        return summary(client(request, version))

    old = created(client, topic, 2)
    first = client(fetch(at(0), at(0, 1), topic=topic, topic_id=old, session_epoch=0), version)
    session_id, epoch = first.session_id, 1
    assert session_id
    deleted(client, topic)
    unknown = E.UNKNOWN_TOPIC_OR_PARTITION.name
    assert in_session() == [(0, unknown, False, []), (1, unknown, False, [])]
    created(client, topic, 1)
    inconsistent = (0, E.INCONSISTENT_TOPIC_ID.name, False, None) if version >= 13 else (0, "NONE", False, None)
    assert in_session() == [inconsistent, (1, unknown, False, [])]
    if version >= 13:
        without_session = summary(client(fetch(at(0), topic_id=old), version))
        assert without_session == [(0, E.UNKNOWN_TOPIC_ID.name, False, [])]
        assert (0, E.UNKNOWN_TOPIC_ID.name, False, []) in in_session(at(0), topic_id=bytes(15) + b"x")


def test_the_leader_epoch_of_an_empty_log(client: RawClient, topic: str) -> None:
    created(client, topic)
    for timestamp in (-2, -4):
        earliest = offsets(client, topic, timestamp)
        assert (earliest.offset, earliest.leader_epoch) == (0, 0)
    partition = OffsetForLeaderPartition(partition=0, leader_epoch=0, current_leader_epoch=-1)
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[partition])]
    )
    (end,) = client(request, 4).topics[0].partitions
    assert (end.error_code, end.leader_epoch, end.end_offset) == (0, 0, 0)


def test_a_refused_topic_has_no_configs(client: RawClient, topic: str, topic_name: Callable[..., str]) -> None:
    client.create_topic(topic)
    refused = [
        CreatableTopic(name=topic, num_partitions=1, replication_factor=1),
        CreatableTopic(name="wrong@name", num_partitions=1, replication_factor=1),
        CreatableTopic(name=topic_name(), num_partitions=0, replication_factor=1),
    ]
    response = client(CreateTopicsRequest(timeout_ms=3000, topics=refused), 7)
    assert [(result.error_code, result.configs) for result in response.topics] == [
        (E.TOPIC_ALREADY_EXISTS, []),
        (E.INVALID_TOPIC_EXCEPTION, []),
        (E.INVALID_PARTITIONS, []),
    ]


def test_a_log_that_knows_a_later_epoch_refuses_a_batch_before_the_coordinator_is_asked(
    client: RawClient, topic: str
) -> None:
    """So after the producer id of a transactional id was replaced, its old batches have an old epoch (KIP-360)."""
    created(client, topic, 2)
    find = FindCoordinatorRequest(key_type=1, coordinator_keys=[topic])
    wait_for(lambda: client(find, 6).coordinators[0].error_code == 0 or None, "a coordinator of transactions")
    init = InitProducerIdRequest(transactional_id=topic, transaction_timeout_ms=60_000)
    starting = {E.COORDINATOR_LOAD_IN_PROGRESS, E.NOT_COORDINATOR, E.CONCURRENT_TRANSACTIONS}

    def initialized() -> bool | None:
        code = client(init, 4).error_code
        assert not code or code in starting, code
        return None if code else True

    wait_for(initialized, "a producer id")
    old = 1 << 40  # no coordinator has assigned it
    in_topic = WritableTxnMarkerTopic(name=topic, partition_indexes=[0])
    marker = WritableTxnMarker(
        producer_id=old, producer_epoch=32_767, transaction_result=False, topics=[in_topic], coordinator_epoch=0
    )
    (written,) = client(WriteTxnMarkersRequest(markers=[marker]), 1).markers
    assert written.topics[0].partitions[0].error_code == 0
    for version in (11, 12):
        for partition, code in ((0, E.INVALID_PRODUCER_EPOCH), (1, E.INVALID_PRODUCER_ID_MAPPING)):
            records = batch_of(attributes=0x10, producer=(old, 32_766, 0))
            (refused,) = answers(client(produce(to(partition, records), topic=topic, transactional_id=topic), version))
            assert (refused.error_code, refused.log_start_offset) == (code, -1), (version, partition)
