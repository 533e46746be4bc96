"""Forwards TCP connections from one loopback port to another address: the port mapping of a container engine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from types import TracebackType


class Forwarder:
    """Listens on 127.0.0.1 and forwards every connection to `target`, until it is closed."""

    def __init__(self, target: tuple[str, int], port: int = 0) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        """How many connections were accepted."""
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def __enter__(self) -> Forwarder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for end in self._open:
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()  # as a port mapping does when nothing listens behind it
                continue
            self._open += [client, server]
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=copy, args=(source, sink), daemon=True).start()


def copy(
    source: socket.socket,
    sink: socket.socket,
    data: bytes = b"",
    loses: Callable[[int], bool] = lambda _size: False,
) -> None:
    """Send to `sink` what was received, and comes from `source`, until one of them ends; then both have ended.

    `loses` is asked about each piece, by its size; it may take its time.
    """
    try:
        while data := data or source.recv(65536):
            if not loses(len(data)):
                sink.sendall(data)
            data = b""
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
