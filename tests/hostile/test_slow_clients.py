"""Clients that send slowly, never finish, do not read, or disappear: they cost what they hold, and delay no other."""

from __future__ import annotations

import contextlib
import socket
import struct

import pytest

from barnabas.wire.batches.records import build_batch
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.fetch import FetchRequest, FetchRequestFetchPartition, FetchRequestFetchTopic
from barnabas.wire.messages.groups.classic_groups import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.hostile.attacker import Attacker, frame
from tests.hostile.harness import HealthyClient, Victim, beside_healthy_client, descriptors, needs_plaintext
from tests.support.waiting import Deadline

SLOW = 200
ANNOUNCED = 100 << 20
VALUE = 900_000


def fetch(topic: str, offset: int = 0, wait_ms: int = 0, min_bytes: int = 0) -> FetchRequest:
    """A fetch of one partition."""
    requested = FetchRequestFetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=wait_ms, min_bytes=min_bytes, max_bytes=1 << 20,
        topics=[FetchRequestFetchTopic(topic=topic, partitions=[requested])],
    )  # fmt: skip


def wait_until_closed(victim: Victim, healthy: HealthyClient, before: int) -> None:
    """Wait until the broker has no more descriptors than before, while it serves the healthy client."""
    deadline = Deadline(lambda: f"{before} descriptors, as before: {descriptors(victim.pid)} are open")
    while descriptors(victim.pid) > before:
        deadline.check()
        healthy.wait_rounds(1)


def test_a_byte_at_a_time(victim) -> None:
    request = ApiVersionsRequest(client_software_name="slow", client_software_version="1")
    with beside_healthy_client(victim) as healthy:
        attackers = [Attacker(victim, healthy) for _ in range(SLOW)]
        data = frame(request, 3, len(attackers[0].sent))
        for attacker in attackers:
            attacker.sent.append((18, 3))
        for at in range(len(data)):
            for attacker in attackers:
                attacker.socket.sendall(data[at : at + 1])
        for attacker in attackers:
            assert attacker.read().error_code == 0


def test_frames_that_are_begun_and_never_ended(victim) -> None:
    """100 connections announce 100 MB each and send little of it: memory grows with the data, not with the promise."""
    with beside_healthy_client(victim) as healthy:
        for _ in range(100):
            attacker = Attacker(victim, healthy)
            attacker.socket.sendall(struct.pack(">i", ANNOUNCED) + bytes(1000))
        healthy.settle()


def test_responses_that_are_not_read(victim) -> None:
    """Each connection asks for 200 MB and reads nothing: the broker stops to serve it."""
    with beside_healthy_client(victim) as healthy:
        setup = Attacker(victim, healthy)
        setup.create_topic("unread")
        batch = build_batch([(1000, None, bytes(VALUE))])
        data = PartitionProduceData(index=0, records=batch)
        topic = TopicProduceData(name="unread", partition_data=[data])
        assert setup(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic]), 9).responses
        requests = frame(fetch("unread"), 12) * 200
        for _ in range(20):
            attacker = Attacker(victim, healthy)
            attacker.socket.settimeout(1)
            attacker.socket.sendall(requests)
        healthy.settle()


def test_clients_gone_in_long_polls(victim) -> None:
    """Fetches and joins whose clients have gone are forgotten: connections, descriptors, waits."""
    join = JoinGroupRequest(
        group_id="gone", session_timeout_ms=6000, rebalance_timeout_ms=6000, protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m")],
    )  # fmt: skip
    with beside_healthy_client(victim) as healthy:
        before = descriptors(victim.pid)
        for number in range(100):
            attacker = Attacker(victim, healthy)
            waits = frame(fetch("healthy", 1 << 40 if number % 3 == 0 else 0, 600_000, 1 << 30), 12)
            attacker.socket.sendall(frame(join, 3) if number % 2 else waits)
            if number % 4 < 2:
                attacker.reset()
            else:
                attacker.close()
        wait_until_closed(victim, healthy, before)


def test_half_closed_sockets(victim) -> None:
    """The client ends its sending side after a request: it gets its response, or the connection is closed."""
    with beside_healthy_client(victim) as healthy:
        before = descriptors(victim.pid)
        attackers = [Attacker(victim, healthy) for _ in range(50)]
        for attacker in attackers:
            attacker.socket.sendall(frame(ApiVersionsRequest(), 0))
            attacker.socket.shutdown(socket.SHUT_WR)
        for attacker in attackers:
            while attacker.socket.recv(1 << 16):
                pass
        wait_until_closed(victim, healthy, before)


@pytest.mark.parametrize("limit", ["max.connections", pytest.param("max.connections.per.ip", marks=pytest.mark.soak)])
def test_flood_of_connections(start_victim, limit) -> None:
    """Those above the limit wait for room, or are closed; those below it work; later there is room again."""
    victim = start_victim({limit: "20"})
    needs_plaintext(victim)
    with beside_healthy_client(victim) as healthy:
        attackers = [Attacker(victim, healthy) for _ in range(100)]
        for attacker in attackers:
            with contextlib.suppress(ConnectionError):
                attacker.send(ApiVersionsRequest(), 0)
        healthy.settle()
        answered = 0
        for attacker in attackers:
            if attacker.has_answer():
                with contextlib.suppress(ConnectionError):
                    answered += attacker.read().error_code == 0
        assert 0 < answered < 20
        assert descriptors(victim.pid) < 80
        for attacker in attackers:
            attacker.close()
        healthy.settle()
        assert Attacker(victim, healthy)(ApiVersionsRequest(), 0).error_code == 0
