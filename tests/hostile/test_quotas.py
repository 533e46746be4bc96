"""Clients that make up a client id for each request, where each has a quota; and one that ignores its own."""

from __future__ import annotations

import ssl
import time

import pytest

from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.quotas import AlterClientQuotasRequest
from tests.hostile.attacker import Attacker, frame_of
from tests.hostile.harness import Victim, beside_healthy_client
from tests.support.requests.quotas import alteration

REQUEST = ApiVersionsRequest(client_software_name="hostile", client_software_version="1")
VERSION = 3
IN_FLIGHT = 500
SMALL = MetadataRequest(topics=[])
"""A request whose response costs little."""
SMALL_VERSION = 12


def ask(attacker: Attacker, client_ids: list[str]) -> None:
    """Send a request of each client id, and read the responses."""
    body = SMALL.encode(SMALL_VERSION)
    first = len(attacker.sent)
    frames = [
        frame_of(SMALL.api_key, SMALL_VERSION, body, first + number, client_id)
        for number, client_id in enumerate(client_ids)
    ]
    attacker.sent += [(SMALL.api_key, SMALL_VERSION)] * len(client_ids)
    attacker.socket.sendall(b"".join(frames))
    for _ in client_ids:
        attacker.read()


def limit(victim: Victim, client_id: str | None, percentage: float) -> None:
    """Set the quota of requests of a client id, or of all others."""
    with Attacker(victim) as setup:
        entries = [alteration({"client-id": client_id}, {"request_percentage": percentage})]
        assert setup(AlterClientQuotasRequest(entries=entries), 1).entries[0].error_code == 0


@pytest.mark.timeout(600)
@pytest.mark.parametrize("count", [12_000, pytest.param(200_000, marks=pytest.mark.soak)])
def test_made_up_client_ids_take_bounded_memory_and_time(start_victim, count) -> None:
    victim = start_victim()
    limit(victim, None, 1e6)
    with beside_healthy_client(victim) as healthy, Attacker(victim, healthy) as attacker:
        for start in range(0, count, IN_FLIGHT):
            ask(attacker, [f"id-{number}" for number in range(start, start + IN_FLIGHT)])


def answered(attacker: Attacker, size: int) -> int:
    """How many responses of `size` bytes each have arrived and wait in the socket."""
    arrived = 0
    try:
        while data := attacker.socket.recv(1 << 20):
            arrived += len(data)
    except (BlockingIOError, ssl.SSLWantReadError):
        pass
    return arrived // size


def test_a_client_that_does_not_wait_is_served_once_a_second(start_victim) -> None:
    victim = start_victim()
    limit(victim, "greedy", 0.001)
    request = frame_of(REQUEST.api_key, VERSION, REQUEST.encode(VERSION), 0, "greedy")
    with Attacker(victim) as patient:
        size = len(patient(REQUEST, VERSION).encode(VERSION)) + 8
    with beside_healthy_client(victim) as healthy:
        attackers = [Attacker(victim, healthy) for _ in range(10)]
        began = time.monotonic()
        for attacker in attackers:
            attacker.socket.setblocking(False)
            attacker.socket.send(request * 1000)
        healthy.wait_rounds(20)
        served = [answered(attacker, size) for attacker in attackers]
        elapsed = time.monotonic() - began
        for attacker in attackers:
            attacker.reset()
    assert all(count <= 20 + elapsed for count in served), "it was served without waiting"
    assert any(served)
