"""A client's and a server's Connection together, without a socket."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.clients.connection import (
    CONNECTION_CLOSED,
    NEED_DATA,
    Connection,
    FrameSplitter,
    RequestReceived,
    ResponseReceived,
)
from barnabas.wire.errors import ErrorCode, ProtocolError
from barnabas.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.schema import Message
from barnabas.wire.types import Chunk, chunk_bytes


def joined(chunks: list[Chunk]) -> bytes:
    return b"".join(map(chunk_bytes, chunks))


def send_request(client: Connection, server: Connection, request: Message, version: int) -> RequestReceived:
    server.receive_data(joined(client.send_request(request, version)))
    event = server.next_event()
    assert isinstance(event, RequestReceived)
    return event


def send_response(server: Connection, client: Connection, response: Message, to: RequestReceived) -> ResponseReceived:
    client.receive_data(joined(server.send_response(response, to)))
    event = client.next_event()
    assert isinstance(event, ResponseReceived)
    return event


def test_request_and_response() -> None:
    client, server = Connection.client("me"), Connection.server()
    for correlation_id, version in enumerate(MetadataRequest.versions):
        request = MetadataRequest(topics=[])
        received = send_request(client, server, request, version)
        assert (received.request, received.version, received.is_supported) == (request, version, True)
        assert received.header.client_id == "me"
        response = MetadataResponse(controller_id=9 if version else -1)
        result = send_response(server, client, response, received)
        assert (result.response, result.version, result.correlation_id) == (
            response,
            version,
            correlation_id,
        )
    assert client.next_event() is NEED_DATA
    assert server.next_event() is NEED_DATA


def test_pipelined_requests_are_answered_in_order() -> None:
    client, server = Connection.client(), Connection.server()
    for version in (0, 5, 12):
        server.receive_data(joined(client.send_request(MetadataRequest(topics=[]), version)))
    assert client.in_flight == 3
    events = [server.next_event() for _ in range(3)]
    for event in events:
        assert isinstance(event, RequestReceived)
        client.receive_data(joined(server.send_response(MetadataResponse(), event)))
    responses = [client.next_event() for _ in range(3)]
    assert [response.version for response in responses if isinstance(response, ResponseReceived)] == [0, 5, 12]
    assert client.in_flight == 0


@given(st.lists(st.integers(1, 40)))
def test_stream_may_be_split_anywhere(sizes: list[int]) -> None:
    client, server = Connection.client("me"), Connection.server()
    stream = b"".join(joined(client.send_request(MetadataRequest(topics=None), version)) for version in (1, 9, 13))
    seen = []
    for size in [*sizes, len(stream)]:
        if stream:
            server.receive_data(stream[:size])
        stream = stream[size:]
        while isinstance(event := server.next_event(), RequestReceived):
            seen.append(event.version)
    assert seen == [1, 9, 13]


def test_api_versions_of_an_unknown_version_is_answered_in_version_0() -> None:
    """KIP-511."""
    client, server = Connection.client("new"), Connection.server()
    frame = bytearray(joined(client.send_request(ApiVersionsRequest(client_software_name="x"), 5)))
    frame[6:8] = (99).to_bytes(2)
    server.receive_data(frame)
    received = server.next_event()
    assert isinstance(received, RequestReceived)
    assert (received.is_supported, received.version, received.header.request_api_version) == (False, 0, 99)
    keys = [ApiVersion(api_key=18, min_version=0, max_version=4)]
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=keys)
    result = send_response(server, client, response, received)
    assert (result.response, result.version) == (response, 0)


def test_unknown_version_of_another_api_fails_the_connection() -> None:
    client, server = Connection.client(), Connection.server()
    frame = bytearray(joined(client.send_request(MetadataRequest(topics=[]), 12)))
    frame[6:8] = (99).to_bytes(2)
    server.receive_data(frame)
    with pytest.raises(ProtocolError, match="MetadataRequest has no version 99"):
        server.next_event()
    with pytest.raises(ProtocolError, match="99"):
        server.next_event()
    with pytest.raises(ProtocolError, match="99"):
        server.receive_data(b"x")


def test_produce_without_acks_expects_no_response() -> None:
    """R13: acks=0 has no response."""
    client, server = Connection.client(), Connection.server()
    send_request(client, server, ProduceRequest(acks=0), 9)
    assert client.in_flight == 0
    received = send_request(client, server, ProduceRequest(acks=1), 9)
    assert client.in_flight == 1
    assert send_response(server, client, ProduceResponse(), received).correlation_id == 1


def test_response_to_another_request_is_a_protocol_error() -> None:
    client, server = Connection.client(), Connection.server()
    first = send_request(client, server, MetadataRequest(topics=[]), 12)
    send_request(client, server, MetadataRequest(topics=[]), 12)
    send_response(server, client, MetadataResponse(), first)
    client.receive_data(joined(server.send_response(MetadataResponse(), first)))
    with pytest.raises(ProtocolError, match="correlation id 0, expected 1"):
        client.next_event()


def test_response_without_a_request_is_a_protocol_error() -> None:
    client = Connection.client()
    client.receive_data(b"\x00\x00\x00\x04\x00\x00\x00\x00")
    with pytest.raises(ProtocolError, match="without a request"):
        client.next_event()


def test_end_of_stream_after_a_frame_closes() -> None:
    client, server = Connection.client(), Connection.server()
    server.receive_data(joined(client.send_request(MetadataRequest(topics=[]), 12)))
    server.receive_data(b"")
    assert isinstance(server.next_event(), RequestReceived)
    assert server.next_event() is CONNECTION_CLOSED


def test_end_of_stream_within_a_frame_is_a_protocol_error() -> None:
    server = Connection.server()
    server.receive_data(b"\x00\x00\x00\x10abc")
    assert server.next_event() is NEED_DATA
    server.receive_data(b"")
    with pytest.raises(ProtocolError, match="7 bytes of an incomplete frame"):
        server.next_event()


def test_announced_size_is_not_allocated() -> None:
    splitter = FrameSplitter(max_frame_bytes=2**30)
    splitter.add((2**30).to_bytes(4) + b"x")
    assert splitter.next_frame() is None
    assert len(splitter) == 5


def test_frame_larger_than_the_limit_is_rejected() -> None:
    server = Connection.server(max_frame_bytes=10)
    server.receive_data((11).to_bytes(4))
    with pytest.raises(ProtocolError, match="larger than the 10 allowed"):
        server.next_event()


def test_failed_request_is_not_in_flight() -> None:
    client = Connection.client()
    with pytest.raises(ValueError, match="cannot be encoded"):
        client.send_request(ProduceRequest(acks=2**20), 9)
    assert client.in_flight == 0
    server = Connection.server()
    assert send_request(client, server, ProduceRequest(acks=1), 9).header.correlation_id == 0


def test_http_request_is_named_in_the_error() -> None:
    server = Connection.server()
    server.receive_data(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(ProtocolError, match="HTTP"):
        server.next_event()
