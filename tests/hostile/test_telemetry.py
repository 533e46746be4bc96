"""Pushes of client metrics that cost more to read than to send, and scrapers that do not behave."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import zstandard

from barnabas.broker.exporter.http_server import MAX_CONNECTIONS
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.telemetry import GetTelemetrySubscriptionsRequest, PushTelemetryRequest
from tests.hostile.attacker import Attacker
from tests.hostile.conftest import module_victim
from tests.hostile.harness import Victim, beside_healthy_client
from tests.support.processes.ports import free_port
from tests.support.requests.otlp_writer import gauge, number, push, sum_of, text, varint_field

ZSTD = 4
PUSHES = [1, pytest.param(10, marks=pytest.mark.soak)]
MEGABYTE = 1_048_576
ATTRIBUTE = text(7, text(1, "k") + text(2, varint_field(3, 1) * 4) * 3)
NONSENSE: dict[str, Callable[[], bytes]] = {
    "a megabyte of empty fields": lambda: varint_field(1, 0) * (MEGABYTE // 2),
    "half a million empty resources": lambda: text(1, b"") * (MEGABYTE // 2),
    "half a million empty metrics": lambda: text(1, text(2, text(2, b"") * (MEGABYTE // 2 - 8))),
    "half a million points without a value": lambda: push([gauge("m", *[b""] * (MEGABYTE // 2 - 16))]),
    "points with many attributes": lambda: push([gauge("m", *[number(1.0) + ATTRIBUTE * 60] * 400)]),
    "sums whose kind comes last": lambda: push([sum_of("m", *[b""] * (MEGABYTE // 2 - 32), is_delta=True)]),
    "many names": lambda: push([gauge(f"metric.{number_}", number(1.0)) for number_ in range(30_000)]),
    "many series": lambda: push([gauge("m", *(number(1.0, topic=f"{number_:060}") for number_ in range(9_000)))]),
}
"""What makes each when a test needs it: they are megabytes."""


@pytest.fixture(scope="module")
def _scraped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Victim, int]]:
    port = free_port()
    with module_victim(request, tmp_path_factory, {"barnabas.metrics.listener": f"127.0.0.1:{port}"}) as victim:
        yield victim, port


@pytest.fixture
def scraped(_scraped: tuple[Victim, int]) -> tuple[Victim, int]:
    """A broker with a listener of metrics, and its port: one for these tests, started again if one has ended it."""
    _scraped[0].start_if_ended()
    return _scraped


def push_as_somebody_new(attacker: Attacker, metrics: bytes) -> int:
    """Push as a client that the broker does not know yet, so that no push interval applies."""
    subscription = attacker(GetTelemetrySubscriptionsRequest(), 0)
    request = PushTelemetryRequest(
        client_instance_id=subscription.client_instance_id,
        subscription_id=subscription.subscription_id,
        compression_type=ZSTD,
        metrics=zstandard.compress(metrics),
    )
    return attacker(request, 0).error_code


def figure(port: int, name: str) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as response:
        lines = response.read().decode().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name} "))
    return float(line.split()[1])


@pytest.mark.parametrize("pushes", PUSHES)
@pytest.mark.parametrize("name", NONSENSE)
def test_a_megabyte_of_metrics(scraped: tuple[Victim, int], name: str, pushes: int) -> None:
    victim, port = scraped
    metrics = NONSENSE[name]()
    assert len(metrics) <= MEGABYTE
    with beside_healthy_client(victim, memory_limit=250 << 20) as healthy:
        attacker = Attacker(victim, healthy)
        for _ in range(pushes):
            assert push_as_somebody_new(attacker, metrics) in {ErrorCode.NONE, ErrorCode.INVALID_RECORD}
        assert figure(port, "barnabas_client_metrics_bytes") <= 33_554_432


def test_metrics_that_expand_to_gigabytes(scraped: tuple[Victim, int]) -> None:
    victim, _ = scraped
    bomb = zstandard.compress(bytes(1 << 30))
    with beside_healthy_client(victim) as healthy:
        attacker = Attacker(victim, healthy)
        subscription = attacker(GetTelemetrySubscriptionsRequest(), 0)
        request = PushTelemetryRequest(
            client_instance_id=subscription.client_instance_id,
            subscription_id=subscription.subscription_id,
            compression_type=ZSTD,
            metrics=bomb,
        )
        assert attacker(request, 0).error_code == ErrorCode.INVALID_RECORD


def test_scrapers_that_do_not_read_and_those_that_send_nothing(scraped: tuple[Victim, int]) -> None:
    victim, port = scraped
    metrics = NONSENSE["many series"]()
    with beside_healthy_client(victim) as healthy, ExitStack() as stack:
        attacker = Attacker(victim, healthy)
        for _ in range(5):
            push_as_somebody_new(attacker, metrics)
        for index in range(3 * MAX_CONNECTIONS):
            scraper = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            if index % 2:
                scraper.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                scraper.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        healthy.wait_rounds(20)
        assert push_as_somebody_new(attacker, b"") == 0
