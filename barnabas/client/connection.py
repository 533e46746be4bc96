"""One connection to one broker: version negotiation (KIP-35), requests pipelined, replies in order.

A request is sent with what shall happen to its reply; `receive` delivers what has arrived. `call` does both and
waits. Every wait has a deadline (monotonic seconds). After a failure the connection is closed and every unanswered
request is told. A request goes out in the newest version that both sides know. The protocol itself is
`wire.connection`'s; here are the socket and the clock.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from select import select
from time import monotonic
from typing import TypeVar

from barnabas.client.errors import ClientError, TimedOut, Unreachable
from barnabas.wire.connection import Connection, ResponseReceived
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.schema import Message
from barnabas.wire.types import chunk_bytes

Reply = TypeVar("Reply", bound=Message)
OnReply = Callable[[Message | None, ClientError | None], None]
"""Called once: with the reply, or with what went wrong."""

READ_SIZE = 1 << 18
MAX_FRAME_BYTES = 256 * 1024 * 1024
SOFTWARE_NAME = "barnabas"


class NodeConnection:
    """A blocking socket with a Kafka client's side of the protocol on it."""

    def __init__(self, host: str, port: int, client_id: str, software_version: str) -> None:
        self.host = host
        self.port = port
        self.client_id = client_id
        self.software_version = software_version
        self.versions: dict[int, ApiVersion] = {}
        self._socket: socket.socket | None = None
        self._protocol = _protocol(client_id)
        self._waiting: deque[OnReply] = deque()

    def __repr__(self) -> str:
        return f"<NodeConnection {self.address}, {self.in_flight} in flight>"

    @property
    def address(self) -> str:
        """`host:port`, as a person writes it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def in_flight(self) -> int:
        """Requests that have no reply yet."""
        return len(self._waiting)

    @property
    def is_open(self) -> bool:
        """True between `open` and `close`, until something fails."""
        return self._socket is not None

    def fileno(self) -> int:
        """The socket's descriptor, for select; the connection must be open."""
        assert self._socket is not None
        return self._socket.fileno()

    # --- opening and closing

    def open(self, deadline: float) -> None:
        """Connect and learn which versions the broker speaks. `Unreachable` or `TimedOut` with a sentence."""
        self._connect(deadline)
        try:
            self._negotiate(ApiVersionsRequest.max_version, deadline)
        except TimedOut:
            raise
        except ClientError:
            # Whatever it is, it does not know KIP-511; version 0 is as old as the question itself.
            self._connect(deadline)
            try:
                self._negotiate(0, deadline)
            except Unreachable:
                raise Unreachable(f"what listens at {self.address} hangs up: is it a Kafka broker?") from None

    def _connect(self, deadline: float) -> None:
        self._protocol = _protocol(self.client_id)
        try:
            self._socket = socket.create_connection((self.host, self.port), max(0.001, deadline - monotonic()))
        except TimeoutError:
            raise TimedOut(f"no broker answers at {self.address} (timed out while connecting)") from None
        except OSError as error:
            raise Unreachable(f"no broker answers at {self.address} ({_reason(error)})") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _negotiate(self, version: int, deadline: float) -> None:
        """Ask in one version; a broker that does not know it says so in version 0, with the newest it knows."""
        request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=self.software_version)
        response = self._call(request, ApiVersionsResponse, version, deadline)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            known = {entry.api_key: entry.max_version for entry in response.api_keys}
            version = min(version, known.get(ApiVersionsRequest.api_key, 0))
            response = self._call(request, ApiVersionsResponse, version, deadline)
        self.versions = {entry.api_key: entry for entry in response.api_keys}

    def close(self, error: ClientError | None = None) -> None:
        """Close the socket and tell every request that waits."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        waiting, self._waiting = self._waiting, deque()
        for on_reply in waiting:
            on_reply(None, error or Unreachable(f"the connection to {self.address} was closed"))

    # --- requests

    def version_for(self, request: Message, max_version: int | None) -> int:
        """The newest version both sides know, up to `max_version`; KafkaError(UNSUPPORTED_VERSION) without one."""
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
                f"this client speaks {ours.min_version}-{ours.max_version}",
            )
        return version

    def call(self, request: Message, reply: type[Reply], deadline: float, max_version: int | None = None) -> Reply:
        """Send a request and wait for its reply. `TimedOut` or `Unreachable` when none comes."""
        return self._call(request, reply, self.version_for(request, max_version), deadline)

    def _call(self, request: Message, reply: type[Reply], version: int, deadline: float) -> Reply:
        outcome: list[tuple[Message | None, ClientError | None]] = []
        self._send(request, version, deadline - monotonic())
        self._waiting.append(lambda answer, error: outcome.append((answer, error)))
        while not outcome:
            left = deadline - monotonic()
            if left <= 0 or not select([self], [], [], left)[0]:
                error = TimedOut(
                    f"{self.address} did not answer {type(request).__name__.removesuffix('Request')} in time"
                )
                self.close(error)
                raise error
            self.receive()
        answer, failure = outcome[0]
        if failure is not None:
            raise failure
        assert isinstance(answer, reply)
        return answer

    def send(self, request: Message, on_reply: OnReply, timeout_s: float = 30.0) -> None:
        """Send a request without waiting; `on_reply` is called by a later `receive` or `close`, or now if it fails."""
        version = self.version_for(request, None)
        try:
            self._send(request, version, timeout_s)
        except ClientError as error:
            on_reply(None, error)
            return
        self._waiting.append(on_reply)

    def send_unanswered(self, request: Message, timeout_s: float = 30.0) -> bool:
        """Send a request that has no reply (Produce with acks=0); False when the connection is gone."""
        try:
            self._send(request, self.version_for(request, None), timeout_s)
        except ClientError:
            return False
        return True

    def _send(self, request: Message, version: int, timeout_s: float) -> None:
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
        """Read what has arrived (select says there is something) and deliver whole replies."""
        if self._socket is None:
            return
        try:
            data = self._socket.recv(READ_SIZE)
        except OSError as error:
            self.close(Unreachable(f"the connection to {self.address} was lost ({_reason(error)})"))
            return
        if not data:
            self.close(Unreachable(f"the broker at {self.address} closed the connection"))
            return
        try:
            self._protocol.receive_data(data)
            while isinstance(event := self._protocol.next_event(), ResponseReceived):
                self._waiting.popleft()(event.response, None)
        except ProtocolError as error:
            self.close(ClientError(f"what answers at {self.address} does not speak Kafka's protocol: {error}"))


def _protocol(client_id: str) -> Connection:
    return Connection.client(client_id, max_frame_bytes=MAX_FRAME_BYTES)


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    return (error.strerror or str(error)).lower()
