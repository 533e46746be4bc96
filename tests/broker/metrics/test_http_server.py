"""GET /metrics, /health and /ready on a loopback socket: the answers, and clients that are slow or hostile."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from math import inf, nan

import pytest
import trio

from barnabas.broker.config.load import load
from barnabas.broker.exporter import http_server
from barnabas.broker.exporter.page import LINES, text_of_clients
from barnabas.broker.net.acceptor import bind
from barnabas.coord.client_metrics.kept import KeptMetrics
from barnabas.wire.clients.otlp import Point
from barnabas.wire.configdef import ConfigError
from tests.support.cases import for_each

GET = b"GET /metrics HTTP/1.1\r\nHost: broker\r\n\r\n"
CLIENT = {
    "client_instance_id": "id",
    "client_id": "c",
    "client_software_name": "x",
    "client_software_version": "1",
}


async def two_lines() -> AsyncGenerator[str, None]:
    yield "one 1\n"
    yield "two 2\n"


@asynccontextmanager
async def listening(body: http_server.Body = two_lines) -> AsyncIterator[tuple[str, int]]:
    """The address of a server of a broker that is not ready."""
    bound = bind("127.0.0.1", 0, 50)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(http_server.serve_metrics, bound, body, lambda: "It is starting.")
        yield bound.getsockname()
        nursery.cancel_scope.cancel()


async def asked(address: tuple[str, int], request: bytes) -> bytes:
    """Everything that is answered to a request, up to the end of the connection."""
    async with await trio.open_tcp_stream(*address) as stream:
        await stream.send_all(request)
        return b"".join([piece async for piece in stream])


@pytest.mark.trio
async def test_metrics_are_answered_in_chunks() -> None:
    async with listening() as address:
        head, _, body = (await asked(address, GET)).partition(b"\r\n\r\n")
    assert head.splitlines() == [
        b"HTTP/1.1 200 OK",
        b"Content-Type: text/plain; version=0.0.4; charset=utf-8",
        b"Connection: close",
        b"Transfer-Encoding: chunked",
    ]
    assert body == b"6\r\none 1\n\r\n6\r\ntwo 2\n\r\n0\r\n\r\n"


@pytest.mark.trio
@pytest.mark.parametrize(
    ("request_", "status", "body"),
    [
        (b"GET /metrics HTTP/1.0\r\n\r\n", b"200 OK", b"one 1\ntwo 2\n"),
        (b"GET /metrics?name=one HTTP/1.0\r\n\r\n", b"200 OK", b"one 1\ntwo 2\n"),
        (b"HEAD /metrics HTTP/1.1\r\nHost: b\r\n\r\n", b"200 OK", b""),
        (b"GET /health HTTP/1.1\r\nHost: b\r\n\r\n", b"200 OK", b"OK\n"),
        (b"HEAD /health HTTP/1.1\r\nHost: b\r\n\r\n", b"200 OK", b""),
        (b"GET /ready?verbose=1 HTTP/1.1\r\nHost: b\r\n\r\n", b"503 Service Unavailable", b"It is starting.\n"),
        (b"HEAD /ready HTTP/1.1\r\nHost: b\r\n\r\n", b"503 Service Unavailable", b""),
        (b"GET /ready/ HTTP/1.1\r\nHost: b\r\n\r\n", b"404 Not Found", None),
        (b"GET //metrics HTTP/1.1\r\nHost: b\r\n\r\n", b"404 Not Found", None),
        (b"GET http://b/metrics HTTP/1.1\r\nHost: b\r\n\r\n", b"404 Not Found", None),
        (b"GET /../metrics HTTP/1.1\r\nHost: b\r\n\r\n", b"404 Not Found", None),
        (
            b"GET / HTTP/1.1\r\nHost: b\r\n\r\n",
            b"404 Not Found",
            b"404 Not Found\nThere are /metrics, /health and /ready.\n",
        ),
        (b"HEAD / HTTP/1.1\r\nHost: b\r\n\r\n", b"404 Not Found", b""),
        (b"POST /ready HTTP/1.1\r\nHost: b\r\n\r\n", b"405 Method Not Allowed", None),
        (b"POST /metrics HTTP/1.1\r\nHost: b\r\n\r\n", b"405 Method Not Allowed", None),
        (b"GET /metrics HTTP/1.1\r\n\r\n", b"400 Bad Request", None),  # RFC 9112: a Host is needed
        (b"GET /metrics\r\n\r\n", b"400 Bad Request", None),
        (b"\x00\x00\x00\x05\r\n\r\n", b"400 Bad Request", None),
    ],
)
async def test_what_is_answered_to_other_requests(request_: bytes, status: bytes, body: bytes | None) -> None:
    async with listening() as address:
        head, _, content = (await asked(address, request_)).partition(b"\r\n\r\n")
    assert head.splitlines()[0] == b"HTTP/1.1 " + status
    assert body is None or content == body


@pytest.mark.trio
async def test_a_request_that_is_too_long_or_ends_early_is_not_answered() -> None:
    async with listening() as address, await trio.open_tcp_stream(*address) as early:
        await early.send_all(b"GET /metrics")
        await early.send_eof()
        assert await early.receive_some() == b""
        async with await trio.open_tcp_stream(*address) as long:
            with pytest.raises(trio.BrokenResourceError):  # noqa: PT012 - sending fails, or reading
                while True:
                    await long.send_all(b"x" * http_server.MAX_REQUEST_BYTES)
                    if not await long.receive_some():
                        raise trio.BrokenResourceError


@pytest.mark.trio
async def test_slow_clients_lose_their_place_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as are served at a time send nothing; the next one is answered when their time is over."""
    monkeypatch.setattr(http_server, "REQUEST_S", 0.05)
    async with listening() as address:
        slow = [await trio.open_tcp_stream(*address) for _ in range(http_server.MAX_CONNECTIONS)]
        assert (await asked(address, GET)).startswith(b"HTTP/1.1 200 OK")
        for stream in slow:
            await stream.aclose()


@pytest.mark.trio
async def test_further_connections_wait_for_a_place() -> None:
    async with listening() as address:
        held = [await trio.open_tcp_stream(*address) for _ in range(http_server.MAX_CONNECTIONS)]
        for stream in held:  # all have been accepted
            await stream.send_all(b"GET /metrics HTTP/1.1\r\nHost: b\r\n")
        answers: list[bytes] = []
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                answers.append(await asked(address, GET))

            nursery.start_soon(ask)
            await held[0].send_all(b"\r\n")
            assert (await held[0].receive_some()).startswith(b"HTTP/1.1 200 OK")
        assert answers[0].startswith(b"HTTP/1.1 200 OK")
        for stream in held:
            await stream.aclose()


@pytest.mark.trio
async def test_a_client_that_does_not_read_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "RESPONSE_S", 0.05)
    ended = trio.Event()

    async def endless() -> AsyncGenerator[str, None]:
        try:
            while True:
                yield "x" * 100_000
        finally:
            ended.set()

    async with listening(endless) as address, await trio.open_tcp_stream(*address) as stream:
        await stream.send_all(GET)
        await ended.wait()


@pytest.mark.trio
async def test_a_scrape_that_fails_concerns_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    failures = [RuntimeError("the body fails")]

    async def body() -> AsyncGenerator[str, None]:
        if failures:
            raise failures.pop()
        yield "one 1\n"

    with caplog.at_level(logging.ERROR):
        async with listening(body) as address:
            await asked(address, GET)
            assert b"one 1" in await asked(address, GET)
    assert "A connection failed" in caplog.text


@for_each(
    ("value", "written"), [(nan, "NaN"), (inf, "+Inf"), (-inf, "-Inf"), (3.0, "3"), (-0.1, "-0.1"), (1e300, "1e+300")]
)
def test_every_number_is_written(value: float, written: str) -> None:
    metrics = KeptMetrics(10**6)
    metrics.add(metrics.begin(b"1", CLIENT, 60.0), Point("m", (), value, is_monotonic=False, is_delta=False))
    assert "".join(text_of_clients(metrics)).endswith(f"}} {written}\n")


def test_a_client_cannot_push_a_metric_of_the_broker() -> None:
    metrics = KeptMetrics(10**6)
    client = metrics.begin(b"1", CLIENT, 60.0)
    for name in ("barnabas.cpu.ratio", "kafka.brokers", "barnabas.turn.seconds.sum", "mine"):
        metrics.add(client, Point(name, (), 1.0, is_monotonic=False, is_delta=False))
    lines = "".join(text_of_clients(metrics)).splitlines()
    assert [line.split("{")[0] for line in lines] == ["# TYPE mine gauge", "mine"]


def test_many_series_are_written_in_pieces_while_they_change() -> None:
    metrics = KeptMetrics(10**7)
    client = metrics.begin(b"1", CLIENT, 60.0)
    for number in range(1000):
        attributes = (("n", str(number)),)
        metrics.add(client, Point(f"m{number % 3}", attributes, 1.0, is_monotonic=False, is_delta=False))
    pieces = text_of_clients(metrics)
    first = next(pieces)
    metrics.expire(60.0)
    rest = list(pieces)
    assert first.count("\n") == LINES
    assert all(piece.count("\n") <= LINES + 1 for piece in rest)
    assert first.startswith("# TYPE m0 gauge\n")


@for_each("address", ["9464", "host:port", "host:70000", "", ":"])
def test_an_address_is_host_and_port(address: str) -> None:
    with pytest.raises(ConfigError, match=r"barnabas\.metrics\.listener"):
        load({"barnabas.metrics.listener": address}, {}, None, "dev")


def test_the_port_is_not_that_of_a_listener() -> None:
    sets = {"listeners": "PLAINTEXT://127.0.0.1:9092", "barnabas.metrics.listener": "127.0.0.1:9092"}
    with pytest.raises(ConfigError, match="different port"):
        load(sets, {}, None, "dev")
