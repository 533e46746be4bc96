"""The network between nodes as proxies: every node is reached by the others through one, which can break it.

A proxy stands before each listener that nodes use among themselves. It learns the connecting node from the client id
of the first request (`broker-2-...`, as Kafka names them), so that one direction between two nodes can be broken.
"""

from __future__ import annotations

import random
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from tests.support.processes.forwarder import copy

CUTS = ("cut", "to", "from", "delay", "slow", "reset", "half-open")
"""cut: nothing passes; to, from: nothing passes in that direction; delay: 0.3 s later; slow: 20 KB a second; reset: the
connections are reset and refused; half-open: the connection stays, but the other side has forgotten it."""
DELAY_S = 0.3
SLOW_BYTES, SLOW_S = 4096, 0.2
_NODE = re.compile(rb"(?:broker|node|controller)-(\d+)")
_LEAST = 14


class Links:
    """All proxies of a cluster."""

    def __init__(self) -> None:
        self._broken: dict[tuple[int, int], str] = {}
        self._proxies: dict[int, Proxy] = {}

    def before(self, node_id: int, target: tuple[str, int]) -> int:
        """The port of a proxy before a node's listener."""
        proxy = self._proxies.setdefault(node_id, Proxy(self, node_id, target))
        return proxy.port

    def any_pair(self, chance: random.Random) -> tuple[int, int]:
        """A broker and another node that it connects to."""
        target = chance.choice(sorted(self._proxies))
        brokers = [node for node in self._proxies if node < 1000 and node != target]
        return chance.choice(sorted(brokers)), target

    def state(self, source: int, target: int) -> str | None:
        """How the way from one node to another is broken."""
        return self._broken.get((source, target))

    @contextmanager
    def broken(self, source: int, target: int, kind: str) -> Iterator[None]:
        """Break the way of `source`'s connections to `target`."""
        self._broken[source, target] = kind
        if kind == "reset":
            self._proxies[target].reset(source)
        try:
            yield
        finally:
            del self._broken[source, target]
            self._proxies[target].reset(source)  # what was held back is never sent late, as with TCP after a cut

    def close(self) -> None:
        """Close all proxies."""
        for proxy in self._proxies.values():
            proxy.close()


class Proxy:
    """Forwards connections to one listener."""

    def __init__(self, links: Links, node_id: int, target: tuple[str, int]) -> None:
        self._links, self._node_id, self._target = links, node_id, target
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._open: dict[socket.socket, int] = {}
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Close the listener and all connections."""
        self._listener.close()
        for end in list(self._open):
            _reset(end)

    def reset(self, source: int) -> None:
        """Reset the connections of a node."""
        for end, whose in list(self._open.items()):
            if whose == source:
                _reset(end)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            first = client.recv(65536)
            source = _source(first)
            if self._links.state(source, self._node_id) == "reset":
                _reset(client)
                return
            server = socket.create_connection(self._target, timeout=10)
            server.settimeout(None)
        except OSError:
            client.close()
            return
        self._open[client] = self._open[server] = source
        received = partial(self._hold_back, source, "from")
        back = threading.Thread(target=copy, args=(server, client, b"", received), daemon=True)
        back.start()
        copy(client, server, first, partial(self._hold_back, source, "to"))
        back.join()
        for end in (client, server):
            self._open.pop(end, None)
            end.close()

    def _hold_back(self, who: int, way: str, size: int) -> bool:
        """Wait as the fault says; True if the bytes are lost."""
        while (state := self._links.state(who, self._node_id)) in ("cut", way):
            time.sleep(0.02)
        if state == "delay":
            time.sleep(DELAY_S)
        elif state == "slow":
            time.sleep(min(5.0, size / SLOW_BYTES * SLOW_S))
        return state == "half-open"


def _source(first: bytes) -> int:
    """The node that has sent the first request; 0 if it is not named."""
    if len(first) < _LEAST:
        return 0
    (length,) = struct.unpack_from(">h", first, 12)
    match = _NODE.search(first[14 : 14 + max(0, length)])
    return int(match[1]) if match else 0


def _reset(end: socket.socket) -> None:
    try:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
