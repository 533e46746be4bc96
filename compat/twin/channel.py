"""A connection to one broker: sends requests of any API and version, reads answers with a deadline."""

from __future__ import annotations

import socket
import struct
from collections import deque
from typing import Any

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import KafkaError, ProtocolError
from barnabas.wire.frame import (
    api_versions_response_version,
    message_for,
    request_header_version,
    response_header_version,
)
from barnabas.wire.messages.headers import RequestHeader
from compat.twin.plain import APIS, plain, request_of

WAIT_S = 10.0
CLOSED: dict[str, Any] = {"connection": "closed"}
"""The answer of a broker that closed the connection."""
NO_ANSWER: dict[str, Any] = {"connection": f"no answer in {WAIT_S:.0f} s"}
NONE_EXPECTED: dict[str, Any] = {"connection": "no answer is expected"}


class Channel:
    """One connection to one broker. After a close every request is answered with CLOSED until it is opened again."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self._buffer = bytearray()
        self._next_id = 0
        self.waiting: deque[tuple[int, int, int] | None] = deque()
        """Correlation id, API key and version of the requests without an answer; None for Produce with acks=0."""

    def send(self, api: str, version: int, values: dict[str, Any]) -> None:
        """Send a request; a connection that was closed is opened again."""
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=WAIT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._buffer.clear()
        key = APIS[api]
        self._next_id += 1
        header = RequestHeader(
            request_api_key=key, request_api_version=version, correlation_id=self._next_id, client_id="twin"
        )
        known = version in message_for(key)[0].versions
        body = request_of(api, version, values).encode(version) if known else b""
        frame = header.encode(request_header_version(key, version)) + body
        is_answered = not known or key != ApiKey.PRODUCE or values.get("acks", 0) != 0
        self.waiting.append((self._next_id, key, version) if is_answered else None)
        try:
            self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        except OSError:
            self._drop()

    def read(self) -> dict[str, Any]:
        """The answer to the oldest request that has none."""
        expected = self.waiting.popleft()
        if expected is None:
            return NONE_EXPECTED
        if self._socket is None:
            return CLOSED
        try:
            (size,) = struct.unpack(">i", self._take(4))
            frame = self._take(size)
        except TimeoutError:
            self._drop()
            return NO_ANSWER
        except OSError:
            self._drop()
            return CLOSED
        return _decoded(frame, *expected)

    def _take(self, size: int) -> bytes:
        assert self._socket is not None
        while len(self._buffer) < size:
            part = self._socket.recv(1 << 16)
            if not part:
                raise ConnectionError("closed")
            self._buffer += part
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def close(self) -> None:
        """Close the connection; answers that were not read are lost."""
        self._drop()
        self.waiting.clear()


def _decoded(frame: bytes, correlation_id: int, key: int, version: int) -> dict[str, Any]:
    (got,) = struct.unpack_from(">i", frame)
    if got != correlation_id:
        return {"connection": "an answer to another request"}
    body = frame[4 + response_header_version(key, version) :]
    if key == ApiKey.API_VERSIONS:
        version = api_versions_response_version(body, version)
    try:
        return plain(message_for(key)[1].decode(body, version), version)
    except (ProtocolError, KafkaError) as error:
        return {"connection": f"an answer that cannot be decoded: {error}"}
