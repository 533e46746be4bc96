"""The HTTP server of `barnabas.metrics.listener`: answers GET and HEAD of /metrics, /health and /ready.

/health is 200 while the process answers, /ready 200 or 503 with the reason: what probes of Docker and Kubernetes ask.

It runs in tasks of trio beside the reactor, and writes piece by piece, so that a scrape does not delay clients. What a
client can take is bounded: `MAX_CONNECTIONS` at a time, one request each, of `MAX_REQUEST_BYTES` within `REQUEST_S`,
whose response it must read within `RESPONSE_S`. HTTP/1.1 without keep-alive. A request that is too long or ends early
is not answered.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple

import h11
import trio

from barnabas.broker.net.http_connection import HttpConnection
from barnabas.broker.net.task_listener import serve_in_tasks

if TYPE_CHECKING:
    import socket

logger = logging.getLogger("kafka.server.MetricsListener")

MAX_CONNECTIONS: Final = 8
MAX_REQUEST_BYTES: Final = 8192
REQUEST_S: Final = 5.0
RESPONSE_S: Final = 30.0

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Body = Callable[[], AsyncGenerator[str, None]]
"""Makes the text of /metrics, in pieces."""
WhyNotReady = Callable[[], "str | None"]
"""Returns why the broker does not serve clients, as a sentence; None if it does."""


class Answers(NamedTuple):
    """Where the answers come from."""

    body: Body
    why_not_ready: WhyNotReady


async def serve_metrics(listening: socket.socket, body: Body, why_not_ready: WhyNotReady = lambda: None) -> None:
    """Answer requests on a listening socket until cancelled; the socket is closed then."""
    serve = partial(_serve_one, Answers(body, why_not_ready))
    await serve_in_tasks(listening, trio.Semaphore(MAX_CONNECTIONS), serve, logger)


async def _serve_one(answers: Answers, stream: trio.SocketStream) -> None:
    """Answer one request."""
    connection = HttpConnection(stream, MAX_REQUEST_BYTES)
    request = None
    try:
        with trio.move_on_after(REQUEST_S):
            request = await connection.next_event()
    except h11.RemoteProtocolError as error:
        if error.error_status_hint != HTTPStatus.BAD_REQUEST or connection.has_ended:
            return
        request = error
    if request is None or isinstance(request, h11.ConnectionClosed):
        return
    with trio.move_on_after(RESPONSE_S):
        await _respond(connection, request, answers)


async def _respond(
    connection: HttpConnection, request: h11.Request | h11.RemoteProtocolError, answers: Answers
) -> None:
    if isinstance(request, h11.RemoteProtocolError):
        await _refuse(connection, HTTPStatus.BAD_REQUEST)
    elif request.method not in {b"GET", b"HEAD"}:
        await _refuse(connection, HTTPStatus.METHOD_NOT_ALLOWED, ("Allow", "GET, HEAD"))
    else:
        path = request.target.split(b"?", 1)[0]
        if path == b"/metrics":
            await _send_metrics(connection, answers.body, has_body=request.method == b"GET")
        elif path == b"/health":
            await _send_state(connection, None)
        elif path == b"/ready":
            await _send_state(connection, answers.why_not_ready())
        else:
            await _refuse(connection, HTTPStatus.NOT_FOUND)


async def _send_metrics(connection: HttpConnection, body: Body, *, has_body: bool) -> None:
    headers = [("Content-Type", CONTENT_TYPE), ("Connection", "close")]
    await connection.send(h11.Response(status_code=HTTPStatus.OK.value, reason=HTTPStatus.OK.phrase, headers=headers))
    if has_body:
        async with aclosing(body()) as pieces:
            async for piece in pieces:
                if piece:
                    await connection.send(h11.Data(data=piece.encode()))
    await connection.send(h11.EndOfMessage())


async def _send_state(connection: HttpConnection, problem: str | None) -> None:
    status = HTTPStatus.OK if problem is None else HTTPStatus.SERVICE_UNAVAILABLE
    headers = [("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store"), ("Connection", "close")]
    await connection.respond(status, headers, f"{problem or 'OK'}\n".encode())


async def _refuse(connection: HttpConnection, status: HTTPStatus, *headers: tuple[str, str]) -> None:
    text = f"{status.value} {status.phrase}\nThere are /metrics, /health and /ready.\n"
    await connection.respond(status, [*headers, ("Content-Type", "text/plain"), ("Connection", "close")], text.encode())
