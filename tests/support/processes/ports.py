"""Ports for brokers that are restarted on the same port while other processes start brokers too."""

from __future__ import annotations

import fcntl
import random
import socket
import tempfile
from pathlib import Path
from typing import TextIO

RANGE = range(20_000, 32_000)
"""Below the ephemeral ports, so that no outgoing connection uses a broker's port between two starts."""

_held: list[TextIO] = []
"""The lock files of the ports that this process has reserved."""


def free_port() -> int:
    """Reserve a free loopback port; no other process gets it from this function until this process ends."""
    for port in random.sample(RANGE, len(RANGE)):
        if _reserve(port):
            return port
    raise RuntimeError(f"no port is free between {RANGE[0]} and {RANGE[-1]}")


def _reserve(port: int) -> bool:
    """Reserve a port: no other process gets it from this module from now on. False if it is not free."""
    locks = Path(tempfile.gettempdir(), "barnabas-ports")
    locks.mkdir(exist_ok=True)
    lock = (locks / str(port)).open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _check_free(port)
    except OSError:
        lock.close()
        return False
    _held.append(lock)
    return True


def free_ports(count: int) -> list[int]:
    """Reserve ports that follow each other, as `free_port` does."""
    while True:
        ports = [free_port()]
        while len(ports) < count and _reserve(ports[-1] + 1):
            ports.append(ports[-1] + 1)
        if len(ports) == count:
            return ports


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
