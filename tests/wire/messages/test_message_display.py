"""The repr of messages, codecs and events in a log or a debugger."""

from __future__ import annotations

from barnabas.wire.clients.connection import CONNECTION_CLOSED, NEED_DATA, Connection, RequestReceived
from barnabas.wire.codec.fields import FRESH
from barnabas.wire.messages.headers import ResponseHeader
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.types import chunk_bytes


def test_repr_of_field_and_codec() -> None:
    assert repr(ProduceRequest.declared[1]) == "<Field acks: int16 0+>"
    assert repr(FRESH) == "<fresh>"
    assert repr(ProduceRequest.codec(9)) == "<Codec ProduceRequest v9>"


def test_source_returns_the_generated_code() -> None:
    source = ProduceRequest.codec(9).source()
    assert "def parse(buf, pos=0):" in source
    assert "message.acks, message.timeout_ms" in source
    assert "def build(message):" in source


def test_repr_includes_unknown_tagged_fields() -> None:
    header = ResponseHeader(correlation_id=3)
    assert repr(header) == "ResponseHeader(correlation_id=3)"
    header.unknown_tagged_fields = ((1, b"x"),)
    assert repr(header) == "ResponseHeader(correlation_id=3, unknown_tagged_fields=((1, b'x'),))"
    assert header != ResponseHeader(correlation_id=3)


def test_repr_of_events() -> None:
    assert (repr(NEED_DATA), repr(CONNECTION_CLOSED)) == ("NEED_DATA", "CONNECTION_CLOSED")
    client, server = Connection.client("me"), Connection.server()
    server.receive_data(b"".join(map(chunk_bytes, client.send_request(MetadataRequest(topics=[]), 12))))
    received = server.next_event()
    assert isinstance(received, RequestReceived)
    assert repr(received).startswith("RequestReceived(RequestHeader(request_api_key=3, request_api_version=12,")
    client.receive_data(b"".join(map(chunk_bytes, server.send_response(MetadataResponse(), received))))
    assert repr(client.next_event()).startswith("ResponseReceived(0, MetadataResponse(throttle_time_ms=0,")
