"""The server process: it accepts connections when its ready file exists, and restarts on its port after a crash."""

from __future__ import annotations

import socket


def test_ready_broker_accepts_connections(broker) -> None:
    with socket.create_connection((broker.host, broker.port), timeout=5):
        pass


def test_killed_broker_starts_again_on_its_port(start_broker) -> None:
    server = start_broker()
    port = server.port
    server.kill9()
    server.restart()
    assert server.port == port
    with socket.create_connection((server.host, port), timeout=5):
        pass
