"""The HTTP server of `barnabas.metrics.listener`: answers GET /metrics, and nothing else.

It runs in tasks of trio beside the reactor, and writes piece by piece, so that a scrape delays nobody. What a client
can take is bounded: `MAX_CONNECTIONS` at a time, one request each, of `MAX_REQUEST_BYTES` within `REQUEST_S`, whose
answer has to be taken within `RESPONSE_S`. HTTP/1.1, no keep-alive.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from barnabas.broker.metrics.exposition import CONTENT_TYPE
from barnabas.broker.net.task_listener import serve_in_tasks

if TYPE_CHECKING:
    import socket

logger = logging.getLogger("kafka.server.MetricsListener")

MAX_CONNECTIONS: Final = 8
MAX_REQUEST_BYTES: Final = 8192
REQUEST_S: Final = 5.0
RESPONSE_S: Final = 30.0

Body = Callable[[], AsyncGenerator[str, None]]
"""Makes the text of /metrics, in pieces."""


async def serve_metrics(listening: socket.socket, body: Body) -> None:
    """Answer scrapes on a listening socket until cancelled; the socket is closed then."""
    await serve_in_tasks(listening, trio.Semaphore(MAX_CONNECTIONS), partial(_serve_one, body), logger)


async def _serve_one(body: Body, stream: trio.SocketStream) -> None:
    """Answer one request."""
    request = b""
    with trio.move_on_after(REQUEST_S):
        request = await _read_head(stream)
    if request:
        with trio.move_on_after(RESPONSE_S):
            await _answer(stream, request, body)


async def _read_head(stream: trio.SocketStream) -> bytes:
    """The request line and the headers; b"" for none, or too long ones."""
    head = b""
    while b"\r\n\r\n" not in head:
        if len(head) > MAX_REQUEST_BYTES:
            return b""
        data = await stream.receive_some(MAX_REQUEST_BYTES)
        if not data:
            return b""
        head += data
    return head


async def _answer(stream: trio.SocketStream, request: bytes, body: Body) -> None:
    parts = request.split(b"\r\n", 1)[0].split(b" ")
    if len(parts) != 3 or not parts[2].startswith(b"HTTP/1."):
        await stream.send_all(_refusal("400 Bad Request"))
    elif parts[0] not in {b"GET", b"HEAD"}:
        await stream.send_all(_refusal("405 Method Not Allowed", "Allow: GET, HEAD\r\n"))
    elif parts[1].split(b"?", 1)[0] != b"/metrics":
        await stream.send_all(_refusal("404 Not Found"))
    else:
        await _send_metrics(stream, body, has_body=parts[0] == b"GET", is_chunked=parts[2] != b"HTTP/1.0")


async def _send_metrics(stream: trio.SocketStream, body: Body, *, has_body: bool, is_chunked: bool) -> None:
    encoding = "Transfer-Encoding: chunked\r\n" if is_chunked else ""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {CONTENT_TYPE}\r\n{encoding}Connection: close\r\n\r\n"
    await stream.send_all(head.encode())
    if not has_body:
        return
    async with aclosing(body()) as pieces:
        async for piece in pieces:
            if not piece:
                continue  # an empty chunk is the end of the response
            data = piece.encode()
            await stream.send_all(b"%x\r\n%b\r\n" % (len(data), data) if is_chunked else data)
    if is_chunked:
        await stream.send_all(b"0\r\n\r\n")


def _refusal(status: str, headers: str = "") -> bytes:
    text = f"{status}\nThe metrics are at /metrics.\n"
    return (
        f"HTTP/1.1 {status}\r\n{headers}Content-Type: text/plain\r\nContent-Length: {len(text)}\r\n"
        f"Connection: close\r\n\r\n{text}"
    ).encode()
