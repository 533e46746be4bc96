"""The connection without its socket: framing, order, limits, hostile bytes, isolation of failures."""

from __future__ import annotations

import logging
import random
import struct
from functools import partial

import pytest

from barnabas.broker.apis import registry as api
from barnabas.broker.event_loop.waiting import Future
from barnabas.broker.net.connection import OUT_LIMIT_BYTES
from barnabas.broker.net.frame_buffers import FrameBuffers
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.fetch import FetchRequest, FetchRequestFetchPartition, FetchRequestFetchTopic, FetchResponse
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.metadata import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
)
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.support.cases import for_each
from tests.support.memory.broker import Client, MemoryBroker, batch
from tests.support.volume import for_each_seed, seeds

ASK = ApiVersionsRequest(client_software_name="test", client_software_version="1")


def produce(topic: str, records: bytes, acks: int = 1) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])],
    )


def fetch(topic: str, offset: int, *, max_wait_ms: int = 500, min_bytes: int = 1) -> FetchRequest:
    partition = FetchRequestFetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        session_epoch=-1,
        topics=[FetchRequestFetchTopic(topic=topic, partitions=[partition])],
    )


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    return memory.client()


def test_requests_of_one_read_are_answered_in_order(client: Client) -> None:
    data = b"".join(client.frame(ASK, version) for version in (4, 0, 3, 2))
    client.feed(data)
    assert len(client.answers()) == 4


def test_a_request_may_arrive_byte_by_byte(client: Client) -> None:
    for byte in client.frame(ASK, 4) + client.frame(MetadataRequest(topics=None), 12):
        client.feed(bytes([byte]))
    first, second = client.answers()
    assert isinstance(first, ApiVersionsResponse)
    assert isinstance(second, MetadataResponse)


def test_any_split_of_the_stream_gives_the_same_responses(memory: MemoryBroker) -> None:
    for_each_seed(seeds("BARNABAS_EXAMPLES", 4), partial(split_anywhere, memory), "BARNABAS_EXAMPLES")


def split_anywhere(memory: MemoryBroker, seed: int) -> None:
    chance = random.Random(seed)
    client = memory.client()
    client.touch("t")
    requests = [
        produce("t", batch(bytes(chance.randrange(200_000)))) if chance.random() < 0.5 else ASK for _ in range(12)
    ]
    data = b"".join(client.frame(request, 9 if isinstance(request, ProduceRequest) else 3) for request in requests)
    answers = []
    position = 0
    while position < len(data):
        space = client.connection.space()
        if space is not None:  # a large frame: the transport reads into the frame's buffer
            count = min(len(space), 1 + chance.randrange(100_000), len(data) - position)
            space[:count] = data[position : position + count]
            space.release()
            client.connection.filled(count, memory.clock.now)
        else:
            count = 1 + chance.randrange(60_000)
            client.feed(data[position : position + count])
        position += count
        answers += client.answers()
    assert [type(response) for response in answers] == [
        ProduceResponse if isinstance(request, ProduceRequest) else ApiVersionsResponse for request in requests
    ]
    assert all(
        response.responses[0].partition_responses[0].error_code == 0
        for response in answers
        if isinstance(response, ProduceResponse)
    )


def test_responses_stay_in_order_while_one_is_delayed(memory: MemoryBroker, client: Client) -> None:
    client.touch("t")
    client.send(fetch("t", 0), 11)
    client.send(ASK, 3)
    client.feed(client.frame(ASK, 3) + client.frame(MetadataRequest(topics=None), 9))
    assert client.answers() == []
    other = memory.client()
    other.ask(produce("t", batch(b"x")), 9, ProduceResponse)
    kinds = [type(response) for response in client.answers()]
    assert kinds == [FetchResponse, ApiVersionsResponse, ApiVersionsResponse, MetadataResponse]


def test_a_connection_whose_request_waits_reads_only_once_more(memory: MemoryBroker, client: Client) -> None:
    client.touch("t")
    client.send(fetch("t", 0), 11)
    assert client.connection.wants_data  # so that a disconnect is noticed
    client.send(ASK, 3)
    assert not client.connection.wants_data
    memory.advance(0.5)
    assert len(client.answers()) == 2
    assert client.connection.wants_data


def test_requests_wait_while_the_client_does_not_read_responses(memory: MemoryBroker, client: Client) -> None:
    client.touch("t")
    client.ask(produce("t", batch(bytes(900_000))), 9, ProduceResponse)
    frames = b"".join(client.frame(fetch("t", 0), 11) for _ in range(10))
    client.feed(frames)
    assert client.connection.out_bytes < OUT_LIMIT_BYTES + 1_000_000
    assert not client.connection.wants_data
    assert len(client.answers()) == 10


def test_disconnecting_cancels_a_request_that_waits(memory: MemoryBroker, client: Client) -> None:
    client.touch("t")
    partition = memory.broker.partitions.get("t", 0)
    client.send(fetch("t", 0), 11)
    assert partition.waiters
    client.connection.close()
    assert not partition.waiters
    memory.advance(1)
    memory.client().ask(produce("t", batch(b"x")), 9, ProduceResponse)


@for_each(
    ("start", "reason"),
    [
        (b"GET / HTTP/1.1\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", "TLS"),
        (b"\xff\xff\xff\xff", "negative"),
        (b"\x7f\xff\xff\xff", "larger"),
        (b"\x00\x00\x00\x01\x00", "shorter"),
        (b"\x00\x00\x00\x06\x00\x12\x00\x00\x00\x00", "shorter"),
    ],
)
def test_bytes_of_another_protocol_are_named_in_the_error(client: Client, start: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        client.feed(start)


def test_the_size_is_checked_before_the_rest_arrives(memory: MemoryBroker) -> None:
    client = memory.client(max_frame_bytes=1000)
    for byte in (1001).to_bytes(4, "big")[:3]:
        client.feed(bytes([byte]))
    with pytest.raises(ProtocolError, match=r"socket\.request\.max\.bytes"):
        client.feed((1001).to_bytes(4, "big")[3:])


def test_buffers_grow_with_the_received_bytes_not_with_the_announced_size(client: Client) -> None:
    client.feed((100 * 1024 * 1024).to_bytes(4, "big") + bytes(100))
    buffer = client.connection.partial
    assert buffer is not None
    assert len(buffer) <= 64 * 1024
    sent = 104
    while sent < 3_000_000:
        space = client.connection.space()
        assert space is not None
        count = len(space)
        space.release()
        client.connection.filled(count, 0.0)
        sent += count
        buffer = client.connection.partial
        assert buffer is not None
        assert len(buffer) <= 4 * sent


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(client: Client) -> None:
    """KIP-511: error 35, and the versions of ApiVersions itself."""
    frame = bytearray(client.frame(ASK, 5))
    frame[6:8] = (99).to_bytes(2, "big")
    client.sent[0] = (18, 0, client.sent[0][2])
    client.feed(bytes(frame))
    (response,) = client.answers()
    assert isinstance(response, ApiVersionsResponse)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(item.api_key, item.min_version) for item in response.api_keys] == [(18, 0)]
    client.ask(ASK, 3, ApiVersionsResponse)


@for_each(("api_key", "version"), [(3, 99), (3, -1), (52, 0), (4, 0), (9999, 0), (-1, 0)])
def test_a_request_that_is_not_served_closes_the_connection(client: Client, api_key: int, version: int) -> None:
    body = struct.pack(">hhih", api_key, version, 1, -1)
    with pytest.raises(ProtocolError):
        client.feed(len(body).to_bytes(4, "big") + body)


def test_a_truncated_request_is_a_protocol_error(memory: MemoryBroker) -> None:
    body = memory.client().frame(MetadataRequest(topics=[]), 12)[4:]
    for size in range(len(body)):
        with pytest.raises(ProtocolError):
            memory.client().feed(size.to_bytes(4, "big") + body[:size])


def test_garbage_gives_a_response_or_a_protocol_error(memory: MemoryBroker, caplog: pytest.LogCaptureFixture) -> None:
    """A connection sends nothing else, and the next connection is served."""
    for_each_seed(seeds("BARNABAS_EXAMPLES", 40), partial(garbage, memory, caplog), "BARNABAS_EXAMPLES")


def garbage(memory: MemoryBroker, caplog: pytest.LogCaptureFixture, seed: int) -> None:
    chance = random.Random(seed)
    client = memory.client()
    frame = bytearray(
        client.frame(chance.choice([ASK, MetadataRequest(topics=[]), fetch("t", 0), produce("t", batch(b"x"))]), 4)
    )
    for _ in range(chance.randrange(1, 6)):
        frame[chance.randrange(4, len(frame))] = chance.randrange(256)
    with caplog.at_level(logging.ERROR):
        try:
            client.feed(bytes(frame))
            client.collect()
        except ProtocolError:
            pass
    assert not caplog.records
    memory.client().ask(ASK, 3, ApiVersionsResponse)


def failing(error: Exception):
    def handler(ctx, request):
        raise error

    return handler


@pytest.fixture
def broken_handlers(monkeypatch: pytest.MonkeyPatch):
    """Make an API's handler raise an exception."""

    def install(request_class: type, error: Exception) -> None:
        routes, key = api.ROUTES[api.BROKER], (api.BROKER, request_class.api_key)
        routes.find(request_class.api_key, request_class.max_version)
        handler = api._handlers[key]._replace(handler=failing(error), usual=None)
        monkeypatch.setitem(api._handlers, key, handler)
        for known in list(routes.known):
            monkeypatch.delitem(routes.known, known)

    yield install
    api.ROUTES[api.BROKER].known.clear()  # of routes with the broken handler


def test_a_bug_is_logged_and_answered_without_its_traceback(client: Client, broken_handlers, caplog) -> None:
    broken_handlers(DescribeClusterRequest, ZeroDivisionError("secret"))
    response = client.ask(DescribeClusterRequest(), 1, DescribeClusterResponse)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "secret" not in (response.error_message or "")
    assert "ZeroDivisionError" in caplog.text
    client.ask(ASK, 3, ApiVersionsResponse)


def test_a_bug_in_an_api_without_an_error_code_closes_the_connection(client: Client, broken_handlers) -> None:
    broken_handlers(ListOffsetsRequest, ZeroDivisionError())
    client.send(ListOffsetsRequest(), 7)
    assert client.connection.is_closing
    assert client.answers() == []


def test_an_error_of_a_whole_request_has_the_shape_of_its_response(client: Client, broken_handlers) -> None:
    broken_handlers(ProduceRequest, KafkaError(ErrorCode.POLICY_VIOLATION, "no"))
    response = client.ask(produce("t", batch(b"x")), 9, ProduceResponse)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.POLICY_VIOLATION
    assert response.responses[0].partition_responses[0].error_message == "no"


def test_a_coroutine_that_does_not_wait_is_answered_at_once(client: Client, monkeypatch) -> None:
    async def handler(ctx, request):
        future = Future()
        future.complete(DescribeClusterResponse(cluster_id="here"))
        return await future

    route = api.ROUTES[api.BROKER].find(DescribeClusterRequest.api_key, 1)
    monkeypatch.setattr(route, "handler", handler)
    assert client.ask(DescribeClusterRequest(), 1, DescribeClusterResponse).cluster_id == "here"
    client.ask(ASK, 3, ApiVersionsResponse)


def test_a_frame_that_is_held_back_survives_the_next_read(memory: MemoryBroker, client: Client) -> None:
    """The transport reads all connections into one buffer: bytes that are held back must be a copy."""
    client.touch("t")
    client.send(fetch("t", 0), 11)
    data = bytearray(client.frame(ASK, 3))
    client.connection.receive(memoryview(data), memory.clock.now)
    data[:] = bytes(len(data))
    memory.advance(1)
    assert [type(response) for response in client.answers()] == [FetchResponse, ApiVersionsResponse]


def test_large_frames_above_the_limit_wait_for_their_turn(memory: MemoryBroker) -> None:
    """queued.max.request.bytes limits the frames of all connections together."""
    buffers = FrameBuffers(max_bytes=300_000)
    first, second, third = [memory.client(buffers=buffers) for _ in range(3)]
    first.touch("t")
    frames = [client.frame(produce("t", batch(bytes(200_000))), 9) for client in (first, second, third)]
    for client, frame in zip((first, second, third), frames, strict=True):
        client.feed(frame[:100_000])
    assert [client.connection.wants_data for client in (first, second, third)] == [True, False, False]
    first.feed(frames[0][100_000:])
    assert len(first.answers()) == 1
    assert [client.connection.wants_data for client in (second, third)] == [True, False]
    assert second.outputs == 1
    second.connection.close()
    assert third.connection.wants_data
    third.feed(frames[2][100_000:])
    assert len(third.answers()) == 1
    assert buffers.reserved_bytes == 0


def large_frames(memory: MemoryBroker, count: int) -> tuple[FrameBuffers, list[Client], list[bytes]]:
    """Clients that share a limit into which one of their frames fits."""
    buffers = FrameBuffers(max_bytes=300_000)
    clients = [memory.client(buffers=buffers) for _ in range(count)]
    clients[0].touch("t")
    return buffers, clients, [client.frame(produce("t", batch(bytes(200_000))), 9) for client in clients]


@pytest.mark.parametrize("closed", range(4))
def test_a_connection_that_closes_gives_back_what_it_has_reserved(memory: MemoryBroker, closed: int) -> None:
    """Whether its frame was admitted or waits, alone, before others or behind them."""
    buffers, clients, frames = large_frames(memory, 4)
    for client, frame in zip(clients, frames, strict=True):
        client.feed(frame[:100_000])
    clients[closed].connection.close()
    assert len(buffers._waiting) == 2
    for index, client in enumerate(clients):
        if index != closed:
            assert client.connection.wants_data
            client.feed(frames[index][100_000:])
            assert len(client.answers()) == 1
    assert buffers.reserved_bytes == 0


def test_a_frame_that_waits_is_admitted_when_the_one_before_it_leaves(memory: MemoryBroker) -> None:
    buffers = FrameBuffers(max_bytes=300_000)
    clients = [memory.client(buffers=buffers) for _ in range(4)]
    clients[0].touch("t")
    sizes = (150_000, 100_000, 200_000, 120_000)
    frames = [client.frame(produce("t", batch(bytes(size))), 9) for client, size in zip(clients, sizes, strict=True)]
    for client, frame in zip(clients, frames, strict=True):
        client.feed(frame[:70_000])
    clients[1].feed(frames[1][70_000:])
    assert [client.connection.wants_data for client in clients] == [True, True, False, False]
    clients[2].connection.close()
    assert clients[3].connection.wants_data
    clients[3].feed(frames[3][70_000:])
    clients[0].feed(frames[0][70_000:])
    assert buffers.reserved_bytes == 0


def test_a_frame_that_waits_is_not_read(memory: MemoryBroker) -> None:
    buffers, (first, second), frames = large_frames(memory, 2)
    first.feed(frames[0][:100_000])
    second.feed(frames[1][:100_000])
    assert second.connection.space() is None
    second.feed(frames[1][100_000:])  # of a read that was in progress
    assert not buffers._waiting
    first.connection.close()
    assert buffers.reserved_bytes == 0
    assert len(second.answers()) == 1


def test_the_idle_time_counts_from_the_answer_of_a_long_poll(memory: MemoryBroker, client: Client) -> None:
    client.touch("t")
    client.send(fetch("t", 0, max_wait_ms=6000), 11)
    memory.advance(6)
    assert len(client.answers()) == 1
    assert client.connection.last_active == memory.clock.now


def test_one_frame_is_always_admitted(memory: MemoryBroker) -> None:
    client = memory.client(buffers=FrameBuffers(max_bytes=0))
    client.touch("t")
    frame = client.frame(produce("t", batch(bytes(200_000))), 9)
    client.feed(frame[:100_000])
    assert client.connection.wants_data
    client.feed(frame[100_000:])
    assert len(client.answers()) == 1


def test_a_partial_frame_is_not_copied_again_for_each_read(memory: MemoryBroker, client: Client) -> None:
    client.touch("t")
    frame = client.frame(produce("t", batch(bytes(200_000))), 9)
    client.feed(frame[:100_000])
    buffer = client.connection.partial
    client.connection.resume(memory.clock.now)
    assert client.connection.partial is buffer
