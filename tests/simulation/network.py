"""The network of a run: connections that keep their own order, break, and are late against each other.

A request arrives after a delay; so does its answer. What was sent on a connection arrives even when the client has
closed it since, with the end of the connection behind it: this is how a request of yesterday's transaction comes to
meet today's.
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
from tests.simulation.faults import Fate

if TYPE_CHECKING:
    from barnabas.wire.schema import Message
    from tests.simulation.world import World

MAX_FRAME_BYTES = 1 << 20
AFTERMATH_S = 10.0
"""A late JoinGroup begins a rebalance, which somebody who knows nothing of it may miss."""
_SIZE = Struct(">i")

Answer = Callable[["Message | None"], None]
"""Takes the answer; None when the connection broke or it took too long."""


class Observer(Protocol):
    """Sees what comes to the broker and what leaves it, at that very moment."""

    def request_arrives(self, wire: Wire, request: Message) -> None:
        """A request is taken."""

    def answer_leaves(self, wire: Wire, request: Message, answer: Message) -> None:
        """An answer is on its way."""

    def connection_ends(self, wire: Wire) -> None:
        """A connection is closed at the broker's end."""


class Network:
    """All connections."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.observer: Observer | None = None
        self.quiet_at = 0.0
        """When the last of the late requests has arrived, and what it has led to is over."""
        self._wires: dict[Wire, None] = {}
        self.active: dict[Wire, None] = {}
        """Those whose answers may have grown."""
        self.buffers = FrameBuffers()

    def connect(self, link: Link) -> Wire | None:
        """A connection to the broker, or None when it refuses."""
        if not self._world.node.is_up:
            return None
        wire = Wire(self._world, link)
        self._wires[wire] = None
        return wire

    def forget(self, wire: Wire) -> None:
        """It is closed at the broker's end."""
        self._wires.pop(wire, None)

    def broker_is_gone(self) -> None:
        """Every connection is broken."""
        self.active.clear()
        wires, self._wires = self._wires, {}
        for wire in wires:
            wire.server = None
            self._world.clock.after(self._world.random.uniform(0, 0.05), wire.breaks)

    def send_answers(self) -> None:
        """The end of a turn: what stands in the connections leaves."""
        while self.active:
            active, self.active = self.active, {}
            for wire in active:
                wire.send_answers()


class Wire:
    """One connection."""

    def __init__(self, world: World, link: Link) -> None:
        self._world = world
        self._link: Link | None = link
        self._arrives_up = self._arrives_down = 0.0
        self._loses_answers = False
        self._is_ending = False
        self.life = world.node.life
        self.arrived_at = 0.0
        """When the broker took the last request that an observer wanted to know of."""
        self._asked: list[tuple[Message, int]] = []
        """The requests that the broker has taken and not answered, with their versions."""
        broker = world.node.broker
        assert broker is not None
        self.server: Connection | None = Connection(
            Dispatcher(broker).dispatch,
            listener="PLAINTEXT",
            peer=("10.0.0.1", 5000),
            local=("127.0.0.1", 9092),
            max_frame_bytes=MAX_FRAME_BYTES,
            buffers=world.network.buffers,
            on_output=lambda _: world.network.active.setdefault(self),
            now=world.clock.now,
        )

    def send(self, data: bytes, asked: tuple[Message, int], fate: Fate, *, may_outlive: bool) -> None:
        """The client sends a request; unless it may outlive the connection, it is lost when the client closes it."""
        world = self._world
        if fate is Fate.LOST:
            self._break_soon()
            return
        if fate is Fate.ANSWER_LOST:
            self._loses_answers = True
        delay = world.random.expovariate(1 / world.faults.mean_delay_s)
        if fate is Fate.LATE:
            delay += world.random.uniform(0, world.faults.late_s)
        moment = self._arrives_up = max(self._arrives_up, world.clock.now + delay)
        if fate is Fate.LATE:
            world.network.quiet_at = max(world.network.quiet_at, moment + AFTERMATH_S)
        world.clock.after(moment - world.clock.now, lambda: self._arrive(data, asked, may_outlive=may_outlive))

    def _break_soon(self) -> None:
        """The client sees it at once, or not before its patience ends."""
        world = self._world
        if world.random.random() < 0.5:
            world.clock.after(world.random.uniform(0, 0.05), self.breaks)

    def _arrive(self, data: bytes, asked: tuple[Message, int], *, may_outlive: bool) -> None:
        if self.server is None or self._is_ending or not (self._link is not None or may_outlive):
            return
        self._world.trace.note_bytes("request", data)
        self._world.node.turn(lambda _: self._feed(data, asked))

    def _feed(self, data: bytes, asked: tuple[Message, int]) -> None:
        if self.server is not None:
            network = self._world.network
            network.active[self] = None
            if network.observer is not None:
                self._asked.append(asked)
                network.observer.request_arrives(self, asked[0])
            self.server.receive(memoryview(bytearray(data)), self._world.clock.now)

    def send_answers(self) -> None:
        """What the broker has for the client."""
        server = self.server
        if server is None:
            return
        assert not server.is_closing, "the broker closes a connection on which nothing was wrong"
        if not server.out:
            return
        data = b"".join(chunk_bytes(chunk) for chunk in server.out)
        server.out.clear()
        server.out_bytes = 0
        server.drained(self._world.clock.now)
        if server.out:
            self._world.network.active[self] = None
        if self._world.network.observer is not None:
            self._show(data, self._world.network.observer)
        if self._loses_answers:
            self._break_soon()
            return
        world = self._world
        delay = world.random.expovariate(1 / world.faults.mean_delay_s)
        moment = self._arrives_down = max(self._arrives_down, world.clock.now + delay)
        world.clock.after(moment - world.clock.now, lambda: self._answered(data))

    def _show(self, data: bytes, observer: Observer) -> None:
        request, version = self._asked.pop(0)
        _, position = parse_response_header(data[4:], request.api_key, version)
        observer.answer_leaves(self, request, message_for(request.api_key)[1].decode(data[4 + position :], version))

    def _answered(self, data: bytes) -> None:
        if self._link is not None:
            self._link.take(self, data)

    def breaks(self) -> None:
        """The client finds the connection broken."""
        link, self._link = self._link, None
        self._end_server()
        if link is not None:
            link.lost(self)

    def close(self) -> None:
        """The client closes it; the broker hears of that behind all that was sent."""
        self._link = None
        world = self._world
        delay = world.random.expovariate(1 / world.faults.mean_delay_s)
        moment = max(self._arrives_up, world.clock.now + delay)
        world.clock.after(moment - world.clock.now, self._end_server)

    def _end_server(self) -> None:
        if not self._is_ending:
            self._is_ending = True
            self._world.node.turn(lambda _: self._close_server())

    def _close_server(self) -> None:
        server, self.server = self.server, None
        if server is not None:
            self._world.network.forget(self)
            observer = self._world.network.observer
            if observer is not None:
                observer.connection_ends(self)
            server.close()


@dataclass
class _Waiting:
    correlation_id: int
    api_key: int
    version: int
    answer: Answer


class Link:
    """A client's end: one request at a time, over a connection that is opened when there is none."""

    def __init__(self, world: World, client_id: str) -> None:
        self._world = world
        self._client_id = client_id
        self._wire: Wire | None = None
        self._waiting: _Waiting | None = None
        self._count = 0
        self.life = 0
        """Which life of the broker the last answer comes from."""
        self._inbox = bytearray()

    def ask(
        self, request: Message, version: int, answer: Answer, timeout_s: float, *, may_outlive: bool = True
    ) -> None:
        """Send a request."""
        world = self._world
        assert self._waiting is None
        self._count += 1
        count = self._count
        waiting = self._waiting = _Waiting(count, request.api_key, version, answer)
        if self._wire is None:
            self._wire = world.network.connect(self)
            self._inbox.clear()
        if self._wire is None:
            world.clock.after(world.random.uniform(0.02, 0.2), lambda: self._give_up(waiting))
            return
        chunks = encode_request(request, version, count, self._client_id)
        data = b"".join(chunk_bytes(chunk) for chunk in chunks)
        self._wire.send(data, (request, version), world.faults.fate(world.random), may_outlive=may_outlive)
        world.clock.after(timeout_s, lambda: self._give_up(waiting))

    def _give_up(self, waiting: _Waiting) -> None:
        if self._waiting is waiting:
            self.close()
            self._waiting = None
            waiting.answer(None)

    def close(self) -> None:
        """Let go of the connection."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    def lost(self, wire: Wire) -> None:
        """The connection is broken."""
        if self._wire is wire:
            self._wire = None
            waiting, self._waiting = self._waiting, None
            if waiting is not None:
                waiting.answer(None)

    def take(self, wire: Wire, data: bytes) -> None:
        """Bytes from the broker."""
        if self._wire is not wire:
            return
        self._inbox += data
        (size,) = _SIZE.unpack_from(self._inbox)
        assert len(self._inbox) == size + 4, "answers come whole, and one at a time"
        frame = bytes(self._inbox[4:])
        self._inbox.clear()
        waiting, self._waiting = self._waiting, None
        assert waiting is not None, "an answer that nobody has asked for"
        header, position = parse_response_header(frame, waiting.api_key, waiting.version)
        assert header.correlation_id == waiting.correlation_id
        self._world.trace.note_bytes("answer", frame)
        self.life = wire.life
        waiting.answer(message_for(waiting.api_key)[1].decode(frame[position:], waiting.version))
