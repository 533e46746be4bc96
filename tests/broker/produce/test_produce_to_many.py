"""A Produce to many partitions: appended in steps between the turns, from a copy of what the frame had."""

from __future__ import annotations

import pytest

from barnabas.broker.apis.dispatcher import LARGE_REQUEST_BYTES
from barnabas.broker.apis.sliced_response import FEW_ELEMENTS
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.types import chunk_bytes
from tests.support.memory.broker import Client, MemoryBroker, batch
from tests.support.requests.produce import answers, produce, to

MANY = FEW_ELEMENTS + 150


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    memory.create_topic("t", MANY)
    return memory.client()


def records(memory: MemoryBroker, partition: int) -> bytes:
    """What the log of a partition has."""
    log = memory.broker.partitions.get("t", partition).log
    return chunk_bytes(log.read(0, 1 << 20, limit_offset=1, min_one_batch=True).slice)


def to_all(acks: int = -1) -> ProduceRequest:
    return produce(*(to(index, batch(b"%d" % index)) for index in range(MANY)), acks=acks)


def test_others_are_served_before_it_is_answered(memory: MemoryBroker, client: Client) -> None:
    other = memory.client()
    client.send(to_all(), 9)
    assert client.answers() == []
    other.ask(MetadataRequest(topics=[]), 12, MetadataResponse)
    memory.advance(0)
    (response,) = client.answers()
    assert isinstance(response, ProduceResponse)
    assert [partition.index for partition in answers(response)] == list(range(MANY))
    assert {(partition.error_code, partition.base_offset) for partition in answers(response)} == {(0, 0)}
    assert [memory.broker.partitions.get("t", index).log.high_watermark for index in range(MANY)] == [1] * MANY


def test_each_partition_has_its_own_error(client: Client) -> None:
    request = produce(*(to(index + MANY // 2, batch(b"a")) for index in range(MANY)))
    response = client.ask(request, 9, ProduceResponse)
    codes = [partition.error_code for partition in answers(response)]
    there = MANY - MANY // 2
    assert codes == [0] * there + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * (MANY - there)


def test_acks_0_has_no_response_and_an_error_closes_the_connection(memory: MemoryBroker, client: Client) -> None:
    """R13."""
    client.feed(client.frame(to_all(acks=0), 9))
    client.sent.clear()
    memory.advance(0)
    assert client.answers() == []
    assert not client.connection.is_closing
    assert memory.broker.partitions.get("t", MANY - 1).log.log_end_offset == 1
    client.feed(client.frame(produce(*(to(index, batch(b"a")) for index in range(1, MANY + 1)), acks=0), 9))
    client.sent.clear()
    memory.advance(0)
    assert client.answers() == []
    assert client.connection.is_closing


def test_the_memory_of_a_small_frame_may_be_used_again(memory: MemoryBroker, client: Client) -> None:
    """Partitions without records are small: a frame that is parsed in its turn may have many of them."""
    sent = batch(b"kept")
    request = produce(*(to(index, None) for index in range(MANY - 1)), to(MANY - 1, sent))
    frame = bytearray(client.frame(request, 9))
    assert len(frame) < LARGE_REQUEST_BYTES
    client.connection.receive(memoryview(frame), memory.clock.now)
    frame[:] = bytes(len(frame))
    memory.broker.loop.end_turn()
    assert client.answers() == []
    memory.advance(0)
    (response,) = client.answers()
    assert isinstance(response, ProduceResponse)
    assert [partition.error_code for partition in answers(response)] == [ErrorCode.INVALID_RECORD] * (MANY - 1) + [0]
    assert records(memory, MANY - 1)[16:] == sent[16:]  # behind offset, size and leader epoch


def test_a_client_that_leaves_has_the_rest_not_appended(memory: MemoryBroker, client: Client) -> None:
    client.send(to_all(), 9)
    client.connection.close()
    memory.advance(0)
    assert memory.broker.loop.is_idle
    assert client.answers() == []
