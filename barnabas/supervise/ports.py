"""Ports for the nodes of a cluster: those that follow the first one, or free ones.

A free port lies below the ephemeral ports: a node that is started again must find its port free, and an outgoing
connection of another process could have taken an ephemeral one meanwhile.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Collection

RANGE = range(20_000, 32_000)
LAST = 65_535


def free_port(host: str, taken: Collection[int] = ()) -> int:
    """A port that nothing listens on now; any free one if the range is used up."""
    for port in random.sample(RANGE, 200):
        if port not in taken and is_free(host, port):
            return port
    with socket.socket(_family(host)) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def node_ports(host: str, first: int, count: int) -> list[int]:
    """The ports of `count` brokers: `first` and those after it, or free ones if it is 0. ValueError above 65535."""
    if first:
        if first + count - 1 > LAST:
            raise ValueError(f"{count} brokers from port {first} on would need ports above {LAST}")
        return list(range(first, first + count))
    ports: list[int] = []
    for _ in range(count):
        ports.append(free_port(host, ports))
    return ports


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def is_free(host: str, port: int) -> bool:
    """Whether a port can be listened on now."""
    with socket.socket(_family(host)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
