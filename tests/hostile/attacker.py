"""A client that sends any bytes: requests, frames that are built by hand, pieces of frames."""

from __future__ import annotations

import select
import socket
import ssl
import struct
import time
from typing import Any

from barnabas.wire.frame import request_header_version
from barnabas.wire.messages.headers import RequestHeader
from barnabas.wire.schema import Message
from tests.hostile.harness import HealthyClient, StalledError, Victim
from tests.support.requests.raw_client import RawClient

WAIT_S = 90.0


def frame_of(
    api_key: int, version: int, body: bytes, correlation_id: int = 0, client_id: str | None = "hostile"
) -> bytes:
    """A frame with its size around an encoded body."""
    header = RequestHeader(
        request_api_key=api_key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    ).encode(request_header_version(api_key, version))
    return struct.pack(">i", len(header) + len(body)) + header + body


def frame(request: Message, version: int, correlation_id: int = 0) -> bytes:
    """A frame with its size of a request."""
    return frame_of(request.api_key, version, request.encode(version), correlation_id)


class Attacker(RawClient):
    """One connection. With `beside`, it does not wait longer for a response once the healthy client is stalled."""

    def __init__(self, victim: Victim, beside: HealthyClient | None = None, *, logs_in: bool = True) -> None:
        """`logs_in`: whether the client authenticates by SASL, where it has to; TLS begins in any case."""
        super().__init__(victim.bootstrap, "hostile")
        self.socket.settimeout(WAIT_S)
        self._beside = beside
        victim.secure(self, logs_in=logs_in)
        if beside is not None:
            beside.at_end.append(self.close)

    def send_body(self, request_class: type[Message], version: int, body: bytes) -> None:
        """Send a request whose body is built by hand; `read` decodes its response."""
        frame = frame_of(request_class.api_key, version, body, len(self.sent))
        self.sent.append((request_class.api_key, version))
        self.socket.sendall(frame)

    def read(self) -> Any:
        """The next response, or StalledError once the healthy client is stalled."""
        self._wait_readable()
        return super().read()

    def read_or_closed(self) -> Any:
        """The next response, or None if the broker closes the connection instead."""
        try:
            return self.read()
        except ConnectionError:
            return None

    def _wait_readable(self) -> None:
        deadline = time.monotonic() + WAIT_S
        while not self._has_unread() and not select.select([self.socket], [], [], 0.01)[0]:
            if self._beside is not None and self._beside.is_stalled:
                raise StalledError
            assert time.monotonic() < deadline, "the attacker got no response"

    def _has_unread(self) -> bool:
        """Whether bytes wait inside TLS, of which `select` does not know."""
        return isinstance(self.socket, ssl.SSLSocket) and bool(self.socket.pending())

    def is_closed_by_broker(self) -> bool:
        """Wait until the broker has closed the connection; False if it sends something instead."""
        self._wait_readable()
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def __enter__(self) -> Attacker:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def reset(self) -> None:
        """Close the connection with RST, so that nothing more can be sent to it."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
