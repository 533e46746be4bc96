"""One broker for all worker processes of pytest-xdist, started when the first of them asks for it.

The controller of xdist listens on the loopback; a worker connects with a key that only the workers have. The broker is
a child of the controller, so it lives as long as the test run.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

Started = Callable[[], dict[str, Any]]


class Sharing:
    """The controller's side."""

    def __init__(self, start: Started) -> None:
        """`start` starts the broker, and returns what a worker needs to use it. It is called once."""
        self._start = start
        self._key = secrets.token_bytes(16)
        self._lock = threading.Lock()
        self._answer: dict[str, Any] | None = None
        self._is_closed = False
        self._listener = Listener(("127.0.0.1", 0), backlog=64, authkey=self._key)
        threading.Thread(target=self._serve, name="barnabas-sharing", daemon=True).start()

    @property
    def invitation(self) -> tuple[str, int, str]:
        """What is handed to a worker: host, port and key, which xdist can send."""
        host, port = self._listener.address
        return str(host), int(port), self._key.hex()

    def _serve(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except (OSError, EOFError, AuthenticationError):
                if self._is_closed:
                    return
                continue  # somebody without the key, or a worker that has ended
            threading.Thread(target=self._answer_one, args=(connection,), daemon=True).start()

    def _answer_one(self, connection: Connection) -> None:
        with self._lock:
            if self._answer is None:
                try:
                    self._answer = self._start()
                except Exception as error:
                    self._answer = {"error": str(error)}
        try:
            connection.send(self._answer)
        except OSError:
            pass  # the worker has ended
        finally:
            connection.close()

    def close(self) -> None:
        """Stop listening."""
        self._is_closed = True
        self._listener.close()


def ask(invitation: tuple[str, int, str]) -> dict[str, Any]:
    """What the controller has started: a worker's side."""
    host, port, key = invitation
    connection = Client((host, port), authkey=bytes.fromhex(key))
    try:
        answer: dict[str, Any] = connection.recv()
    finally:
        connection.close()
    return answer
