"""Whether the other side has closed a connection, for tests."""

from __future__ import annotations

import socket


def is_ended_by_peer(connection: socket.socket) -> bool:
    """Read: whether the other side has ended the connection; False if it sends something instead.

    It is reset in place of closed if the other side has not accepted it yet, or has not read everything: which of the
    two it is depends on timing.
    """
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
