"""The HTTP server of the control channel on a loopback socket: what clients with and without the token can take."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from socket import SO_LINGER, SOL_SOCKET
from struct import pack
from typing import Any

import pytest
import trio

from barnabas.broker.net.acceptor import bind
from barnabas.kit.channel import http_server

TOKEN = "secret"
ASK = b"POST /x HTTP/1.1\r\nHost: b\r\nAuthorization: Bearer secret\r\nContent-Length: 2\r\n\r\n{}"


class Asked:
    """Answers requests once it is told to."""

    def __init__(self) -> None:
        self.count = 0
        self.begun = trio.Event()
        self.cancelled = trio.Event()
        self.may_answer = trio.Event()

    async def answer(self, method: str, path: str, values: dict[str, Any]) -> object:
        self.count += 1
        self.begun.set()
        try:
            await self.may_answer.wait()
        except trio.Cancelled:
            self.cancelled.set()
            raise
        return {"count": self.count}


@asynccontextmanager
async def listening(asked: Asked) -> AsyncIterator[tuple[str, int]]:
    """The address of a server."""
    bound = bind("127.0.0.1", 0, 50)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(http_server.serve_control, bound, TOKEN, asked.answer)
        yield bound.getsockname()
        nursery.cancel_scope.cancel()


async def read_to_end(stream: trio.SocketStream) -> bytes:
    """What the server sends until it closes the connection."""
    return b"".join([piece async for piece in stream])


@pytest.mark.trio
async def test_what_is_sent_before_the_answer_is_answered_in_turn() -> None:
    handler = Asked()
    async with listening(handler) as address, await trio.open_tcp_stream(*address) as stream:
        await stream.send_all(ASK)
        await handler.begun.wait()
        await stream.send_all(ASK + ASK.replace(b"\r\nHost", b"\r\nConnection: close\r\nHost"))
        handler.may_answer.set()
        answers = await read_to_end(stream)
    assert [json.loads(part.partition(b"\r\n\r\n")[2]) for part in answers.split(b"HTTP/1.1 200 ")[1:]] == [
        {"count": 1},
        {"count": 2},
        {"count": 3},
    ]


@pytest.mark.trio
async def test_a_client_that_sends_too_much_before_its_answer_is_disconnected(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handler = Asked()
    async with listening(handler) as address:
        async with await trio.open_tcp_stream(*address) as stream:
            await stream.send_all(ASK)
            await handler.begun.wait()
            with pytest.raises(trio.BrokenResourceError):  # noqa: PT012 - sending fails, or reading
                while True:
                    await stream.send_all(ASK * 100)
                    if handler.cancelled.is_set():
                        await read_to_end(stream)
                        raise trio.BrokenResourceError
        await handler.cancelled.wait()
        async with await trio.open_tcp_stream(*address) as other:
            handler.may_answer.set()
            await other.send_all(ASK)
            assert (await other.receive_some()).startswith(b"HTTP/1.1 200 ")
    assert handler.count == 2
    (line,) = caplog.records
    assert "has sent more than 65536 bytes before its answer" in line.getMessage()


@pytest.mark.trio
async def test_a_client_that_resets_its_connection_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    handler = Asked()
    async with listening(handler) as address:
        stream = await trio.open_tcp_stream(*address)
        await stream.send_all(ASK)
        await handler.begun.wait()
        stream.setsockopt(SOL_SOCKET, SO_LINGER, pack("ii", 1, 0))
        await stream.aclose()
        await handler.cancelled.wait()
    assert caplog.records == []


@pytest.mark.trio
@pytest.mark.parametrize("size", [10, http_server.UNAUTHORIZED_BYTES, http_server.MAX_BODY_BYTES])
async def test_a_body_is_not_kept_for_who_has_no_token(size: int) -> None:
    handler = Asked()
    head = f"POST /x HTTP/1.1\r\nHost: b\r\nAuthorization: Bearer guess\r\nContent-Length: {size}\r\n\r\n".encode()
    async with listening(handler) as address, await trio.open_tcp_stream(*address) as stream:
        await stream.send_all(head + b"x" * min(size, http_server.UNAUTHORIZED_BYTES + 1))
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 401 ")
    assert handler.count == 0


@pytest.mark.trio
async def test_strangers_lose_their_place_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as are served at a time send nothing; the next one is answered when their time is over."""
    monkeypatch.setattr(http_server, "FIRST_REQUEST_S", 0.05)
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 2)
    handler = Asked()
    handler.may_answer.set()
    async with listening(handler) as address:
        silent = [await trio.open_tcp_stream(*address) for _ in range(2)]
        async with await trio.open_tcp_stream(*address) as stream:
            await stream.send_all(ASK)
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 200 ")
        for stranger in silent:
            await stranger.aclose()


@pytest.mark.trio
async def test_a_connection_that_has_shown_the_token_may_be_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "FIRST_REQUEST_S", 0.05)
    handler = Asked()
    handler.may_answer.set()
    async with listening(handler) as address, await trio.open_tcp_stream(*address) as stream:
        await stream.send_all(ASK)
        await stream.receive_some()
        async with await trio.open_tcp_stream(*address) as silent:
            assert await silent.receive_some() == b""  # its time is over
        await stream.send_all(ASK)
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 200 ")


@pytest.mark.trio
async def test_one_that_fails_concerns_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    async def answer(method: str, path: str, values: dict[str, Any]) -> object:
        raise RuntimeError("a bug")

    bound = bind("127.0.0.1", 0, 50)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(http_server.serve_control, bound, TOKEN, answer)
        async with await trio.open_tcp_stream(*bound.getsockname()) as stream:
            with caplog.at_level(logging.ERROR):
                await stream.send_all(ASK)
                assert (await stream.receive_some()).startswith(b"HTTP/1.1 500 ")
        nursery.cancel_scope.cancel()
    assert "POST /x failed" in caplog.text
