"""Frames and headers: a size of four bytes, a request or response header, the message.

The request header has version 2 for flexible versions of a message and version 1 otherwise; the response header 1 and
0. ApiVersions has two exceptions, handled here and in `connection.py`: its response header is always version 0, and a
request of an unknown version is answered in version 0, since a client must be able to read the response before it knows
the broker's versions (KIP-482, KIP-511).

A size is checked before anything is allocated. An invalid size that is the start of another protocol (HTTP, TLS, SSH)
gets an error text that names the protocol.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.codec.runtime import unknown_tags
from barnabas.wire.errors import ErrorCode, FrameTooLarge, ProtocolError
from barnabas.wire.messages.headers import RequestHeader, ResponseHeader
from barnabas.wire.registry import message_for

if TYPE_CHECKING:
    from barnabas.wire.schema import Message
    from barnabas.wire.types import Chunk, TaggedField

__all__ = [
    "DEFAULT_MAX_FRAME_BYTES", "api_versions_response_version", "check_frame_size", "encode_request", "encode_response",
    "message_for", "parse_request_header", "parse_response_header", "request_header_version", "response_header_version",
]  # fmt: skip

DEFAULT_MAX_FRAME_BYTES = 100 * 1024 * 1024
"""Kafka's default of socket.request.max.bytes."""

SIZE = Struct(">i")
_REQUEST_HEAD = Struct(">hhih")  # api key, api version, correlation id, length of the client id
_RESPONSE_HEAD = Struct(">i")
_ERROR_CODE = Struct(">h")
_MIN_FRAME = 4

_flexible_since: dict[int, int] = {}


def check_frame_size(size: int, limit: int = DEFAULT_MAX_FRAME_BYTES) -> None:
    """ProtocolError for an invalid frame size; the text names the protocol that the peer probably speaks instead."""
    if _MIN_FRAME <= size <= limit:
        return
    start = SIZE.pack(size)
    if start in (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"DELE", b"PRI "):
        raise ProtocolError("an HTTP request was sent to a Kafka port: this port does not speak HTTP")
    if start[:2] == b"\x16\x03":
        raise ProtocolError(
            "a TLS handshake was sent to a listener without TLS: set security.protocol=PLAINTEXT in the client, or "
            "SASL_PLAINTEXT where it logs in, or use the TLS port"
        )
    if start[:2] == b"\x15\x03":
        raise ProtocolError("a TLS alert was sent in place of a frame: the peer expects TLS on this port")
    if start[:3] == b"SSH":
        raise ProtocolError("an SSH client connected to a Kafka port")
    if size < 0:
        raise ProtocolError(f"a frame of negative size {size}: the peer does not speak the Kafka protocol")
    if size < _MIN_FRAME:
        raise ProtocolError(f"a frame of {size} bytes is shorter than any header")
    raise FrameTooLarge(f"a frame of {size} bytes is larger than the {limit} allowed (socket.request.max.bytes)")


def _first_flexible(api_key: int) -> int:
    version = _flexible_since.get(api_key)
    if version is None:
        version = _flexible_since[api_key] = message_for(api_key)[0].flexible_since
    return version


def request_header_version(api_key: int, version: int) -> int:
    """2 if the request is flexible, otherwise 1. ProtocolError for an unknown API."""
    return 2 if version >= _first_flexible(api_key) else 1


def response_header_version(api_key: int, version: int) -> int:
    """1 if the response is flexible, otherwise 0; ApiVersions always 0. ProtocolError for an unknown API."""
    return 1 if api_key != ApiKey.API_VERSIONS and version >= _first_flexible(api_key) else 0


def parse_request_header(frame: bytes | memoryview) -> tuple[RequestHeader, int]:
    """The header of a request frame (without its size), and the position of the body.

    The same as RequestHeader's codec, without copying the frame. ProtocolError for an unknown API or an invalid header;
    the caller checks whether the version exists.
    """
    try:
        api_key, api_version, correlation_id, size = _REQUEST_HEAD.unpack_from(frame)
        pos = 10
        client_id = None
        if size >= 0:
            pos += size
            if pos > len(frame):
                raise ProtocolError("a request header with a truncated client id")
            client_id = str(frame[10:pos], "utf-8")
        tags: tuple[TaggedField, ...] = ()
        if api_version >= _first_flexible(api_key):
            if frame[pos]:
                tags, pos = unknown_tags(frame, pos, len(frame))
            else:
                pos += 1
    except (struct_error, IndexError):
        raise ProtocolError("a request shorter than its header") from None
    except UnicodeDecodeError:
        raise ProtocolError("a request header with a client id that is not UTF-8") from None
    header = RequestHeader(
        request_api_key=api_key, request_api_version=api_version, correlation_id=correlation_id, client_id=client_id
    )
    header.unknown_tagged_fields = tags
    return header, pos


def parse_response_header(frame: bytes | memoryview, api_key: int, version: int) -> tuple[ResponseHeader, int]:
    """The header of a response frame (without its size), and the position of the body."""
    try:
        header = ResponseHeader(correlation_id=_RESPONSE_HEAD.unpack_from(frame)[0])
        pos = 4
        if response_header_version(api_key, version):
            header.unknown_tagged_fields, pos = unknown_tags(frame, pos, len(frame))
    except (struct_error, IndexError):
        raise ProtocolError("a response shorter than its header") from None
    return header, pos


def api_versions_response_version(body: bytes | memoryview, requested: int) -> int:
    """The version of an ApiVersions response: 0 if its error is UNSUPPORTED_VERSION, otherwise the requested one.

    The error code is the first field of every version (KIP-511).
    """
    unsupported = len(body) >= 2 and _ERROR_CODE.unpack_from(body)[0] == ErrorCode.UNSUPPORTED_VERSION
    return 0 if unsupported else requested


def encode_request(request: Message, version: int, correlation_id: int, client_id: str | None) -> list[Chunk]:
    """A request frame with its size, in chunks; records are not copied. Errors as `Message.encode`."""
    header = RequestHeader(
        request_api_key=request.api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return _frame(header.encode(request_header_version(request.api_key, version)), request.encode_chunks(version))


def encode_response(response: Message, version: int, correlation_id: int) -> list[Chunk]:
    """A response frame with its size, in chunks; records are not copied. Errors as `Message.encode`."""
    header = _RESPONSE_HEAD.pack(correlation_id)
    if response_header_version(response.api_key, version):
        header += b"\0"
    return _frame(header, response.encode_chunks(version))


def _frame(header: bytes, body: list[Chunk]) -> list[Chunk]:
    size = SIZE.pack(len(header) + sum(map(len, body)))
    first = body[0]
    if isinstance(first, bytes):
        return [b"".join((size, header, first)), *body[1:]]
    return [size + header, *body]
