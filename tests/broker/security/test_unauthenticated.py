"""Connections that do not authenticate: limited in number, time and memory, without harm to the others."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from math import inf

import pytest

from barnabas.broker.net.acceptor import Listener, bind
from barnabas.broker.net.connection import Connection
from barnabas.broker.net.limits import Limits
from barnabas.broker.net.unauthenticated import GRACE_S
from tests.broker.turns import Turns, requests
from tests.support.sockets import is_ended_by_peer

LARGE = 100_000
"""More than the first buffer of a frame."""


class Guarded(Turns):
    """Turns with a second listener on which clients have to authenticate; a test says when they have."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        listening = bind("127.0.0.1", 0, 200)
        guarded = Listener("GUARDED", listening, protocol="SASL_PLAINTEXT")
        self.accepted: list[Connection] = []
        guarded.prepare = self.accepted.append
        self.reactor.listen(guarded)
        self.guarded: tuple[str, int] = listening.getsockname()

    def enter(self, count: int = 1) -> list[socket.socket]:
        """Clients on the second listener, accepted or not."""
        peers = [self.dial(self.guarded) for _ in range(count)]
        self.take_turns()
        return peers


def is_closed(peer: socket.socket) -> bool:
    peer.setblocking(False)
    try:
        return is_ended_by_peer(peer)
    except BlockingIOError:
        return False


@pytest.fixture
def guarded(request: pytest.FixtureRequest) -> Iterator[Guarded]:
    guarded = Guarded(Limits(**request.param))
    yield guarded
    guarded.close()


def limited(**limits: float) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("guarded", [limits], indirect=True, ids=[""])


@limited(authentication_s=30.0)
def test_who_does_not_authenticate_in_time_is_closed_with_a_line(guarded: Guarded, caplog) -> None:
    (early,) = guarded.enter()
    guarded.advance(10)
    (late,) = guarded.enter()
    done, plain = guarded.enter()[0], guarded.connect()
    guarded.accepted[2].authenticated()
    assert guarded.advance(20) == 3
    assert [is_closed(peer) for peer in (early, late, done, plain)] == [True, False, False, False]
    assert guarded.advance(10) == 2
    assert [is_closed(peer) for peer in (late, done, plain)] == [True, False, False]
    (line, _) = caplog.messages
    assert "to the listener GUARDED: it has not authenticated within 30 s (barnabas.authentication.timeout.ms)" in line
    guarded.advance(10)  # the window of log lines
    assert guarded.loop.timers.next_deadline() == inf


@limited(authentication_s=30.0)
def test_a_byte_at_a_time_gives_no_more_time(guarded: Guarded) -> None:
    (slow,) = guarded.enter()
    slow.sendall(struct.pack(">i", LARGE))
    for _ in range(29):
        slow.sendall(b"\0")
        assert guarded.advance(1) == 1
    assert guarded.advance(1) == 0


@limited(authentication_s=30.0)
def test_a_shorter_time_applies_to_who_is_connected(guarded: Guarded) -> None:
    guarded.enter()
    guarded.advance(5)
    guarded.reactor.set_limits(Limits(authentication_s=6.0))
    assert guarded.take_turns() == 1
    assert guarded.advance(1) == 0


@limited(max_unauthenticated=2)
def test_further_ones_wait_for_another_to_be_authenticated(guarded: Guarded) -> None:
    guarded.enter(4)
    assert len(guarded.reactor.connections) == 2
    guarded.connect()  # the other listener has no such limit
    guarded.accepted[0].authenticated()
    assert guarded.take_turns() == 4
    guarded.reactor.set_limits(Limits(max_unauthenticated=3))
    assert guarded.take_turns() == 5


@limited(max_unauthenticated=2)
def test_the_oldest_makes_room_once_it_has_had_its_time(guarded: Guarded, caplog) -> None:
    first, second, third = guarded.enter(3)
    assert len(guarded.accepted) == 2
    guarded.advance(GRACE_S)
    assert [is_closed(peer) for peer in (first, second, third)] == [True, False, False]
    assert len(guarded.accepted) == 3
    assert any("barnabas.unauthenticated.connections.max=2 is reached" in line for line in caplog.messages)


@limited(max_unauthenticated_bytes=150_000)
def test_large_requests_share_their_memory_and_do_not_take_that_of_the_others(guarded: Guarded) -> None:
    first, second = guarded.enter(2)
    plain = guarded.connect_served()
    announced = struct.pack(">i", LARGE) + bytes(1000)
    for peer in (first, second, plain):
        peer.sendall(announced)
    guarded.take_turns()
    assert [connection.wants_data for connection in guarded.accepted] == [True, False]
    guarded.reactor.set_limits(Limits(max_unauthenticated_bytes=-1, max_queued_bytes=10))
    first.close()
    guarded.take_turns()
    assert guarded.accepted[1].wants_data
    plain.sendall(bytes(LARGE - 1000))
    guarded.until(lambda: guarded.count(plain) == 2)


@limited(max_unauthenticated_bytes=150_000)
def test_what_is_received_afterwards_counts_for_all(guarded: Guarded) -> None:
    first, second = guarded.enter(2)
    guarded.accepted[0].authenticated()
    for peer in (first, second):
        peer.sendall(struct.pack(">i", LARGE) + bytes(1000))
    guarded.take_turns()
    assert [connection.wants_data for connection in guarded.accepted] == [True, True]
    first.sendall(bytes(LARGE - 1000) + requests(1, 0))
    guarded.until(lambda: guarded.count(first) == 2)
