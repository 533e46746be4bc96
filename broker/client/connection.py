"""One connection to one broker: version negotiation (KIP-35), requests pipelined, replies in order.

A request is sent with what shall happen to its reply; `receive` delivers what has arrived. `call` does both and
waits. Every wait has a deadline (monotonic seconds). After a failure the connection is closed and every unanswered
request is told. A request goes out in the newest version that both sides know.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from select import select
from struct import Struct
from time import monotonic
from typing import TypeVar

from broker.client.errors import ClientError, TimedOut, Unreachable
from wire.errors import ErrorCode, KafkaError, ProtocolError
from wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from wire.messages.headers import RequestHeader, ResponseHeader
from wire.schema import Message
from wire.types import chunk_bytes

Reply = TypeVar("Reply", bound=Message)
OnReply = Callable[[Message | None, ClientError | None], None]
"""Called once: with the reply, or with what went wrong."""

READ_SIZE = 1 << 18
MAX_FRAME_BYTES = 128 * 1024 * 1024
SOFTWARE_NAME = "barnabas"
_SIZE = Struct(">i")


class Expected:
    """A reply that is awaited."""

    __slots__ = ("correlation_id", "on_reply", "reply", "version")

    def __init__(self, correlation_id: int, reply: type[Message], version: int, on_reply: OnReply) -> None:
        self.correlation_id = correlation_id
        self.reply = reply
        self.version = version
        self.on_reply = on_reply


class NodeConnection:
    """A blocking socket with a Kafka client's side of the protocol on it."""

    def __init__(self, host: str, port: int, client_id: str, software_version: str) -> None:
        self.host = host
        self.port = port
        self.client_id = client_id
        self.software_version = software_version
        self.versions: dict[int, ApiVersion] = {}
        self._socket: socket.socket | None = None
        self._expected: deque[Expected] = deque()
        self._received = bytearray()
        self._correlation_id = 0

    def __repr__(self) -> str:
        return f"<NodeConnection {self.address}, {self.in_flight} in flight>"

    @property
    def address(self) -> str:
        """`host:port`, as a person writes it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def in_flight(self) -> int:
        """Requests that have no reply yet."""
        return len(self._expected)

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
        try:
            self._socket = socket.create_connection((self.host, self.port), max(0.001, deadline - monotonic()))
        except TimeoutError:
            raise TimedOut(f"no broker answers at {self.address} (timed out while connecting)") from None
        except OSError as error:
            raise Unreachable(f"no broker answers at {self.address} ({_reason(error)})") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._negotiate(deadline)

    def _negotiate(self, deadline: float) -> None:
        """Ask in our newest version; a broker that does not know it says so in version 0, with the one it knows."""
        request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=self.software_version)
        version = ApiVersionsRequest.max_version
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
        waiting, self._expected = self._expected, deque()
        self._received.clear()
        for expected in waiting:
            expected.on_reply(None, error or Unreachable(f"the connection to {self.address} was closed"))

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
        self._expect(reply, version, lambda answer, error: outcome.append((answer, error)))
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

    def send(self, request: Message, reply: type[Message], on_reply: OnReply, timeout_s: float = 30.0) -> None:
        """Send a request without waiting; `on_reply` is called by a later `receive` or `close`, or now if it fails."""
        version = self.version_for(request, None)
        try:
            self._send(request, version, timeout_s)
        except ClientError as error:
            on_reply(None, error)
            return
        self._expect(reply, version, on_reply)

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
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = RequestHeader(
            request_api_key=request.api_key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=self.client_id,
        ).encode(2 if version >= request.flexible_since else 1)
        chunks = [header, *map(chunk_bytes, request.encode_chunks(version))]
        frame = b"".join([_SIZE.pack(sum(map(len, chunks))), *chunks])
        self._socket.settimeout(max(0.001, timeout_s))
        try:
            self._socket.sendall(frame)
        except OSError as error:
            failure = Unreachable(f"the connection to {self.address} was lost ({_reason(error)})")
            self.close(failure)
            raise failure from None

    def _expect(self, reply: type[Message], version: int, on_reply: OnReply) -> None:
        self._expected.append(Expected(self._correlation_id, reply, version, on_reply))

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
        self._received += data
        try:
            while (frame := self._next_frame()) is not None:
                self._deliver(frame)
        except ProtocolError as error:
            self.close(ClientError(f"what answers at {self.address} does not speak Kafka's protocol: {error}"))

    def _next_frame(self) -> memoryview | None:
        if len(self._received) < 4:
            return None
        (size,) = _SIZE.unpack_from(self._received)
        if not 0 <= size <= MAX_FRAME_BYTES:
            raise ProtocolError(f"a frame of {size} bytes")
        if len(self._received) < 4 + size:
            return None
        frame = bytes(memoryview(self._received)[4 : 4 + size])
        del self._received[: 4 + size]
        return memoryview(frame)

    def _deliver(self, frame: memoryview) -> None:
        if not self._expected:
            raise ProtocolError("a reply that nobody asked for")
        expected = self._expected[0]
        reply, version = expected.reply, expected.version
        flexible = version >= reply.flexible_since and reply is not ApiVersionsResponse
        header, pos = ResponseHeader.codec(1 if flexible else 0).parse(frame)
        if header.correlation_id != expected.correlation_id:
            raise ProtocolError(f"a reply to request {header.correlation_id} instead of {expected.correlation_id}")
        body = frame[pos:]
        if reply is ApiVersionsResponse and body[:2] == _UNSUPPORTED_VERSION:
            message: Message = _unsupported(body)
        else:
            message = reply.decode(body, version)
        self._expected.popleft()
        expected.on_reply(message, None)


def _unsupported(body: memoryview) -> ApiVersionsResponse:
    """KIP-511: the one answer that is older than its request. Some servers get its form wrong; the code is enough."""
    try:
        return ApiVersionsResponse.decode(body, 0)
    except ProtocolError:
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)


_UNSUPPORTED_VERSION = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    return (error.strerror or str(error)).lower()
