"""Recorded frames of real clients and of Kafka 4.4.0, headers included."""

from __future__ import annotations

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.clients.connection import Connection, RequestReceived, ResponseReceived
from barnabas.wire.frame import (
    SIZE,
    api_versions_response_version,
    encode_request,
    encode_response,
    message_for,
    parse_request_header,
    parse_response_header,
)
from barnabas.wire.messages.headers import RequestHeader
from barnabas.wire.types import Chunk, chunk_bytes
from tests.support.requests.recorded import Exchange, exchanges


def framed(data: bytes) -> bytes:
    return SIZE.pack(len(data)) + data


def joined(chunks: list[Chunk]) -> bytes:
    return b"".join(map(chunk_bytes, chunks))


def reencode_response(exchange: Exchange) -> tuple[int, bytes]:
    header, pos = parse_response_header(exchange.response, exchange.api_key, exchange.version)
    version = exchange.version
    if exchange.api_key == ApiKey.API_VERSIONS:
        version = api_versions_response_version(exchange.response[pos:], version)
    response, end = message_for(exchange.api_key)[1].codec(version).parse(exchange.response, pos)
    assert end == len(exchange.response), exchange.name
    return version, joined(encode_response(response, version, header.correlation_id))


def test_there_are_812_exchanges() -> None:
    assert len(exchanges()) == 812
    assert len({(one.api_key, one.version) for one in exchanges()}) == 138


def test_requests_decode_and_encode_to_the_same_bytes() -> None:
    for one in exchanges():
        header, pos = parse_request_header(one.request)
        assert (header.request_api_key, header.request_api_version) == (one.api_key, one.version)
        request, end = message_for(one.api_key)[0].codec(one.version).parse(one.request, pos)
        assert end == len(one.request), one.name
        again = encode_request(request, one.version, header.correlation_id, header.client_id)
        assert joined(again) == framed(one.request), one.name


def test_responses_decode_and_encode_to_the_same_bytes() -> None:
    for one in exchanges():
        assert reencode_response(one)[1] == framed(one.response), one.name


def test_interpreted_construct_reads_and_writes_the_same_bodies() -> None:
    for one in exchanges():
        _, pos = parse_request_header(one.request)
        plain = message_for(one.api_key)[0].at(one.version)
        assert plain.build(plain.parse(one.request[pos:])) == one.request[pos:], one.name
        _, pos = parse_response_header(one.response, one.api_key, one.version)
        version, _ = reencode_response(one)
        plain = message_for(one.api_key)[1].at(version)
        assert plain.build(plain.parse(one.response[pos:])) == one.response[pos:], one.name


def test_fast_header_parser_equals_the_declared_codec() -> None:
    for one in exchanges():
        quick, pos = parse_request_header(memoryview(one.request))
        version = 2 if one.version >= message_for(one.api_key)[0].flexible_since else 1
        declared, end = RequestHeader.codec(version).parse(one.request)
        assert (quick, pos) == (declared, end)
        assert quick.encode(version) == one.request[:pos]


def test_server_parses_every_request_byte_by_byte() -> None:
    for one in exchanges()[::29]:
        server = Connection.server()
        events = []
        for byte in framed(one.request):
            server.receive_data(bytes([byte]))
            event = server.next_event()
            if isinstance(event, RequestReceived):
                events.append(event)
        assert [event.header.correlation_id for event in events] == [
            parse_request_header(one.request)[0].correlation_id
        ]


def test_client_parses_every_response() -> None:
    for one in exchanges():
        header, pos = parse_request_header(one.request)
        request, _ = message_for(one.api_key)[0].codec(one.version).parse(one.request, pos)
        if request.api_key == ApiKey.PRODUCE and request.acks == 0:
            continue
        client = Connection.client(header.client_id)
        client.send_request(request, one.version)
        response = SIZE.pack(len(one.response)) + SIZE.pack(0) + one.response[4:]
        client.receive_data(response)
        event = client.next_event()
        assert isinstance(event, ResponseReceived), one.name
        assert client.in_flight == 0
