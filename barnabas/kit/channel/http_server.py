"""The HTTP server of the control channel: JSON in, JSON out, HTTP/1.1 with connections that stay open.

Each connection is a task of trio beside the reactors; h11 parses. A request must have the token. A client's resources
are bounded: `MAX_CONNECTIONS` at a time, `MAX_BODY_BYTES` a request, `MAX_PIPELINED_BYTES` before its answer; without
the token `UNAUTHORIZED_BYTES` and `FIRST_REQUEST_S`. A request in progress is cancelled when the client closes its
connection.
"""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import h11
import trio

from barnabas.broker.net.http_connection import READ_BYTES, HttpConnection
from barnabas.broker.net.task_listener import serve_in_tasks
from barnabas.kit.errors import ControlError

if TYPE_CHECKING:
    import socket

logger = logging.getLogger("barnabas.control")

MAX_CONNECTIONS: Final = 256
MAX_BODY_BYTES: Final = 64 * 1024 * 1024
MAX_PIPELINED_BYTES: Final = 64 * 1024
"""Bytes that a client may send before its answer; the connection of a client that sends more is closed."""
UNAUTHORIZED_BYTES: Final = 64 * 1024
"""Bytes of the body that are read without the token, so that the client reads the answer, and not a reset."""
FIRST_REQUEST_S: Final = 10.0
"""How long the first request of a connection may take, seconds."""

Answerer: TypeAlias = Callable[[str, str, dict[str, Any]], Awaitable[Any]]
"""Answers a method, a path and a body with a value for JSON. ControlError if the request is refused."""


async def serve_control(listening: socket.socket, token: str, answerer: Answerer) -> None:
    """Answer requests on a listening socket until cancelled; the socket is closed then."""

    async def serve(stream: trio.SocketStream) -> None:
        await _Connection(stream, token, answerer).run()

    await serve_in_tasks(listening, trio.Semaphore(MAX_CONNECTIONS), serve, logger)


class _RefusedError(Exception):
    """A request that this server does not handle, with the status of its response. The connection closes."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class _Connection:
    """One connection of a client."""

    def __init__(self, stream: trio.SocketStream, token: str, answerer: Answerer) -> None:
        self._authorization = f"Bearer {token}".encode()
        self._answer = answerer
        self._connection = HttpConnection(stream)
        self._http = self._connection.http

    async def run(self) -> None:
        """Serve requests until the connection ends."""
        limit_s = FIRST_REQUEST_S
        try:
            while await self._serve_one(limit_s):
                self._http.start_next_cycle()
                limit_s = inf
        except h11.LocalProtocolError:
            pass  # the client has closed the connection

    async def _serve_one(self, limit_s: float) -> bool:
        """Answer one request, which has to come within `limit_s`; False if the connection is to be closed."""
        try:
            with trio.move_on_after(limit_s) as limit:
                request = await self._connection.next_event()
                if not isinstance(request, h11.Request):
                    return False
                body = await self._authorized_body(request)
            if limit.cancelled_caught:
                return False
            status, response = await self._outcome(request, body)
        except h11.RemoteProtocolError as error:
            status, response = HTTPStatus(error.error_status_hint), {"error": str(error)}
        except _RefusedError as error:
            status, response = error.status, {"error": str(error)}
        await self._send(status, response)
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    async def _authorized_body(self, request: h11.Request) -> bytes:
        """The body of a request that has the token."""
        authorization = dict(request.headers).get(b"authorization", b"")
        if hmac.compare_digest(authorization, self._authorization):
            return await self._body(MAX_BODY_BYTES)
        with suppress(_RefusedError):
            await self._body(UNAUTHORIZED_BYTES)
        raise _RefusedError(HTTPStatus.UNAUTHORIZED)

    async def _body(self, most: int) -> bytes:
        body = bytearray()
        while isinstance(event := await self._connection.next_event(), h11.Data):
            body += event.data
            if len(body) > most:
                raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return bytes(body)

    async def _outcome(self, request: h11.Request, body: bytes) -> tuple[HTTPStatus, object]:
        """Status and answer of a request; it is cancelled when the client goes away meanwhile."""
        try:
            values = json.loads(body) if body else {}
        except ValueError:
            raise _RefusedError(HTTPStatus.BAD_REQUEST) from None
        if not isinstance(values, dict):
            raise _RefusedError(HTTPStatus.BAD_REQUEST)
        path = request.target.decode("ascii").partition("?")[0]
        outcome: tuple[HTTPStatus, object] | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._cancel_when_closed, nursery.cancel_scope)
            outcome = await self._answered(request.method.decode("ascii"), path, values)
            nursery.cancel_scope.cancel()
        if outcome is None:
            raise trio.BrokenResourceError
        return outcome

    async def _cancel_when_closed(self, scope: trio.CancelScope) -> None:
        """Cancel the answer when the connection is to be closed. Bytes that arrive before are kept, up to a limit."""
        with suppress(trio.BrokenResourceError):
            while data := await self._connection.stream.receive_some(READ_BYTES):
                self._http.receive_data(data)
                if len(self._http.trailing_data[0]) > MAX_PIPELINED_BYTES:
                    logger.warning(
                        "A client of the control channel has sent more than %d bytes before its answer: "
                        "its connection is closed",
                        MAX_PIPELINED_BYTES,
                    )
                    break
        scope.cancel()

    async def _answered(self, method: str, path: str, values: dict[str, Any]) -> tuple[HTTPStatus, object]:
        try:
            return HTTPStatus.OK, await self._answer(method, path, values)
        except ControlError as error:
            return HTTPStatus(error.status), {"error": str(error)}
        except Exception as error:
            logger.exception("%s %s failed", method, path)
            return HTTPStatus.INTERNAL_SERVER_ERROR, {"error": f"{type(error).__name__}: {error}"}

    async def _send(self, status: HTTPStatus, response: object) -> None:
        headers = [("Content-Type", "application/json")]
        if self._http.their_state is not h11.DONE:
            headers.append(("Connection", "close"))
        await self._connection.respond(status, headers, json.dumps(response).encode())
