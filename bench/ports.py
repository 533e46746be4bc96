"""Ports for brokers that are started, killed and started again while other processes of the same run do that too."""

from __future__ import annotations

import fcntl
import random
import socket
import tempfile
from pathlib import Path
from typing import TextIO

RANGE = range(20_000, 32_000)
"""Below the ports of outgoing connections, so that none of these takes a broker's port between two starts."""

_held: list[TextIO] = []
"""The lock files of the ports that this process has given out."""


def free_port() -> int:
    """A loopback port that nobody listens on, and that no other process takes from here until this one ends."""
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
