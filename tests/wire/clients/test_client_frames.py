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
    assert len({(exchange.api_key, exchange.version) for exchange in exchanges()}) == 138


def test_requests_decode_and_encode_to_the_same_bytes() -> None:
    for exchange in exchanges():
        header, pos = parse_request_header(exchange.request)
        assert (header.request_api_key, header.request_api_version) == (exchange.api_key, exchange.version)
        request, end = message_for(exchange.api_key)[0].codec(exchange.version).parse(exchange.request, pos)
        assert end == len(exchange.request), exchange.name
        again = encode_request(request, exchange.version, header.correlation_id, header.client_id)
        assert joined(again) == framed(exchange.request), exchange.name


def test_responses_decode_and_encode_to_the_same_bytes() -> None:
    for exchange in exchanges():
        assert reencode_response(exchange)[1] == framed(exchange.response), exchange.name


def test_interpreted_construct_reads_and_writes_the_same_bodies() -> None:
    for exchange in exchanges():
        _, pos = parse_request_header(exchange.request)
        plain = message_for(exchange.api_key)[0].at(exchange.version)
        assert plain.build(plain.parse(exchange.request[pos:])) == exchange.request[pos:], exchange.name
        _, pos = parse_response_header(exchange.response, exchange.api_key, exchange.version)
        version, _ = reencode_response(exchange)
        plain = message_for(exchange.api_key)[1].at(version)
        assert plain.build(plain.parse(exchange.response[pos:])) == exchange.response[pos:], exchange.name


def test_fast_header_parser_equals_the_declared_codec() -> None:
    for exchange in exchanges():
        quick, pos = parse_request_header(memoryview(exchange.request))
        version = 2 if exchange.version >= message_for(exchange.api_key)[0].flexible_since else 1
        declared, end = RequestHeader.codec(version).parse(exchange.request)
        assert (quick, pos) == (declared, end)
        assert quick.encode(version) == exchange.request[:pos]


def test_server_parses_every_request_byte_by_byte() -> None:
    for exchange in exchanges()[::29]:
        server = Connection.server()
        events = []
        for byte in framed(exchange.request):
            server.receive_data(bytes([byte]))
            event = server.next_event()
            if isinstance(event, RequestReceived):
                events.append(event)
        assert [event.header.correlation_id for event in events] == [
            parse_request_header(exchange.request)[0].correlation_id
        ]


def test_client_parses_every_response() -> None:
    for exchange in exchanges():
        header, pos = parse_request_header(exchange.request)
        request, _ = message_for(exchange.api_key)[0].codec(exchange.version).parse(exchange.request, pos)
        if request.api_key == ApiKey.PRODUCE and request.acks == 0:
            continue
        client = Connection.client(header.client_id)
        client.send_request(request, exchange.version)
        response = SIZE.pack(len(exchange.response)) + SIZE.pack(0) + exchange.response[4:]
        client.receive_data(response)
        event = client.next_event()
        assert isinstance(event, ResponseReceived), exchange.name
        assert client.in_flight == 0
