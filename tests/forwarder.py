"""Forwards TCP connections from one loopback port to another address: the port mapping of a container engine."""

from __future__ import annotations

import socket
import threading
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
                threading.Thread(target=_copy, args=(source, sink), daemon=True).start()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
