"""Other nodes that a test scripts, over loopback sockets, and the side of the broker that talks to them.

Everything runs in the test's own thread: `Wire.until` takes turns of the reactor, of the nodes and of the timers. Time
is the test's: it moves only with `advance`.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from barnabas.broker.event_loop.loop import Loop
from barnabas.broker.event_loop.steps import StepRunner
from barnabas.broker.net.client.outgoing import Outgoing
from barnabas.broker.net.limits import Limits
from barnabas.broker.net.reactor import Reactor
from barnabas.broker.world import World
from barnabas.wire.clients.connection import Connection as Protocol
from barnabas.wire.clients.connection import ConnectionClosed, NeedData, RequestReceived
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.registry import message_for
from barnabas.wire.schema import Message
from barnabas.wire.types import chunk_bytes
from tests.support.world import START_MS, Flushes

MAX_TURNS = 3000
STEP_S = 0.01
TURNS_OF_STEP = 4

Handler = Callable[[Any, int], "Message | bytes | None"]


class ScriptedNode:
    """A node that answers as the test says: by request class, a function of request and version.

    None as an answer leaves the request unanswered; bytes are sent as they are.
    """

    def __init__(self, port: int = 0) -> None:
        self.listening = socket.create_server(("127.0.0.1", port))
        self.listening.setblocking(False)
        self.port: int = self.listening.getsockname()[1]
        self.handlers: dict[type[Message], Handler] = {}
        self.versions: dict[int, tuple[int, int]] = {}
        """Ranges of versions in place of the declared ones."""
        self.requests: list[Message] = []
        self.received_versions: list[int] = []
        self.peers: list[tuple[socket.socket, Protocol]] = []
        self.is_silent = False
        self.asks_again = False
        """Whether handlers are called again, in each turn, for requests that they have not answered."""
        self._unanswered: list[tuple[socket.socket, Protocol, RequestReceived]] = []
        self._out: dict[socket.socket, bytearray] = {}

    @property
    def address(self) -> tuple[str, int]:
        return ("127.0.0.1", self.port)

    def on(self, request: type[Message], handler: Handler) -> None:
        self.handlers[request] = handler

    def turn(self) -> None:
        """Accept, and answer what has arrived."""
        if self.listening.fileno() >= 0:
            try:
                accepted, _ = self.listening.accept()
                accepted.setblocking(False)
                self.peers.append((accepted, Protocol.server()))
            except BlockingIOError:
                pass
        if self.is_silent:
            return
        if self.asks_again:
            self._ask_again()
        for peer, protocol in list(self.peers):
            self._send(peer, b"")
            try:
                data = peer.recv(1 << 20)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if not data:
                peer.close()
                self.peers.remove((peer, protocol))
                continue
            protocol.receive_data(data)
            self._answer(peer, protocol)

    def _answer(self, peer: socket.socket, protocol: Protocol) -> None:
        while not isinstance(event := protocol.next_event(), (NeedData, ConnectionClosed)):
            assert isinstance(event, RequestReceived)
            self._answer_one(peer, protocol, event, self._answer_to(event))

    def _answer_one(
        self, peer: socket.socket, protocol: Protocol, event: RequestReceived, response: Message | bytes | None
    ) -> None:
        waiting = (peer, protocol, event)
        if response is None:
            if waiting not in self._unanswered:
                self._unanswered.append(waiting)
            return
        if waiting in self._unanswered:
            self._unanswered.remove(waiting)
        if isinstance(response, bytes):
            self._send(peer, response)
            return
        if isinstance(response, ApiVersionsResponse) and response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            event = event._replace(version=0)  # KIP-511
        self._send(peer, b"".join(map(chunk_bytes, protocol.send_response(response, event))))

    def _ask_again(self) -> None:
        for peer, protocol, event in list(self._unanswered):
            if peer.fileno() < 0:
                self._unanswered.remove((peer, protocol, event))
                continue
            response = self.handlers[type(event.request)](event.request, event.version)
            self._answer_one(peer, protocol, event, response)

    def _send(self, peer: socket.socket, data: bytes) -> None:
        out = self._out.setdefault(peer, bytearray())
        out += data
        try:
            while out:
                del out[: peer.send(out)]
        except OSError:
            pass  # later, or never

    def _answer_to(self, event: RequestReceived) -> Message | bytes | None:
        request = event.request
        if isinstance(request, ApiVersionsRequest):
            handler = self.handlers.get(ApiVersionsRequest)
            if handler is not None:
                return handler(request, event.header.request_api_version)
            keys = {request_class.api_key for request_class in self.handlers}
            return ApiVersionsResponse(
                api_keys=[ApiVersion(api_key=18, min_version=0, max_version=4), *map(self._range, keys)]
            )
        self.requests.append(request)
        self.received_versions.append(event.version)
        handler = self.handlers.get(type(request))
        return None if handler is None else handler(request, event.version)

    def _range(self, key: int) -> ApiVersion:
        declared = message_for(key)[0]
        low, high = self.versions.get(key, (declared.min_version, declared.max_version))
        return ApiVersion(api_key=key, min_version=low, max_version=high)

    def disconnect(self) -> None:
        """Close all connections."""
        for peer, _ in self.peers:
            peer.close()
        self.peers.clear()

    def close(self) -> None:
        """The node is gone: nothing listens any more."""
        self.disconnect()
        self.listening.close()


class Wire:
    """The broker's side: a reactor with outgoing connections, and the test's clock."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.disk = Flushes()
        self.world = World(now=lambda: self.now, now_ms=lambda: self.now_ms, disk=self.disk)
        self.loop = Loop(self.world.now, self.world.now_ms)
        self.runner = StepRunner(self.loop, self.disk)
        self.reactor = Reactor(self.loop, Limits(), lambda connection, frame: None)
        self.outgoing = Outgoing(self.loop, self.disk)
        self.outgoing.attach(self.reactor.poller)
        self.nodes: list[ScriptedNode] = []
        self.loops = [self.loop]
        self.to_close = [self.outgoing]

    @property
    def now_ms(self) -> int:
        """The wall clock, ms since 1970."""
        return START_MS + int((self.now - 1000.0) * 1000)

    def node(self, port: int = 0) -> ScriptedNode:
        node = ScriptedNode(port)
        self.nodes.append(node)
        return node

    def turn(self, linger_s: float = 0.001) -> None:
        self.reactor.turn(linger_s)
        for node in self.nodes:
            node.turn()
        for loop in self.loops:
            loop.timers.fire(self.now)
            loop.end_turn()

    def until(self, condition: Callable[[], object]) -> None:
        """Take turns until `condition` holds."""
        for _ in range(MAX_TURNS):
            if condition():
                return
            self.turn()
        raise AssertionError("the condition does not hold after many turns")

    def settle(self, turns: int = 20) -> None:
        """Take some turns, for what must not happen."""
        for _ in range(turns):
            self.turn()

    def advance(self, seconds: float) -> None:
        """Advance the time in small steps; in each step every node takes turns."""
        end = self.now + seconds
        while self.now < end - 1e-9:
            self.now = min(end, self.now + STEP_S)
            for _ in range(TURNS_OF_STEP):
                self.turn(0.0)

    def close(self) -> None:
        for outgoing in self.to_close:
            outgoing.close()
        for node in self.nodes:
            node.close()
        self.reactor.acceptor.close()
        self.reactor.poller.close()


class Answers:
    """Collects what callbacks are called with."""

    def __init__(self) -> None:
        self.all: list[Any] = []

    def __call__(self, outcome: Any) -> None:
        self.all.append(outcome)

    @property
    def codes(self) -> list[ErrorCode | None]:
        """The error codes, None for a response."""
        return [outcome.code if isinstance(outcome, KafkaError) else None for outcome in self.all]
