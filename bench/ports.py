"""Ports for brokers that are killed and restarted while other processes start brokers as well."""

from __future__ import annotations

import fcntl
import random
import socket
import tempfile
from pathlib import Path
from typing import TextIO

RANGE = range(20_000, 32_000)
"""Below the range of outgoing connections, which could otherwise take a broker's port between two starts."""

_held: list[TextIO] = []
"""The lock files of the ports in use by this process."""


def free_port() -> int:
    """A free loopback port, reserved for this process until it ends."""
    locks = Path(tempfile.gettempdir(), "barnabas-ports")
    locks.mkdir(exist_ok=True)
    for port in random.sample(RANGE, len(RANGE)):
        lock = (locks / str(port)).open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _check_free(port)
        except OSError:
            lock.close()
            continue
        _held.append(lock)
        return port
    raise RuntimeError(f"no port is free between {RANGE[0]} and {RANGE[-1]}")


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
