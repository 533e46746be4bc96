"""One connection to one broker: version negotiation (KIP-35), requests pipelined, replies in order.

A request is sent with a callback for its reply; `receive` delivers replies that have arrived; `call` sends and waits.
Every wait has a deadline (monotonic seconds). After an error the connection is closed and all unanswered requests
fail. A request is sent in the newest version that both sides support. The protocol is in `wire.clients.connection`,
socket and clock are here; `security` adds TLS and SASL to a new connection (`barnabas.client.security`).
Before the lifetime of a log-in ends (KIP-368) a request waits until those before it are answered, and for the next
log-in.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from select import select
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from barnabas.client.errors import ClientError, ResponseTooLarge, TimedOut, TlsFailed, Unreachable
from barnabas.wire.clients.connection import Connection, ResponseReceived
from barnabas.wire.errors import ErrorCode, FrameTooLarge, KafkaError, ProtocolError
from barnabas.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.schema import Message
from barnabas.wire.types import chunk_bytes

if TYPE_CHECKING:
    from barnabas.client.security.settings import Security
    from barnabas.client.security.tls import TlsSocket

Reply = TypeVar("Reply", bound=Message)
OnReply = Callable[[Message | None, ClientError | None], None]
"""Called once, with the reply or the error."""

READ_SIZE = 1 << 18
MAX_FRAME_BYTES = 256 * 1024 * 1024
SOFTWARE_NAME = "barnabas"


class NodeConnection:
    """A blocking socket with the client side of the protocol."""

    def __init__(
        self, host: str, port: int, client_id: str, software_version: str, security: Security | None = None
    ) -> None:
        self.host = host
        self.port = port
        self.client_id = client_id
        self.software_version = software_version
        self.security = security
        self.versions: dict[int, ApiVersion] = {}
        self.explains_closing = True
        """Whether another connection is used to explain why one was closed before any answer."""
        self.max_frame_bytes = MAX_FRAME_BYTES
        """A connection with a larger answer is closed (`ResponseTooLarge`)."""
        self._socket: socket.socket | TlsSocket | None = None
        self._log_in_at = 0.0  # monotonic seconds; 0: never again
        self._protocol = _protocol(client_id)
        self._waiting: deque[OnReply] = deque()

    def __repr__(self) -> str:
        return f"<NodeConnection {self.address}, {self.in_flight} in flight>"

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def in_flight(self) -> int:
        """The number of requests without a reply."""
        return len(self._waiting)

    @property
    def is_open(self) -> bool:
        """True from `open` until `close` or an error."""
        return self._socket is not None

    @property
    def certificate_end_s(self) -> float | None:
        """When the broker's certificate ends, seconds since 1970; None without TLS, or if it is not verified."""
        return (
            None
            if self._socket is None or isinstance(self._socket, socket.socket)
            else self._socket.certificate_end_s()
        )

    def fileno(self) -> int:
        """The socket's descriptor, for select; the connection must be open."""
        assert self._socket is not None
        return self._socket.fileno()

    # --- opening and closing

    def open(self, deadline: float) -> None:
        """Connect, request the broker's API versions, and log in.

        Raises `Unreachable`, `TimedOut`, or another `ClientError` if TLS or SASL fails.
        """
        self._log_in_at = 0.0
        self._connect(deadline)
        try:
            self._negotiate(ApiVersionsRequest.max_version, deadline)
        except (TimedOut, TlsFailed):
            raise
        except ClientError as error:
            self._open_with_oldest(error, deadline)
        if self.security is not None:
            self._log_in(deadline)

    def _open_with_oldest(self, first: ClientError, deadline: float) -> None:
        """The broker may not know KIP-511: try version 0, which every version of ApiVersions supports."""
        self._connect(deadline)
        try:
            self._negotiate(0, deadline)
        except ClientError as error:
            if self.security is not None and self.security.has_tls:
                raise first from None
            from barnabas.client.security.diagnosis import tls_missing

            missing = tls_missing(self.host, self.port, self.address)
            if missing is not None:
                raise missing from None
            if not isinstance(error, Unreachable) or self.security is not None:
                raise
            raise Unreachable(f"the server at {self.address} closes connections: is it a Kafka broker?") from None

    def _log_in(self, deadline: float) -> None:
        """Log in, now and before the log-in's lifetime ends. The connection is closed if that fails."""
        assert self.security is not None
        try:
            again_in_s = self.security.authenticate(self, deadline)
        except (ClientError, KafkaError):
            self.close()
            raise
        self._log_in_at = monotonic() + again_in_s if again_in_s > 0 else 0.0

    def _log_in_again(self, deadline: float) -> None:
        """Wait for all answers, then log in again: no other request may come between those of a log-in."""
        self._log_in_at = 0.0
        while self._waiting:
            self._wait(deadline, "the requests before the next log-in")
        self._log_in(deadline)

    def _connect(self, deadline: float) -> None:
        self.close()
        self._protocol = _protocol(self.client_id)
        try:
            host = self.host.encode() if self.host.isascii() else self.host  # bytes: without importing the idna codec
            address: tuple[str, int] = (host, self.port)  # type: ignore[assignment]
            plain = socket.create_connection(address, max(0.001, deadline - monotonic()))
        except TimeoutError:
            raise TimedOut(f"no broker answers at {self.address} (timed out while connecting)") from None
        except OSError as error:
            raise Unreachable(f"no broker answers at {self.address} ({_reason(error)})") from None
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.security is None:
            self._socket = plain
            return
        try:
            self._socket = self.security.wrap(plain, self.host, self.address, deadline)
        except ClientError:
            plain.close()
            raise

    def _negotiate(self, version: int, deadline: float) -> None:
        """Send ApiVersions; a broker that does not support `version` answers in version 0, with its newest."""
        request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=self.software_version)
        response = self._call(request, ApiVersionsResponse, version, deadline)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            known = {entry.api_key: entry.max_version for entry in response.api_keys}
            version = min(version, known.get(ApiVersionsRequest.api_key, 0))
            response = self._call(request, ApiVersionsResponse, version, deadline)
        self.versions = {entry.api_key: entry for entry in response.api_keys}

    def close(self, error: ClientError | None = None) -> None:
        """Close the socket; waiting requests fail."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        waiting, self._waiting = self._waiting, deque()
        for on_reply in waiting:
            on_reply(None, error or Unreachable(f"the connection to {self.address} was closed"))

    # --- requests

    def version_for(self, request: Message, max_version: int | None) -> int:
        """The newest version that both sides support, up to `max_version`; else KafkaError(UNSUPPORTED_VERSION)."""
        ours = type(request)
        name = ours.__name__.removesuffix("Request")
        offered = self.versions.get(ours.api_key)
        if offered is None:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"the broker at {self.address} does not offer {name}")
        version = min(ours.max_version, offered.max_version, ours.max_version if max_version is None else max_version)
        if version < max(ours.min_version, offered.min_version):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the broker at {self.address} offers {name} {offered.min_version}-{offered.max_version}, "
                f"this client supports {ours.min_version}-{ours.max_version}",
            )
        return version

    def call(self, request: Message, reply: type[Reply], deadline: float, max_version: int | None = None) -> Reply:
        """Send a request and wait for its reply. Raises `TimedOut` or `Unreachable`."""
        return self._call(request, reply, self.version_for(request, max_version), deadline)

    def _call(self, request: Message, reply: type[Reply], version: int, deadline: float) -> Reply:
        outcome: list[tuple[Message | None, ClientError | None]] = []
        self._send(request, version, deadline - monotonic())
        self._waiting.append(lambda response, error: outcome.append((response, error)))
        while not outcome:
            self._wait(deadline, type(request).__name__.removesuffix("Request"))
        response, failure = outcome[0]
        if failure is not None:
            raise failure
        assert isinstance(response, reply)
        return response

    def _wait(self, deadline: float, what: str) -> None:
        """Wait for data and deliver the replies that are complete; `TimedOut` at `deadline`, which closes."""
        remaining = deadline - monotonic()
        if remaining <= 0 or not select([self], [], [], remaining)[0]:
            error = TimedOut(f"{self.address} did not answer {what} in time")
            self.close(error)
            raise error
        self.receive()

    def send(
        self, request: Message, on_reply: OnReply, timeout_s: float = 30.0, max_version: int | None = None
    ) -> None:
        """Send a request without waiting; `on_reply` is called by `receive` or `close`, or now after an error."""
        version = self.version_for(request, max_version)
        try:
            self._send(request, version, timeout_s)
        except ClientError as error:
            on_reply(None, error)
            return
        self._waiting.append(on_reply)

    def send_unanswered(self, request: Message, timeout_s: float = 30.0) -> bool:
        """Send a request without a reply (Produce with acks=0); False if the connection is closed."""
        try:
            self._send(request, self.version_for(request, None), timeout_s)
        except ClientError:
            return False
        return True

    def _send(self, request: Message, version: int, timeout_s: float) -> None:
        if self._log_in_at and monotonic() >= self._log_in_at:
            self._log_in_again(monotonic() + timeout_s)
        if self._socket is None:
            raise Unreachable(f"the connection to {self.address} was closed")
        frame = b"".join(map(chunk_bytes, self._protocol.send_request(request, version)))
        self._socket.settimeout(max(0.001, timeout_s))
        try:
            self._socket.sendall(frame)
        except OSError as error:
            failure = Unreachable(f"the connection to {self.address} was lost ({_reason(error)})")
            self.close(failure)
            raise failure from None

    # --- replies

    def receive(self) -> None:
        """Read available data and deliver complete replies; call it when select reports data."""
        if self._socket is None:
            return
        try:
            data = self._socket.recv(READ_SIZE)
        except BlockingIOError:
            return  # a part of a TLS record
        except TlsFailed as error:
            self.close(error)
            return
        except OSError as error:
            self.close(Unreachable(f"the connection to {self.address} was lost ({_reason(error)})"))
            return
        if not data:
            self.close(self._why_closed())
            return
        try:
            self._protocol.max_frame_bytes = self.max_frame_bytes
            self._protocol.receive_data(data)
            while isinstance(event := self._protocol.next_event(), ResponseReceived):
                self.explains_closing = self.explains_closing and not self.versions
                self._waiting.popleft()(event.response, None)
        except ProtocolError as error:
            if isinstance(error, FrameTooLarge) and self.versions:
                self.close(ResponseTooLarge(f"the answer of {self.address}: {error}"))
                return
            self.close(ClientError(f"the server at {self.address} does not speak Kafka's protocol: {error}"))

    def _why_closed(self) -> ClientError:
        """A listener with SASL answers ApiVersions, and closes a connection that does not log in then."""
        if self.explains_closing and self.versions and self._waiting:
            missing = self._login_missing()
            if missing is not None:
                return missing
        return Unreachable(f"the broker at {self.address} closed the connection")

    def _login_missing(self) -> ClientError | None:
        """The error of a listener with SASL, asked on another connection; None if it has none or does not answer."""
        from barnabas.client.security.diagnosis import PATIENCE_S, login_missing

        probe = NodeConnection(self.host, self.port, self.client_id, self.software_version, self.security)
        probe.explains_closing = False
        try:
            probe.open(monotonic() + PATIENCE_S)
            return login_missing(probe, self.security is not None and self.security.has_tls)
        except (ClientError, KafkaError):
            return None
        finally:
            probe.close()


def _protocol(client_id: str) -> Connection:
    return Connection.client(client_id, max_frame_bytes=MAX_FRAME_BYTES)


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]
