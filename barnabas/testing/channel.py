"""The control channel, from the test's side: requests of JSON over HTTP on the loopback, with a token.

It may be used from several threads; each request has a connection of its own while it is waited for, and connections
are used again, but not by another process: a fork has copies of them. Standard library only.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable
from http.client import UNAUTHORIZED, HTTPConnection, HTTPException
from typing import Any, Final

from barnabas.testing.errors import BrokerError, RefusedError

__tracebackhide__ = True
"""For pytest: a failure is shown where the test made it."""

CALL_S: Final = 30.0
"""How long an answer is waited for, beyond the time that the request itself may wait, seconds."""


class Channel:
    """Calls the operations of one process."""

    def __init__(self, url: str, token: str) -> None:
        """`url` as http://HOST:PORT."""
        self.url = url
        self.token = token
        self._address = url.removeprefix("http://").rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._idle: deque[HTTPConnection] = deque()
        self._pid = os.getpid()
        self.why: Callable[[], str] = str
        """Returns why there may be no answer, "" if that is not known."""

    def call(self, method: str, path: str, values: dict[str, Any] | None = None, wait_s: float = 0.0) -> Any:
        """Make a request, which itself may wait `wait_s`; its answer.

        RefusedError with the broker's sentence; BrokerError if there is no answer.
        """
        body = json.dumps(values or {})
        for is_fresh in (False, True):
            connection = self._connection(is_fresh=is_fresh)
            connection.timeout = wait_s + CALL_S
            if connection.sock is not None:
                connection.sock.settimeout(connection.timeout)
            try:
                connection.request(method, path, body, self._headers)
                response = connection.getresponse()
                result = json.loads(response.read())
            except (OSError, HTTPException, ValueError) as error:
                connection.close()
                if is_fresh or isinstance(error, TimeoutError):
                    raise BrokerError(f"No answer from the broker at {self.url}: {error}{self.why()}") from None
                continue  # it was idle, and closed meanwhile
            self._idle.append(connection)
            if response.status == UNAUTHORIZED:
                raise RefusedError(f"The broker at {self.url} has another token")
            if response.status != 200:
                raise RefusedError(result.get("error", response.reason))
            return result
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _connection(self, *, is_fresh: bool) -> HTTPConnection:
        if self._pid != os.getpid():
            self.close()  # this process' copies
            self._pid = os.getpid()
        if not is_fresh:
            try:
                return self._idle.pop()
            except IndexError:
                pass
        return HTTPConnection(self._address)
