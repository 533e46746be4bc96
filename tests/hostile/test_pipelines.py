"""Connections that pipeline expensive requests: others are served in between, and SIGTERM is not made to wait."""

from __future__ import annotations

import contextlib
import threading

import pytest

from barnabas.wire.messages.metadata import MetadataRequest
from tests.hostile.attacker import Attacker, frame
from tests.hostile.harness import HealthyClient, Victim, beside_healthy_client, stop_in_grace

PARTITIONS = 2000
PIPELINED = 300
GRACE_CPU_S = 6.0
"""What a stop may use of CPU: five seconds to send responses, and the shutdown itself."""


def attack(victim: Victim, beside: HealthyClient | None, connections: int) -> list[Attacker]:
    """Connections that each send all their requests and read nothing yet."""
    sent = frame(MetadataRequest(topics=None), 12) * PIPELINED
    attackers = [Attacker(victim, beside) for _ in range(connections)]
    for attacker in attackers:
        attacker.socket.sendall(sent)
    return attackers


def drain(attacker: Attacker) -> None:
    """Read whatever arrives until the connection ends."""
    try:
        while attacker.socket.recv(1 << 20):
            pass
    except OSError:
        pass


def read_all(attackers: list[Attacker]) -> list[threading.Thread]:
    """Threads that read the responses."""
    threads = [threading.Thread(target=drain, args=(attacker,), daemon=True) for attacker in attackers]
    for thread in threads:
        thread.start()
    return threads


@pytest.fixture
def victim(victim: Victim) -> Victim:
    """The broker of this file, with a topic of many partitions."""
    with Attacker(victim) as setup:
        setup.create_topic("many", PARTITIONS, may_exist=True)
    return victim


@pytest.mark.parametrize("connections", [4, pytest.param(100, marks=pytest.mark.soak)])
def test_metadata_of_many_partitions_pipelined(victim: Victim, connections: int) -> None:
    with beside_healthy_client(victim) as healthy:
        attackers = attack(victim, healthy, connections)
        threads = read_all(attackers)
        healthy.wait_rounds(20)
        for attacker in attackers:
            attacker.reset()
        for thread in threads:
            thread.join()


def test_requests_of_clients_that_are_gone_are_dropped(victim: Victim) -> None:
    with beside_healthy_client(victim) as healthy:
        attackers = attack(victim, healthy, 10)
        for attacker in attackers:
            attacker.reset()
        before = victim.cpu()
        healthy.settle()
        assert victim.cpu() - before < 5.0  # all 3,000 requests need 15 s and more


@pytest.mark.parametrize("connections", [pytest.param(4, marks=pytest.mark.soak), 100])
def test_sigterm_beside_pipelined_requests(victim: Victim, connections: int) -> None:
    with contextlib.ExitStack() as stack:
        attackers = [stack.enter_context(attacker) for attacker in attack(victim, None, connections)]
        threads = read_all(attackers)
        stop_in_grace(victim, GRACE_CPU_S)
        for thread in threads:
            thread.join()
