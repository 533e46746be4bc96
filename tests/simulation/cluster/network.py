"""The network of a simulated cluster: connections of real clients to real servers, cut, slow and reset.

Each direction between two nodes can be cut on its own. Bytes sent into a cut direction wait, as in TCP; after
`RESET_S` both ends lose the connection. Every delivery is a turn of the node that receives.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.apis.dispatcher import Dispatcher
from barnabas.broker.apis.registry import CONTROLLER, FORWARDING
from barnabas.broker.net.connection import Connection
from barnabas.broker.net.frame_buffers import FrameBuffers
from barnabas.wire.types import chunk_bytes

if TYPE_CHECKING:
    from barnabas.broker.net.client.outgoing import Peer
    from tests.simulation.cluster.node import ClusterNode, Turning
    from tests.simulation.environment import Environment

RESET_S = 2.0
RETRY_S = 0.1
MAX_FRAME_BYTES = 64 << 20


class ClusterNetwork:
    """All nodes and the directions between them that are cut."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.nodes: dict[int, ClusterNode] = {}
        self.cuts: dict[tuple[int, int], int] = {}
        """(from, to) -> how many faults cut it."""
        self.mean_delay_s = 0.001
        self.slow: dict[tuple[int, int], float] = {}
        self.pipes: dict[Pipe, None] = {}
        self.on_request: Callable[[ClusterNode, int], None] = lambda _node, _api_key: None
        """Called with the API of each request before a node handles it."""

    def cut(self, source: int, target: int) -> None:
        """Deliver nothing from one node to another."""
        self.cuts[source, target] = self.cuts.get((source, target), 0) + 1

    def mend(self, source: int, target: int) -> None:
        """One fault less."""
        remaining = self.cuts.pop((source, target), 1) - 1
        if remaining:
            self.cuts[source, target] = remaining

    def delay(self, source: int, target: int) -> float:
        """How long the next bytes take."""
        mean = self.slow.get((source, target), self.mean_delay_s)
        return self.environment.random.expovariate(1 / mean)

    def connect(self, client: Turning, host: str, port: int, peer: Peer) -> Pipe:
        """Start to connect from a node to `node<id>`."""
        return Pipe(self, client, int(host.removeprefix("node")), peer)

    def node_down(self, node_id: int) -> None:
        """A node has stopped: its connections end, for the other end after a while."""
        for pipe in [pipe for pipe in self.pipes if node_id in (pipe.client_id, pipe.server_id)]:
            pipe.node_down(node_id)


class Pipe:
    """One connection, as its client sees it (`Transport`)."""

    def __init__(self, network: ClusterNetwork, client: Turning, server_id: int, peer: Peer) -> None:
        self._network = network
        self._clock = network.environment.clock
        self._client = client
        self._incarnation = client.incarnation
        self._peer: Peer | None = peer
        self._server: Connection | None = None
        self._server_incarnation = 0
        self.client_id = client.node_id
        self.server_id = server_id
        self._arrives = {True: 0.0, False: 0.0}
        self._is_closed = False  # by the client, which may have been paused when it was lost
        network.pipes[self] = None
        self._deliver(True, self._arrived)

    # ---- delivery

    def _deliver(self, up: bool, action: Callable[[], None]) -> None:
        """Do something at the other end, after everything that was sent before."""
        ends = (self.client_id, self.server_id) if up else (self.server_id, self.client_id)
        now = self._clock.now
        moment = self._arrives[up] = max(self._arrives[up] + 1e-6, now + self._network.delay(*ends))
        self._clock.after(moment - now, lambda: self._try(ends, action, moment + RESET_S))

    def _try(self, ends: tuple[int, int], action: Callable[[], None], deadline: float) -> None:
        if ends not in self._network.cuts:
            action()
        elif self._clock.now < deadline:
            self._clock.after(RETRY_S, lambda: self._try(ends, action, deadline))
        else:
            self._reset()

    def _reset(self) -> None:
        """Both ends lose the connection."""
        self._close_server()
        self._lose(errno.ETIMEDOUT)

    def _lose(self, code: int) -> None:
        """The client's end is lost."""
        peer, self._peer = self._peer, None
        self._network.pipes.pop(self, None)
        if peer is not None and self._client.incarnation == self._incarnation:
            error = OSError(code, os.strerror(code))
            self._client.turn_with(lambda: None if self._is_closed else peer.ended(error))

    def node_down(self, node_id: int) -> None:
        """One of the nodes has stopped."""
        if node_id == self.client_id:
            self._peer = None
            self._network.pipes.pop(self, None)
            self._clock.after(self._network.environment.random.uniform(0, 0.5), self._close_server)
        else:
            self._server = None
            self._clock.after(self._network.environment.random.uniform(0, 0.5), lambda: self._lose(errno.ECONNRESET))

    # ---- the server's end

    def _arrived(self) -> None:
        """The connection reaches the server."""
        node = self._network.nodes[self.server_id]
        if self._peer is None:
            return
        if not node.is_listening:
            self._deliver(False, lambda: self._lose(errno.ECONNREFUSED))
            return
        broker = node.broker
        assert broker is not None
        listener = CONTROLLER if node.is_controller else FORWARDING
        self._server_incarnation = node.incarnation
        self._server = Connection(
            Dispatcher(broker, listener).dispatch,
            listener="CONTROLLER" if node.is_controller else "PLAINTEXT",
            peer=("10.0.0.1", 5000),
            local=(f"node{node.node_id}", 9092),
            max_frame_bytes=MAX_FRAME_BYTES,
            buffers=node.buffers,
            on_output=lambda _: node.active.setdefault(self),
            clock=lambda: self._clock.now,
        )
        self._deliver(False, self._opened)

    def _opened(self) -> None:
        peer = self._peer
        if peer is not None and self._client.incarnation == self._incarnation:
            self._client.turn_with(lambda: peer.opened() if self._peer is peer else None)

    def send(self, chunks: Sequence[bytes | memoryview], is_wanted: Callable[[], bool] = lambda: True) -> None:
        """Send to the server; it arrives if `is_wanted` then."""
        data = b"".join(bytes(chunk) for chunk in chunks)
        self._deliver(True, lambda: self._received(data, is_wanted))

    def _received(self, data: bytes, is_wanted: Callable[[], bool]) -> None:
        node = self._network.nodes[self.server_id]
        if self._server is not None:
            self._network.on_request(node, int.from_bytes(data[4:6], "big"))
        if self._server is None or node.incarnation != self._server_incarnation:
            return
        self._network.environment.trace.note_bytes(f"{self.client_id} to {self.server_id}", data)
        node.turn_with(lambda: self._feed(node, data) if is_wanted() else None)

    def _feed(self, node: ClusterNode, data: bytes) -> None:
        if self._server is not None:
            node.active[self] = None
            self._server.receive(memoryview(bytearray(data)), self._clock.now)

    def send_responses(self) -> None:
        """Send what the server has written."""
        server = self._server
        if server is None or not server.out:
            return
        data = b"".join(bytes(chunk_bytes(chunk)) for chunk in server.out)
        server.out.clear()
        server.out_bytes = 0
        server.resume(self._clock.now)
        if server.out:
            self._network.nodes[self.server_id].active[self] = None
        self._deliver(False, lambda: self._answered(data))

    def _answered(self, data: bytes) -> None:
        if self._peer is not None and self._client.incarnation == self._incarnation:
            self._network.environment.trace.note_bytes(f"{self.server_id} to {self.client_id}", data)
            self._client.turn_with(lambda: self._fill(data))

    def _fill(self, data: bytes) -> None:
        while data and self._peer is not None:
            space = self._peer.space()
            count = min(len(space), len(data))
            space[:count] = data[:count]
            space.release()
            data = data[count:]
            self._peer.filled(count)

    def close(self) -> None:
        """The client closes the connection (`Transport`)."""
        self._is_closed = True
        self._peer = None
        self._network.pipes.pop(self, None)
        self._deliver(True, self._close_server)

    def _close_server(self) -> None:
        server, self._server = self._server, None
        node = self._network.nodes[self.server_id]
        if server is not None and node.incarnation == self._server_incarnation:
            node.turn_with(server.close)


def new_buffers() -> FrameBuffers:
    """The frame buffers of a node."""
    return FrameBuffers()
