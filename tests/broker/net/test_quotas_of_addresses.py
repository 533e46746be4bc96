"""The rate at which an address may connect (KIP-612): connections above the rate are closed, after a while."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.broker.config.load import load
from barnabas.broker.net.refused_sockets import MOST
from barnabas.broker.security.ip_rates import ConnectionRates, IpRates
from tests.broker.turns import Turns, requests
from tests.support.sockets import is_ended_by_peer
from tests.support.world import Flushes

ADDRESS = "127.0.0.1"


class Limited(Turns):
    """Turns of a broker with quotas of addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = Flushes()
        self.rates = IpRates(load({}, {}, None, "dev"), lambda: self.time, self.threads)
        self.reactor.admission.ip_throttle_s = self.rates.throttle_s


@pytest.fixture
def limited() -> Iterator[Limited]:
    limited = Limited()
    yield limited
    limited.close()


@pytest.mark.parametrize("rates", [{ADDRESS: 1.0}, {None: 1.0}, {None: 1000.0, ADDRESS: 1.0}])
def test_connections_above_the_rate_are_closed_unserved(limited: Limited, rates: ConnectionRates) -> None:
    limited.rates.follow(rates)
    peers = [limited.dial() for _ in range(12)]
    assert limited.take_turns() == 10
    for peer in peers:
        peer.sendall(requests(1, 0))
    limited.until(lambda: len(limited.served) == 10)
    peers[11].setblocking(False)
    with pytest.raises(BlockingIOError):
        peers[11].recv(1)
    limited.advance(1.0)
    peers[11].setblocking(True)
    with pytest.raises(ConnectionResetError):  # the broker has not read the sent bytes
        peers[11].recv(1)
    assert len(limited.served) == 10


def test_refused_connections_do_not_count_for_the_rate(limited: Limited) -> None:
    limited.rates.follow({ADDRESS: 1.0})
    for _ in range(12):
        limited.dial()
    assert limited.take_turns() == 10
    for _ in range(10):
        limited.dial()
        limited.dial()
        assert limited.advance(1.0) == 10
    limited.advance(1.0)
    limited.dial()
    assert limited.take_turns() == 11


def test_other_addresses_are_not_limited(limited: Limited) -> None:
    limited.rates.follow({"10.0.0.1": 1.0})
    for _ in range(30):
        limited.dial()
    assert limited.take_turns() == 30


def test_a_changed_rate_applies_to_the_next_connection(limited: Limited) -> None:
    limited.rates.follow({None: 1.0})
    for _ in range(12):
        limited.dial()
    assert limited.take_turns() == 10
    limited.rates.follow({None: 100.0})
    for _ in range(5):
        limited.dial()
    assert limited.take_turns() == 15


def test_names_of_hosts_are_looked_up_in_a_thread(limited: Limited) -> None:
    limited.threads.is_paused = True
    limited.rates.follow({"localhost": 1.0})
    for _ in range(20):
        limited.dial()
    assert limited.take_turns() == 20
    limited.threads.run()
    for _ in range(20):
        limited.dial()
    assert limited.take_turns() == 30


def test_few_refused_connections_are_held_open(limited: Limited) -> None:
    limited.rates.follow({ADDRESS: 1.0})
    peers = [limited.dial() for _ in range(10)]
    assert limited.take_turns() == 10
    for _ in range(MOST + 5):
        peers.append(limited.dial())
        limited.reactor.turn()
    limited.take_turns()
    for peer in peers[-5:]:
        assert is_ended_by_peer(peer)
    peers[10].setblocking(False)
    with pytest.raises(BlockingIOError):
        peers[10].recv(1)
