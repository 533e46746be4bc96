"""Connections that send nothing, or headers without an end, on a real server."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from barnabas.console.guard.connections import GuardedProtocol


class _Impatient(GuardedProtocol):
    headers_s = 0.2


class _Few(GuardedProtocol):
    most = 3


@contextmanager
def _served(protocol: type[GuardedProtocol]) -> Iterator[tuple[str, int]]:
    app = Starlette(routes=[Route("/", lambda _request: PlainTextResponse("page"))])
    config = uvicorn.Config(app, http=protocol, log_config=None, lifespan="off", ws="none")
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def _rest(connection: socket.socket) -> bytes:
    data = b""
    try:
        while piece := connection.recv(4096):
            data += piece
    except ConnectionResetError:
        pass
    return data


def test_clients_that_do_not_finish_their_headers_are_closed() -> None:
    with _served(_Impatient) as address:
        with socket.create_connection(address) as silent, socket.create_connection(address) as slow:
            slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ")
            assert _rest(silent) == b""
            assert _rest(slow) == b""
        with socket.create_connection(address) as kept:
            kept.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\n")
            assert _rest(kept).count(b"200 OK") == 1


def test_the_number_of_connections_is_bounded() -> None:
    with _served(_Few) as address:
        connections = [socket.create_connection(address) for _ in range(3)]
        for connection in connections:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(4096)
        with socket.create_connection(address) as surplus:
            assert _rest(surplus) == b""
        connections[0].close()
        connections[1].sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert b"page" in _rest(connections[1])
        with socket.create_connection(address) as later:
            later.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert b"page" in _rest(later)
        for connection in connections:
            connection.close()
