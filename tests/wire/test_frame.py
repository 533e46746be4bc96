"""Frames and headers: invalid sizes, header versions, and the exceptions of ApiVersions."""

from __future__ import annotations

import pytest

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode, ProtocolError
from barnabas.wire.frame import (
    SIZE,
    api_versions_response_version,
    check_frame_size,
    encode_request,
    encode_response,
    parse_request_header,
    parse_response_header,
    request_header_version,
    response_header_version,
)
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.fetch import FetchableTopicResponse, FetchResponse, FetchResponsePartitionData
from barnabas.wire.messages.headers import RequestHeader
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.registry import message_for
from barnabas.wire.types import chunk_bytes
from tests.support.cases import for_each


def size_of(text: bytes) -> int:
    return int(SIZE.unpack(text)[0])


@for_each(
    ("size", "error"),
    [
        (size_of(b"GET "), "HTTP"),
        (size_of(b"POST"), "HTTP"),
        (size_of(b"\x16\x03\x01\x02"), "TLS handshake was sent to a listener without TLS"),
        (size_of(b"\x16\x03\x03\x00"), "security.protocol=PLAINTEXT"),
        (size_of(b"\x15\x03\x03\x00"), "expects TLS"),
        (size_of(b"SSH-"), "SSH"),
        (-1, "negative size -1"),
        (-(2**31), "negative"),
        (0, "shorter than any header"),
        (3, "shorter than any header"),
        (1001, "larger than the 1000 allowed"),
        (2**31 - 1, "socket.request.max.bytes"),
    ],
)
def test_invalid_frame_size_names_the_probable_protocol(size: int, error: str) -> None:
    with pytest.raises(ProtocolError, match=error):
        check_frame_size(size, 1000)


def test_size_within_the_limit_is_accepted() -> None:
    for size in (4, 999, 1000):
        check_frame_size(size, 1000)
    check_frame_size(100 * 1024 * 1024)
    with pytest.raises(ProtocolError):
        check_frame_size(100 * 1024 * 1024 + 1)


def test_header_versions_follow_the_flexible_versions() -> None:
    for key in ApiKey:
        request_class, _ = message_for(key)
        for version in request_class.versions:
            flexible = version >= request_class.flexible_since
            assert request_header_version(key, version) == (2 if flexible else 1)
            expected = 1 if flexible and key is not ApiKey.API_VERSIONS else 0
            assert response_header_version(key, version) == expected
    assert (request_header_version(0, 8), request_header_version(0, 9)) == (1, 2)
    assert (response_header_version(0, 8), response_header_version(0, 9)) == (0, 1)


def test_response_header_of_api_versions_is_always_version_0() -> None:
    """KIP-511: a client reads it before it knows the broker's versions."""
    for version in ApiVersionsResponse.versions:
        frame = b"".join(map(chunk_bytes, encode_response(ApiVersionsResponse(), version, 7)))[4:]
        header, pos = parse_response_header(frame, ApiKey.API_VERSIONS, version)
        assert (header.correlation_id, pos) == (7, 4)
        assert ApiVersionsResponse.decode(frame[pos:], version) == ApiVersionsResponse()


def test_unsupported_api_versions_response_is_read_as_version_0() -> None:
    error = int(ErrorCode.UNSUPPORTED_VERSION)
    assert api_versions_response_version(ApiVersionsResponse(error_code=error).encode(0), 5) == 0
    assert api_versions_response_version(ApiVersionsResponse().encode(5), 5) == 5
    assert api_versions_response_version(b"", 5) == 5


@for_each("client_id", [None, "", "c", "grüße", "x" * 300])
@for_each("version", [8, 12])
def test_fast_header_parser_equals_the_declared_codec(client_id: str | None, version: int) -> None:
    header = RequestHeader(
        request_api_key=ApiKey.METADATA, request_api_version=version, correlation_id=-5, client_id=client_id
    )
    if version == 12:
        header.unknown_tagged_fields = ((0, b"zero"), (300, b""))
    data = header.encode(request_header_version(ApiKey.METADATA, version))
    assert parse_request_header(data + b"body") == (header, len(data))
    assert RequestHeader.codec(request_header_version(ApiKey.METADATA, version)).parse(data) == (header, len(data))


@for_each(
    "frame",
    [
        b"",
        b"\x00\x03\x00\x0c\x00\x00\x00\x01\x00",
        b"\x00\x03\x00\x0c\x00\x00\x00\x01\x00\x05abcd",
        b"\x00\x03\x00\x0c\x00\x00\x00\x01\x00\x01\xff\x00",
        b"\x00\x03\x00\x0c\x00\x00\x00\x01\x00\x00",
        b"\x00\x03\x00\x0c\x00\x00\x00\x01\xff\xff\x01\x05\x7f",
        b"\x7f\xff\x00\x0c\x00\x00\x00\x01\xff\xff\x00",
    ],
    ids=["empty", "no client id", "short client id", "not UTF-8", "no tags", "short tag", "unknown API"],
)
def test_invalid_request_header_is_a_protocol_error(frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_request_header(frame)


def test_frame_has_size_header_and_body() -> None:
    request = MetadataRequest(topics=None)
    frame = b"".join(map(chunk_bytes, encode_request(request, 12, 42, "me")))
    assert SIZE.unpack(frame[:4]) == (len(frame) - 4,)
    header, pos = parse_request_header(frame[4:])
    assert (header.correlation_id, header.client_id, header.request_api_version) == (42, "me", 12)
    assert MetadataRequest.decode(frame[4 + pos :], 12) == request


def test_records_of_a_response_are_not_copied_into_the_frame() -> None:
    batch = memoryview(bytes(500))
    data = FetchResponsePartitionData(records=batch)
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[data])])
    chunks = encode_response(response, 12, 1)
    assert [chunk is batch for chunk in chunks] == [False, True, False]
    assert SIZE.unpack(chunk_bytes(chunks[0])[:4]) == (sum(map(len, chunks)) - 4,)


def test_api_versions_request_has_a_flexible_header_from_version_3() -> None:
    frame = b"".join(map(chunk_bytes, encode_request(ApiVersionsRequest(), 3, 1, None)))[4:]
    assert parse_request_header(frame)[1] == 11
