"""The network of a run: each connection keeps its order; connections break, and some delay requests for long.

A request arrives after a delay, and so does its response. What was sent on a connection arrives even when the client
has closed it in the meantime, before the close: a request of one transaction can arrive during a later one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.apis.dispatcher import Dispatcher
from barnabas.broker.net.connection import Connection
from barnabas.broker.net.frame_buffers import FrameBuffers
from barnabas.wire.frame import encode_request, parse_response_header
from barnabas.wire.registry import message_for
from barnabas.wire.types import chunk_bytes
from tests.simulation.faults import RequestOutcome

if TYPE_CHECKING:
    from barnabas.wire.schema import Message
    from tests.simulation.broker.node import SimulatedNode
    from tests.simulation.environment import Environment

MAX_FRAME_BYTES = 1 << 20
AFTERMATH_S = 10.0
"""The time that the effects of a late request last, such as a rebalance started by a late JoinGroup."""
_SIZE = Struct(">i")

ResponseCallback = Callable[["Message | None"], None]
"""Called with the response; None when the connection broke or the request timed out."""


class Observer(Protocol):
    """Sees requests and responses at the moment the broker receives or sends them."""

    def request_received(self, wire: Wire, request: Message) -> None:
        """The broker receives a request."""

    def response_sent(self, wire: Wire, request: Message, response: Message) -> None:
        """The broker sends a response."""

    def connection_closed(self, wire: Wire) -> None:
        """The broker's end of a connection is closed."""


class Network:
    """All connections."""

    def __init__(self, environment: Environment, node: SimulatedNode) -> None:
        self.environment = environment
        self.node = node
        node.connections = self
        self.observer: Observer | None = None
        self.quiet_at = 0.0
        """When the last late request has arrived and its effects are over."""
        self._wires: dict[Wire, None] = {}
        self.active: dict[Wire, None] = {}
        """Connections to which the broker may have written in this turn."""
        self.buffers = FrameBuffers()

    def server(self, on_output: Callable[[Connection], object], *, peer: str = "10.0.0.1") -> Connection:
        """The broker's end of a new connection."""
        assert self.node.broker is not None
        return Connection(
            Dispatcher(self.node.broker).dispatch,
            listener="PLAINTEXT",
            peer=(peer, 5000),
            local=("127.0.0.1", 9092),
            max_frame_bytes=MAX_FRAME_BYTES,
            buffers=self.buffers,
            on_output=on_output,
            clock=lambda: self.environment.clock.now,
        )

    def link(self, client_id: str, _lane: str) -> Link:
        """A client's connection, which is opened when it is needed."""
        return Link(self, client_id)

    def connect(self, link: Link) -> Wire | None:
        """Open a connection to the broker; None when the broker is down."""
        if not self.node.is_up:
            return None
        wire = Wire(self, link)
        self._wires[wire] = None
        return wire

    def remove(self, wire: Wire) -> None:
        """The broker's end of a connection is closed."""
        self._wires.pop(wire, None)

    def break_all(self) -> None:
        """Break every connection, because the broker has crashed."""
        self.active.clear()
        wires, self._wires = self._wires, {}
        for wire in wires:
            wire.server = None
            self.environment.clock.after(self.environment.random.uniform(0, 0.05), wire.drop)

    def send_responses(self) -> None:
        """Send what the broker has written to the connections in this turn."""
        while self.active:
            active, self.active = self.active, {}
            for wire in active:
                wire.send_responses()


class Wire:
    """One connection."""

    def __init__(self, network: Network, link: Link) -> None:
        self._network = network
        self._environment = network.environment
        self._link: Link | None = link
        self._arrives_up = self._arrives_down = 0.0
        self._loses_responses = False
        self._is_ending = False
        self.incarnation = network.node.incarnation
        self.arrived_at = 0.0
        """When the broker received the last request that an observer was interested in."""
        self._unanswered: list[tuple[Message, int]] = []
        """The requests that the broker has received and not answered, with their versions."""
        self.server: Connection | None = network.server(lambda _: network.active.setdefault(self))

    def send(self, data: bytes, request: tuple[Message, int], outcome: RequestOutcome, *, may_outlive: bool) -> None:
        """Send a request. Unless it may outlive the connection, it is lost when the client closes the connection."""
        environment = self._environment
        if outcome is RequestOutcome.LOST:
            self._break_soon()
            return
        if outcome is RequestOutcome.RESPONSE_LOST:
            self._loses_responses = True
        delay = environment.random.expovariate(1 / environment.faults.mean_delay_s)
        if outcome is RequestOutcome.LATE:
            delay += environment.random.uniform(0, environment.faults.late_s)
        moment = self._arrives_up = max(self._arrives_up, environment.clock.now + delay)
        if outcome is RequestOutcome.LATE:
            self._network.quiet_at = max(self._network.quiet_at, moment + AFTERMATH_S)
        environment.clock.after(
            moment - environment.clock.now, lambda: self._arrive(data, request, may_outlive=may_outlive)
        )

    def _break_soon(self) -> None:
        """Half of the time the client notices immediately, else only when its request times out."""
        environment = self._environment
        if environment.random.random() < 0.5:
            environment.clock.after(environment.random.uniform(0, 0.05), self.drop)

    def _arrive(self, data: bytes, request: tuple[Message, int], *, may_outlive: bool) -> None:
        if self.server is None or self._is_ending or not (self._link is not None or may_outlive):
            return
        self._environment.trace.note_bytes("request", data)
        self._network.node.turn_with(lambda: self._feed(data, request))

    def _feed(self, data: bytes, request: tuple[Message, int]) -> None:
        if self.server is not None:
            network = self._network
            network.active[self] = None
            if network.observer is not None:
                self._unanswered.append(request)
                network.observer.request_received(self, request[0])
            self.server.receive(memoryview(bytearray(data)), self._environment.clock.now)

    def send_responses(self) -> None:
        """Send what the broker has written to the client."""
        server = self.server
        if server is None:
            return
        assert not server.is_closing, "the broker closes a connection without a protocol error"
        if not server.out:
            return
        data = b"".join(chunk_bytes(chunk) for chunk in server.out)
        server.out.clear()
        server.out_bytes = 0
        server.resume(self._environment.clock.now)
        if server.out:
            self._network.active[self] = None
        if self._network.observer is not None:
            self._show(data, self._network.observer)
        if self._loses_responses:
            self._break_soon()
            return
        environment = self._environment
        delay = environment.random.expovariate(1 / environment.faults.mean_delay_s)
        moment = self._arrives_down = max(self._arrives_down, environment.clock.now + delay)
        environment.clock.after(moment - environment.clock.now, lambda: self._response_arrived(data))

    def _show(self, data: bytes, observer: Observer) -> None:
        request, version = self._unanswered.pop(0)
        _, position = parse_response_header(data[4:], request.api_key, version)
        observer.response_sent(self, request, message_for(request.api_key)[1].decode(data[4 + position :], version))

    def _response_arrived(self, data: bytes) -> None:
        if self._link is not None:
            self._link.take(self, data)

    def drop(self) -> None:
        """The client notices that the connection is broken."""
        link, self._link = self._link, None
        self._end_server()
        if link is not None:
            link.lost(self)

    def close(self) -> None:
        """Close the client's end; the broker notices after everything that was sent has arrived."""
        self._link = None
        environment = self._environment
        delay = environment.random.expovariate(1 / environment.faults.mean_delay_s)
        moment = max(self._arrives_up, environment.clock.now + delay)
        environment.clock.after(moment - environment.clock.now, self._end_server)

    def _end_server(self) -> None:
        if not self._is_ending:
            self._is_ending = True
            self._network.node.turn_with(self._close_server)

    def _close_server(self) -> None:
        server, self.server = self.server, None
        if server is not None:
            self._network.remove(self)
            observer = self._network.observer
            if observer is not None:
                observer.connection_closed(self)
            server.close()


@dataclass
class _Waiting:
    correlation_id: int
    api_key: int
    version: int
    on_response: ResponseCallback


class Link:
    """A client's end: one request at a time, over a connection that is opened when needed."""

    def __init__(self, network: Network, client_id: str) -> None:
        self._network = network
        self._environment = network.environment
        self._client_id = client_id
        self._wire: Wire | None = None
        self._waiting: _Waiting | None = None
        self._count = 0
        self.incarnation = 0
        """The number of the broker's start that the last response is from."""
        self.is_current = True
        self._inbox = bytearray()

    def ask(
        self,
        request: Message,
        version: int,
        on_response: ResponseCallback,
        timeout_s: float,
        *,
        may_outlive: bool = True,
    ) -> None:
        """Send a request."""
        environment = self._environment
        assert self._waiting is None
        self._count += 1
        count = self._count
        waiting = self._waiting = _Waiting(count, request.api_key, version, on_response)
        if self._wire is None:
            self._wire = self._network.connect(self)
            self._inbox.clear()
        if self._wire is None:
            environment.clock.after(environment.random.uniform(0.02, 0.2), lambda: self._time_out(waiting))
            return
        chunks = encode_request(request, version, count, self._client_id)
        data = b"".join(chunk_bytes(chunk) for chunk in chunks)
        outcome = environment.faults.outcome(environment.random)
        self._wire.send(data, (request, version), outcome, may_outlive=may_outlive)
        environment.clock.after(timeout_s, lambda: self._time_out(waiting))

    def _time_out(self, waiting: _Waiting) -> None:
        if self._waiting is waiting:
            self.close()
            self._waiting = None
            waiting.on_response(None)

    def close(self) -> None:
        """Close the connection."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    def lost(self, wire: Wire) -> None:
        """The connection has broken."""
        if self._wire is wire:
            self._wire = None
            waiting, self._waiting = self._waiting, None
            if waiting is not None:
                waiting.on_response(None)

    def take(self, wire: Wire, data: bytes) -> None:
        """Bytes from the broker have arrived."""
        if self._wire is not wire:
            return
        self._inbox += data
        (size,) = _SIZE.unpack_from(self._inbox)
        assert len(self._inbox) == size + 4, "a response arrives incomplete, or more than one"
        frame = bytes(self._inbox[4:])
        self._inbox.clear()
        waiting, self._waiting = self._waiting, None
        assert waiting is not None, "a response without a request"
        header, position = parse_response_header(frame, waiting.api_key, waiting.version)
        assert header.correlation_id == waiting.correlation_id
        self._environment.trace.note_bytes("response", frame)
        self.incarnation = wire.incarnation
        waiting.on_response(message_for(waiting.api_key)[1].decode(frame[position:], waiting.version))
