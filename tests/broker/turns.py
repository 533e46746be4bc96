"""A reactor whose turns are taken by the test: real sockets, a clock that advances with the work, counted requests."""

from __future__ import annotations

import socket
import struct
from collections import Counter

from barnabas.broker.event_loop.disk_threads import DiskExecutor
from barnabas.broker.event_loop.loop import Loop
from barnabas.broker.net.acceptor import Listener, bind
from barnabas.broker.net.connection import Connection
from barnabas.broker.net.limits import Limits
from barnabas.broker.net.reactor import Reactor

MAX_TURNS = 3000


class Turns:
    """The reactor, its clock, and what was dispatched. A request's body is its cost in microseconds."""

    def __init__(
        self, limits: Limits | None = None, *, response_bytes: int = 8, disk: DiskExecutor | None = None
    ) -> None:
        self.time = 100.0
        self.cpu = 0.0
        self.cpu_share = 1.0
        """How much of the time of a request is CPU time of the broker."""
        self.response = struct.pack(">i", response_bytes) + bytes(response_bytes)
        self.loop = Loop(lambda: self.time, lambda: int(self.time * 1000))
        self.reactor = Reactor(self.loop, limits or Limits(), self._dispatch, disk, lambda: self.cpu)
        self.served: list[int] = []
        """The ports of the peers whose requests were dispatched, in their order."""
        self.peers: list[socket.socket] = []
        self._address = self.listen("PLAINTEXT")

    def listen(self, name: str) -> tuple[str, int]:
        """Serve one more listener."""
        listening = bind("127.0.0.1", 0, 200)
        self.reactor.listen(Listener(name, listening))
        address: tuple[str, int] = listening.getsockname()
        return address

    def _dispatch(self, connection: Connection, frame: memoryview) -> None:
        self.served.append(connection.peer_port)
        cost_s = int.from_bytes(frame, "big") / 1e6
        self.time += cost_s
        self.cpu += cost_s * self.cpu_share
        connection.out.append(self.response)
        connection.out_bytes += len(self.response)

    def dial(self, address: tuple[str, int] | None = None) -> socket.socket:
        """A client's socket; the broker accepts it in one of its next turns."""
        peer = socket.create_connection(address or self._address)
        peer.settimeout(20)
        self.peers.append(peer)
        return peer

    def connect(self) -> socket.socket:
        """A client's socket that the broker has accepted."""
        before = len(self.reactor.connections)
        peer = self.dial()
        self.until(lambda: len(self.reactor.connections) > before)
        return peer

    def connect_served(self) -> socket.socket:
        """A client's socket whose first request was cheap."""
        peer = self.connect()
        peer.sendall(requests(1, 0))
        self.until(lambda: self.count(peer))
        return peer

    def take_turns(self, count: int = 20) -> int:
        """Take turns without moving the clock; returns the number of open connections."""
        for _ in range(count):
            self.reactor.turn()
        return len(self.reactor.connections)

    def advance(self, seconds: float) -> int:
        """Move the clock, run the timers, and take turns."""
        self.time += seconds
        self.loop.timers.fire(self.time)
        return self.take_turns()

    def until(self, condition) -> int:
        """Take turns until `condition` holds; returns their number."""
        for number in range(MAX_TURNS):
            if condition():
                return number
            self.reactor.turn(0.01)
        raise AssertionError("the condition does not hold after many turns")

    def count(self, peer: socket.socket) -> int:
        """How many requests of a client were dispatched."""
        return Counter(self.served)[peer.getsockname()[1]]

    def close(self) -> None:
        """Close everything."""
        for peer in self.peers:
            peer.close()
        self.reactor._close_all()


def requests(count: int, cost_ms: float) -> bytes:
    """Frames of `count` requests that cost this many milliseconds each."""
    return struct.pack(">ii", 4, round(cost_ms * 1000)) * count


def received(peer: socket.socket, size: int) -> int:
    """How many of the responses of `size` bytes a client receives until the end of the stream."""
    total = 0
    while data := peer.recv(1 << 16):
        total += len(data)
    assert total % size == 0
    return total // size
