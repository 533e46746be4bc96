"""The Kafka protocol towards one other node: requests with a callback for the response, one at a time.

    client.send(request, then, timeout_s=30)     # then(response) or then(KafkaError(...)), never within the call

The connection is opened for the first request, and again for the first after it was lost. With a `login` it is
authenticated by SASL first; before the session that it gets ends, a new connection takes its place. ApiVersions is
exchanged then, and a request is sent in the highest version that both sides know (KIP-35, KIP-511). One request is in
flight, the others wait in order. Every request ends: with its response, NETWORK_EXCEPTION when the connection is lost
or cannot be opened, REQUEST_TIMED_OUT (with the connection closed, since its late response would follow),
UNSUPPORTED_VERSION, or UNKNOWN_SERVER_ERROR for a response that is not understood, which is no network error and must
not be repeated like one. After a failure the next connection waits `RECONNECT_BACKOFF_S`, so that a caller that
repeats at once does not spin. Record bytes in a response are memoryviews that are valid until `then` returns.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from barnabas.broker.event_loop.guarded import call_guarded, log_failure
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.frame import SIZE, api_versions_response_version, check_frame_size, encode_request
from barnabas.wire.frame import parse_response_header as parse_header
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.security.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from barnabas.wire.registry import message_for

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.timers import Timer
    from barnabas.broker.net.client.login import Login
    from barnabas.broker.net.client.outgoing import Connect, Transport
    from barnabas.wire.messages.security.sasl import SaslAuthenticateResponse, SaslHandshakeResponse
    from barnabas.wire.schema import Message

logger = logging.getLogger("kafka.clients.NetworkClient")

Then: TypeAlias = "Callable[[Any], None]"
"""Called once, with the response's message or a KafkaError."""

RECONNECT_BACKOFF_S: Final = 0.05
"""Kafka's reconnect.backoff.ms between nodes."""
BUFFER_BYTES: Final = 16 * 1024
GROWTH_BYTES: Final = 4 * 1024 * 1024
"""The most bytes by which a response's buffer grows before they have arrived."""
MAX_FRAME_BYTES: Final = 256 * 1024 * 1024
MAX_CORRELATION_ID: Final = 2**31 - 1
SOFTWARE_NAME: Final = "barnabas"
HANDSHAKE_VERSION: Final = 1
AUTHENTICATE_VERSION: Final = 1
"""Every node with SASL has these versions; they are sent before the node is asked for its own."""
SESSION_SHARE: Final = 0.85
"""The part of a session after which a new connection is made, as Kafka's clients authenticate again (KIP-368)."""


class _Request:
    """A request that is in flight or waits."""

    __slots__ = ("correlation_id", "max_version", "message", "then", "timer", "version")

    def __init__(self, message: Message, then: Then, max_version: int | None) -> None:
        self.message = message
        self.then: Then | None = then
        self.max_version = max_version
        self.version = -1
        self.correlation_id = -1
        self.timer: Timer | None = None


class NetworkClient:
    """Sends requests to one node, at its current `address`."""

    def __init__(
        self,
        loop: Loop,
        connect: Connect,
        address: Callable[[], tuple[str, int] | None],
        *,
        client_id: str,
        software_version: str = "unknown",
        max_frame_bytes: int = MAX_FRAME_BYTES,
        login: Callable[[], Login] | None = None,
    ) -> None:
        """`address` returns host and port, None while they are unknown; a different result makes a new connection.

        `login` makes the log-in of each connection; None: they need none.
        """
        self._login = login
        self._session_ends = inf
        self._loop = loop
        self._connect = connect
        self._address = address
        self._client_id = client_id
        self._software_version = software_version
        self._max_frame_bytes = max_frame_bytes
        self._waiting: deque[_Request] = deque()
        self._in_flight: _Request | None = None
        self._negotiation: _Request | None = None
        self._versions: dict[int, tuple[int, int]] | None = None
        self._transport: Transport | None = None
        self._connected_to: tuple[str, int] | None = None
        self._next_connect = -inf
        self._wake: Timer | None = None
        self._correlation_id = 0
        self._buffer = bytearray(BUFFER_BYTES)
        self._received = 0
        self._is_closed = False

    def send(self, request: Message, then: Then, *, timeout_s: float, max_version: int | None = None) -> None:
        """Send a request once those before it are answered; `then` gets the response or a KafkaError.

        `timeout_s` includes the time that it waits and connects; `max_version` caps the version.
        """
        pending = _Request(request, then, max_version)
        now = self._loop.now()
        pending.timer = self._loop.timers.at(now + timeout_s, lambda: self._timed_out(pending))
        self._waiting.append(pending)
        self._wake_at(now)

    def disconnect(self) -> None:
        """Close the connection: a request in flight fails with NETWORK_EXCEPTION, those that wait get a new one."""
        self._lost("it was closed by this node")

    def disconnect_unless(self, address: tuple[str, int] | None) -> None:
        """Close a connection to another address than this one, as `disconnect` does."""
        if self._transport is not None and self._connected_to != address:
            self._next_connect = -inf
            self.disconnect()

    def close(self) -> None:
        """Close for good: all requests fail with NETWORK_EXCEPTION, also later ones."""
        self._is_closed = True
        self._lost("this node closes its connections")
        self._fail_waiting("this node closes its connections")

    # -- progress

    def _wake_at(self, when: float) -> None:
        """Call `_go_on` at a time, never within the call of a user."""
        wake = self._wake
        if wake is not None and wake.callback is not None and wake.deadline <= when:
            return
        if wake is not None:
            wake.cancel()
        self._wake = self._loop.timers.at(when, self._go_on)

    def _go_on(self) -> None:
        """Connect, or send the next request."""
        while self._waiting and self._waiting[0].then is None:
            self._waiting.popleft()
        if not self._waiting or self._in_flight is not None:
            return
        if self._is_closed:
            self._fail_waiting("this node closes its connections")
            return
        address = self._address()
        if self._transport is not None and address is not None and address != self._connected_to:
            self._lost("the node has another address")
        if self._transport is None:
            self._open(address)
        elif self._versions is not None and self._loop.now() >= self._session_ends:
            self._next_connect = -inf
            self._lost("its session ends")
        elif self._versions is not None:
            self._send_next()

    def _open(self, address: tuple[str, int] | None) -> None:
        now = self._loop.now()
        if now < self._next_connect:
            self._wake_at(self._next_connect)
            return
        self._next_connect = now + RECONNECT_BACKOFF_S
        if address is None:
            self._fail_waiting("its address is not known")
            return
        self._connected_to = address
        self._received = 0
        self._transport = self._connect(address[0], address[1], self)

    def _send_next(self) -> None:
        request = self._waiting.popleft()
        message = request.message
        version = self._version_for(message, request.max_version)
        if version is None:
            name = type(message).__name__
            text = f"The node at {self._where()} supports no version of {name} that this node can send."
            self._finish(request, KafkaError(ErrorCode.UNSUPPORTED_VERSION, text))
        else:
            self._transmit(request, version)
        if self._in_flight is None and self._waiting:
            self._wake_at(self._loop.now())

    def _version_for(self, message: Message, max_version: int | None) -> int | None:
        assert self._versions is not None
        supported = self._versions.get(message.api_key)
        if supported is None:
            return None
        highest = min(message.max_version, supported[1])
        if max_version is not None:
            highest = min(highest, max_version)
        return highest if highest >= max(supported[0], message.min_version) else None

    def _transmit(self, request: _Request, version: int) -> None:
        request.version = version
        request.correlation_id = self._correlation_id
        self._correlation_id = 0 if self._correlation_id == MAX_CORRELATION_ID else self._correlation_id + 1
        try:
            chunks = encode_request(request.message, version, request.correlation_id, self._client_id)
        except Exception as error:
            log_failure(f"Encoding {type(request.message).__name__}", error)
            self._finish(request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"The request is invalid: {error}"))
            return
        self._in_flight = request
        assert self._transport is not None
        self._transport.send([chunk if isinstance(chunk, (bytes, memoryview)) else chunk.read() for chunk in chunks])

    # -- the connection (`Peer`)

    def opened(self) -> None:
        """The connection is open: log in if it is needed, and exchange the versions."""
        self._session_ends = inf
        if self._login is None:
            self._negotiate(ApiVersionsRequest.max_version)
        else:
            login = self._login()
            ask = SaslHandshakeRequest(mechanism=login.mechanism)
            self._begin_with(ask, HANDSHAKE_VERSION, lambda response: self._agreed(login, response))

    def _begin_with(self, message: Message, version: int, then: Then) -> None:
        """Send a message that comes before the requests."""
        self._negotiation = _Request(message, then, None)
        self._transmit(self._negotiation, version)

    def _agreed(self, login: Login, response: SaslHandshakeResponse | KafkaError) -> None:
        if isinstance(response, KafkaError):
            return  # the connection is lost
        if response.error_code:
            enabled = ", ".join(response.mechanisms)
            self._refused(f"{login.mechanism}: {ErrorCode(response.error_code).name} (it has {enabled})")
        else:
            self._send_token(login, login.first())

    def _send_token(self, login: Login, token: bytes) -> None:
        ask = SaslAuthenticateRequest(auth_bytes=token)
        self._begin_with(ask, AUTHENTICATE_VERSION, lambda response: self._token_answered(login, response))

    def _token_answered(self, login: Login, response: SaslAuthenticateResponse | KafkaError) -> None:
        if isinstance(response, KafkaError):
            return
        if response.error_code:
            self._refused(f"{ErrorCode(response.error_code).name}: {response.error_message}")
            return
        try:
            token = login.step(bytes(response.auth_bytes))
        except KafkaError as error:
            self._refused(f"{login.mechanism}: {error.message}")
            return
        if token is not None:
            self._send_token(login, token)
            return
        if response.session_lifetime_ms > 0:
            self._session_ends = self._loop.now() + SESSION_SHARE * response.session_lifetime_ms / 1000
        self._negotiate(ApiVersionsRequest.max_version)

    def _refused(self, reason: str) -> None:
        self._negotiation = None
        logger.error("[%s] Authentication at %s failed: %s", self._client_id, self._where(), reason)
        self._failed(f"authentication failed: {reason}")

    def _negotiate(self, version: int) -> None:
        ask = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=self._software_version)
        self._begin_with(ask, version, self._negotiated)

    def _negotiated(self, response: ApiVersionsResponse | KafkaError) -> None:
        self._negotiation = None
        if isinstance(response, KafkaError):
            return  # the connection is lost
        known = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            self._negotiate(min(ApiVersionsRequest.max_version, known.get(ApiVersionsRequest.api_key, (0, 0))[1]))
            return
        if response.error_code:
            self._failed(f"it answers ApiVersions with {ErrorCode(response.error_code).name}")
            return
        self._versions = known
        self._next_connect = -inf
        self._go_on()

    def space(self) -> memoryview:
        """Where the next bytes are received to."""
        buffer, received = self._buffer, self._received
        if received == len(buffer):
            (size,) = SIZE.unpack_from(buffer)
            needed = SIZE.size + size
            larger = bytearray(min(max(needed, 2 * received), received + max(received, GROWTH_BYTES)))
            larger[:received] = buffer
            self._buffer = buffer = larger
        return memoryview(buffer)[received:]

    def filled(self, count: int) -> None:
        """Handle the response when it is complete. Bytes that answer no request close the connection."""
        self._received += count
        while self._received >= SIZE.size and self._transport is not None:
            (size,) = SIZE.unpack_from(self._buffer)
            try:
                check_frame_size(size, self._max_frame_bytes)
                end = SIZE.size + size
                if self._received < end:
                    return
                self._handle(memoryview(self._buffer)[SIZE.size : end], end)
            except ProtocolError as error:
                self._misunderstood(error)
                return

    def _handle(self, frame: memoryview, end: int) -> None:
        request = self._in_flight
        if request is None:
            raise ProtocolError("a response without a request")
        api_key, version = request.message.api_key, request.version
        header, pos = parse_header(frame, api_key, version)
        if header.correlation_id != request.correlation_id:
            raise ProtocolError(f"correlation id {header.correlation_id} in place of {request.correlation_id}")
        if api_key == ApiVersionsRequest.api_key:
            version = api_versions_response_version(frame[pos:], version)
        response, _ = message_for(api_key)[1].codec(version).parse(frame, pos)
        self._in_flight = None
        buffer = self._buffer
        self._finish(request, response)
        if self._buffer is buffer and self._received >= end:  # else the connection was closed
            rest = self._received - end
            if rest:
                self._buffer = bytearray(max(BUFFER_BYTES, rest))
                self._buffer[:rest] = buffer[end : end + rest]
            self._received = rest
        if self._in_flight is None and self._waiting:
            self._go_on()

    def _misunderstood(self, error: ProtocolError) -> None:
        """A response that cannot be read: its request must not be repeated as after a network error."""
        request, self._in_flight = self._in_flight, None
        logger.error("[%s] Invalid response from %s: %s", self._client_id, self._where(), error)
        if request is not None:
            text = f"The response of {self._where()} is invalid: {error}"
            self._finish(request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text))
        self._failed(f"it does not speak the protocol: {error}")

    def ended(self, error: OSError | None) -> None:
        """The connection is lost, or could not be opened: then all requests that wait fail."""
        reason = str(error.strerror or error) if error is not None else "the connection was closed"
        self._transport = None
        self._failed(reason)

    def _failed(self, reason: str) -> None:
        was_ready = self._versions is not None
        self._next_connect = self._loop.now() + RECONNECT_BACKOFF_S
        self._lost(reason)
        if not was_ready:
            self._fail_waiting(reason)

    def _lost(self, reason: str) -> None:
        """Forget the connection; the request in flight fails."""
        transport, self._transport = self._transport, None
        self._versions = None
        self._received = 0
        self._buffer = bytearray(BUFFER_BYTES) if len(self._buffer) > GROWTH_BYTES else bytearray(len(self._buffer))
        if transport is not None:
            transport.close()
        request, self._in_flight = self._in_flight, None
        if request is not None:
            self._finish(request, self._network_error(reason))
        if self._waiting:
            self._wake_at(max(self._loop.now(), self._next_connect))

    def _fail_waiting(self, reason: str) -> None:
        waiting, self._waiting = self._waiting, deque()
        for request in waiting:
            self._finish(request, self._network_error(reason))

    def _network_error(self, reason: str) -> KafkaError:
        return KafkaError(ErrorCode.NETWORK_EXCEPTION, f"No connection to {self._where()}: {reason}.")

    def _timed_out(self, request: _Request) -> None:
        text = f"The node at {self._where()} has not answered in time."
        error = KafkaError(ErrorCode.REQUEST_TIMED_OUT, text)
        if request is self._in_flight:
            self._in_flight = None
            self._finish(request, error)
            self._failed("it has not answered in time")
            return
        is_first = bool(self._waiting) and self._waiting[0] is request
        self._finish(request, error)
        if is_first and self._transport is not None and self._in_flight in {None, self._negotiation}:
            self._failed("it has not answered in time")  # connecting, or exchanging versions

    @staticmethod
    def _finish(request: _Request, outcome: Message | KafkaError) -> None:
        then, request.then = request.then, None
        if request.timer is not None:
            request.timer.cancel()
        if then is not None:
            call_guarded(f"What follows the response to {type(request.message).__name__}", then, outcome)

    def _where(self) -> str:
        address = self._connected_to if self._transport is not None else self._address() or self._connected_to
        return "an unknown address" if address is None else f"{address[0]}:{address[1]}"
