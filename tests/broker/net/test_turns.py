"""Turns of the reactor are bounded by time and shared fairly; nothing that fails in one ends the reactor."""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from math import ceil

import pytest
import trio

from barnabas.broker.event_loop.loop import CALLBACKS_S, Loop
from barnabas.broker.event_loop.slices import SLICE_S
from barnabas.broker.event_loop.timers import FIRE_S
from barnabas.broker.event_loop.waiting import start_later
from barnabas.broker.net.acceptor import ACCEPT_S
from barnabas.broker.net.channel import Channel
from barnabas.broker.net.connection import OUT_LIMIT_BYTES, SHARE_S
from barnabas.broker.net.reactor import CHECKPOINT_S, ROTATION_S, SEND_S, TURN_S
from tests.broker.turns import Turns, received, requests
from tests.support.waiting import within

SHARE_MS = SHARE_S * 1000


@pytest.fixture
def turns() -> Iterator[Turns]:
    turns = Turns()
    yield turns
    turns.close()


def test_requests_that_wait_in_one_connection_do_not_hold_up_another(turns: Turns) -> None:
    """Before, all 300 requests of each connection were handled first."""
    greedy = [turns.connect() for _ in range(4)]
    other = turns.connect_served()
    for peer in greedy:
        peer.sendall(requests(300, 10 * SHARE_MS))
    turns.until(lambda: all(turns.count(peer) for peer in greedy))
    before = len(turns.served)
    assert before <= 9
    other.sendall(requests(1, 0))
    turns.until(lambda: turns.count(other) == 2)
    assert len(turns.served) - before <= 3


def test_the_share_of_a_turn_is_an_amount_of_time(turns: Turns) -> None:
    peer = turns.connect()
    peer.sendall(requests(100, SHARE_MS / 10))
    turns.until(lambda: turns.served)
    assert len(turns.served) == 10
    turns.until(lambda: len(turns.served) == 100)


def test_connections_that_use_up_their_shares_are_served_in_rotation(turns: Turns) -> None:
    greedy = [turns.connect() for _ in range(5)]
    for peer in greedy:
        peer.sendall(requests(50, 2 * SHARE_MS))
    counts = []
    while len(turns.served) < 250:
        turns.reactor.turn()
        counts.append([turns.count(peer) for peer in greedy])
    assert all(max(count) - min(count) <= 1 for count in counts)


def test_a_turn_ends_after_its_time_and_the_others_are_served_next(turns: Turns) -> None:
    for connect in (turns.connect, turns.connect_served):
        peers = [connect() for _ in range(20)]
        turns.take_turns()
        turns.served.clear()
        for peer in peers:
            peer.sendall(requests(1, SHARE_MS / 2))
        taken = []
        while len(turns.served) < 20:
            before = turns.time
            turns.reactor.turn()
            taken.append(turns.time - before)
        assert max(taken) <= TURN_S + SHARE_S
        assert len(set(turns.served)) == 20


def test_constant_cheap_traffic_does_not_stop_the_rotation(turns: Turns) -> None:
    cheap = [turns.connect_served() for _ in range(round(4 * TURN_S / SHARE_S))]
    greedy = turns.connect()
    greedy.sendall(requests(40, 2 * SHARE_MS))
    for _ in range(100):
        for peer in cheap:
            peer.sendall(requests(1, SHARE_MS / 4))
        turns.reactor.turn()
    assert turns.count(greedy) == 40


def test_a_connection_with_expensive_requests_waits_for_those_with_cheap_ones(turns: Turns) -> None:
    """Also one that sends its next request only after the response."""
    expensive, cheap = turns.connect_served(), turns.connect_served()
    for count in (2, 3):
        expensive.sendall(requests(1, 5 * SHARE_MS))
        turns.until(lambda count=count: turns.count(expensive) == count)
    turns.served.clear()
    expensive.sendall(requests(1, 5 * SHARE_MS))
    cheap.sendall(requests(1, 0))
    turns.until(lambda: len(turns.served) == 2)
    assert turns.served == [peer.getsockname()[1] for peer in (cheap, expensive)]


@pytest.mark.parametrize("is_alone", [True, False])
def test_time_that_passes_for_other_processes_makes_no_connection_wait(turns: Turns, is_alone: bool) -> None:
    """An event alone and several events of a turn are served by different functions."""
    served, beside, heavy = turns.connect_served(), turns.connect_served(), turns.connect()
    turns.cpu_share = 0.0
    for count in (2, 3, 4):
        if not is_alone:
            beside.sendall(requests(1, 0))
        served.sendall(requests(1, 5 * SHARE_MS))
        turns.until(lambda count=count: turns.count(served) == count)
    assert not turns.reactor.turn()
    turns.served.clear()
    heavy.sendall(requests(1, 5 * SHARE_MS))
    served.sendall(requests(1, 0))
    turns.until(lambda: len(turns.served) == 2)
    assert turns.served == [peer.getsockname()[1] for peer in (served, heavy)]


def test_a_request_waits_for_no_burst_of_new_connections(turns: Turns) -> None:
    """The cost of a connection's first request is unknown: connections with cheap requests so far are served first."""
    cheap = turns.connect_served()
    for peer in [turns.connect() for _ in range(50)]:
        peer.sendall(requests(1, 10 * SHARE_MS))
    before = len(turns.served)
    turns.reactor.turn()
    cheap.sendall(requests(1, 0))
    turns.until(lambda: turns.count(cheap) == 2)
    assert len(turns.served) - before <= 4


def test_in_a_crowd_a_request_waits_for_one_of_each_connection(turns: Turns) -> None:
    crowd = [turns.connect_served() for _ in range(40)]
    other = turns.connect_served()
    turns.take_turns()  # the poller returns first the sockets that were ready at the last poll
    turns.served.clear()
    for peer in crowd:
        peer.sendall(requests(3, SHARE_MS / 4))
    other.sendall(requests(1, 0))
    turns.until(lambda: turns.count(other) == 1)
    assert len(crowd) <= len(turns.served) <= 2 * len(crowd)  # one of each, and the ones of the rotation
    turns.until(lambda: len(turns.served) == 3 * len(crowd) + 1)


def test_a_frame_that_was_begun_counts_to_the_share(turns: Turns) -> None:
    peer = turns.connect_served()
    turns.served.clear()
    sent = requests(3, 2 * SHARE_MS)
    (connection,) = turns.reactor._channels
    peer.sendall(sent[:5])
    turns.until(lambda: connection.frame_bytes)
    peer.sendall(sent[5:])
    turns.until(lambda: turns.served)
    assert len(turns.served) == 2  # it, and one in the rotation
    turns.until(lambda: len(turns.served) == 3)


def test_who_had_too_many_requests_in_a_crowd_waits_some_times(turns: Turns) -> None:
    crowd = [turns.connect_served() for _ in range(10)]
    other = turns.connect_served()
    for peer in crowd:
        peer.sendall(requests(3, SHARE_MS / 4))
    turns.until(lambda: all(turns.count(peer) == 4 for peer in crowd))

    def served_before() -> int:
        turns.served.clear()
        for peer in crowd:
            peer.sendall(requests(1, SHARE_MS / 4))
        other.sendall(requests(1, 0))
        turns.until(lambda: len(turns.served) == 11)
        return turns.served.index(other.getsockname()[1])

    assert served_before() == 0
    while served_before() == 0:
        pass  # ends: they are served in order again
    assert served_before() == len(crowd)


def test_the_requests_of_a_closed_connection_are_dropped(turns: Turns) -> None:
    peer = turns.connect()
    peer.sendall(requests(300, 10 * SHARE_MS))
    turns.until(lambda: turns.served)
    peer.close()
    turns.until(lambda: not len(turns.reactor.connections))
    assert len(turns.served) <= 3


def test_a_peer_that_has_closed_its_side_only_is_answered(turns: Turns) -> None:
    """As by Kafka, which reads one request after the other, and the end of the stream after them."""
    peer = turns.connect()
    peer.sendall(requests(30, SHARE_MS))
    peer.shutdown(socket.SHUT_WR)
    turns.until(lambda: not len(turns.reactor.connections))
    assert len(turns.served) == 30
    assert received(peer, len(turns.response)) == 30


def test_responses_to_a_peer_that_has_closed_its_side_are_sent_completely() -> None:
    turns = Turns(response_bytes=OUT_LIMIT_BYTES - 8)
    peer = turns.connect()
    (channel,) = turns.reactor._channels.values()
    channel.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
    peer.sendall(requests(1, 0))
    turns.until(lambda: turns.served)
    peer.shutdown(socket.SHUT_WR)
    turns.until(lambda: channel.connection.is_closing)
    assert channel.connection.out
    with ThreadPoolExecutor() as reader:
        count = reader.submit(received, peer, len(turns.response))
        turns.until(lambda: not len(turns.reactor.connections))
        assert count.result() == 1
    turns.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a reset is noticed by the next read or write")
def test_the_requests_of_a_reset_connection_are_dropped(turns: Turns) -> None:
    """Both the requests that were read and the ones that wait behind them."""
    peer = turns.connect()
    for _ in range(2):
        peer.sendall(requests(300, 10 * SHARE_MS))
        turns.reactor.turn()
        turns.reactor.turn()
    before = len(turns.served)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
    turns.until(lambda: not len(turns.reactor.connections))
    assert len(turns.served) == before


def test_a_reset_is_noticed_while_responses_wait() -> None:
    """The connection is not read then."""
    turns = Turns(response_bytes=OUT_LIMIT_BYTES)
    peer = turns.connect()
    peer.sendall(requests(300, 0))
    turns.until(lambda: turns.served)
    for _ in range(20):
        turns.reactor.turn()
    before = len(turns.served)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
    turns.until(lambda: not len(turns.reactor.connections))
    assert len(turns.served) == before
    turns.close()


def test_a_stop_drops_the_requests_that_are_kept(turns: Turns) -> None:
    peers = [turns.connect() for _ in range(100)]
    for peer in peers:
        peer.sendall(requests(100, 2 * SHARE_MS))
    turns.until(lambda: len(turns.served) >= 150)
    turns.reactor.acceptor.close()
    before = len(turns.served)
    turns.reactor.stop_reading()
    turns.until(lambda: not len(turns.reactor.connections))
    assert len(turns.served) == before
    assert sum(received(peer, len(turns.response)) for peer in peers) == before


class _SlowSocket:
    """A socket whose sends take time."""

    def __init__(self, real: socket.socket, turns: Turns, cost_s: float) -> None:
        self._real = real
        self._turns = turns
        self._cost_s = cost_s

    def __getattr__(self, name: str):
        return getattr(self._real, name)

    def send(self, data: bytes) -> int:
        self._turns.time += self._cost_s
        return self._real.send(data)


def test_sending_is_bounded_by_time(turns: Turns) -> None:
    peers = [turns.connect() for _ in range(100)]
    for channel in turns.reactor._channels.values():
        channel.socket = _SlowSocket(channel.socket, turns, SEND_S / 8)  # type: ignore[assignment]
    for peer in peers:
        peer.sendall(requests(1, 0))
    taken = []
    while turns.reactor._to_flush or not taken:
        before = turns.time
        turns.reactor.turn()
        taken.append(turns.time - before)
    assert max(taken) <= 3 * SEND_S
    turns.reactor.stop_reading()
    turns.until(lambda: not len(turns.reactor.connections))
    assert [received(peer, len(turns.response)) for peer in peers] == [1] * 100


def test_connections_are_accepted_for_a_bounded_time(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    admit = turns.reactor.acceptor._admit

    def slow(*arguments) -> None:
        turns.time += ACCEPT_S / 2
        admit(*arguments)

    monkeypatch.setattr(turns.reactor.acceptor, "_admit", slow)
    for _ in range(30):
        turns.dial()
    turns.reactor.turn()
    assert len(turns.reactor.connections) == 2
    turns.until(lambda: len(turns.reactor.connections) == 30)


def test_a_callback_that_fails_ends_neither_the_reactor_nor_its_turn(
    turns: Turns, caplog: pytest.LogCaptureFixture
) -> None:
    readable, writable = os.pipe()
    calls = []

    def broken() -> None:
        calls.append(os.read(readable, 1))
        raise ZeroDivisionError

    peer = turns.connect()
    turns.reactor.watch(readable, broken)
    os.write(writable, b"xy")
    peer.sendall(requests(1, 0))
    turns.until(lambda: turns.served and len(calls) == 2)
    assert len(caplog.records) == 2
    os.close(writable)
    os.close(readable)


@pytest.mark.trio
async def test_a_turn_that_fails_does_not_end_the_reactor(
    turns: Turns, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    serve = turns.reactor._serve

    def failing_once(*arguments):
        monkeypatch.setattr(turns.reactor, "_serve", serve)
        raise ZeroDivisionError

    peer = turns.connect()
    monkeypatch.setattr(turns.reactor, "_serve", failing_once)
    with within("an answer after a turn that has failed"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(turns.reactor.run)
            peer.sendall(requests(1, 0))
            await trio.to_thread.run_sync(peer.recv, len(turns.response))
            nursery.cancel_scope.cancel()
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.trio
async def test_other_tasks_run_after_a_time_not_after_a_number_of_turns(turns: Turns) -> None:
    """A signal is handled by such a task: SIGTERM had no effect for a minute."""
    peers = [turns.connect() for _ in range(20)]
    for peer in peers:
        peer.sendall(requests(300, CHECKPOINT_S * 1000))
    served = []

    async def count() -> None:
        while len(served) < 20:
            await trio.lowlevel.checkpoint()
            served.append(len(turns.served))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.reactor.run)
        await count()
        nursery.cancel_scope.cancel()
    assert 0 < max(after - before for before, after in pairwise(served)) <= 4


@pytest.mark.trio
async def test_a_failed_turn_before_other_tasks_does_not_end_the_reactor(
    turns: Turns, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    peers = [turns.connect() for _ in range(2)]
    for peer in peers:
        peer.sendall(requests(20, CHECKPOINT_S * 1000))
    turn = turns.reactor.turn
    failures = iter([RuntimeError("a bug")])

    def failing(linger_s: float = 0.0, *, rotates: bool = True) -> bool:
        if not rotates and (failure := next(failures, None)) is not None:
            raise failure
        return turn(linger_s, rotates=rotates)

    monkeypatch.setattr(turns.reactor, "turn", failing)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.reactor.run)
        with within("40 requests that are served"):
            while len(turns.served) < 40:
                await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert caplog.text.count("A turn of the event loop failed") == 1


@pytest.mark.trio
async def test_turns_and_slices_alternate_under_constant_traffic(turns: Turns) -> None:
    peer = turns.connect()
    order: list[str] = []

    def work():
        while True:
            order.append("slice")
            turns.time += SLICE_S
            yield

    start_later(work(), turns.loop.slices, order.append)
    turn = turns.reactor.turn

    def counted(linger_s: float = 0.0, *, rotates: bool = True) -> bool:
        peer.sendall(requests(1, 0.01))
        order.append("turn")
        return turn(linger_s, rotates=rotates)

    turns.reactor.turn = counted  # type: ignore[method-assign]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.reactor.run)
        nursery.start_soon(turns.loop.timers.run)
        while len(order) < 200:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    counted_slices = order[20:200].count("slice")
    assert 60 <= counted_slices <= 120


class _Callbacks:
    """Callbacks that take time, counted."""

    def __init__(self) -> None:
        self.time = 100.0
        self.calls = 0
        self.loop = Loop(lambda: self.time, lambda: 0)

    def __call__(self) -> None:
        self.calls += 1
        self.time += CALLBACKS_S / 3.5


def test_callbacks_at_the_end_of_a_turn_are_bounded_by_time() -> None:
    callback = _Callbacks()
    for _ in range(10):
        callback.loop.call_after_turn(callback)
    callback.loop.end_turn()
    assert callback.calls == 4
    timers = callback.loop.timers
    assert timers.next_deadline() <= callback.time  # the loop does not sleep
    while timers.next_deadline() <= callback.time:
        timers.fire(callback.time)
    assert callback.calls == 10


def test_due_timers_are_bounded_by_time() -> None:
    callback = _Callbacks()
    timers = callback.loop.timers
    for _ in range(10):
        timers.at(callback.time, callback)
    assert timers.fire(callback.time) == ceil(3.5 * FIRE_S / CALLBACKS_S)
    assert timers.next_deadline() <= callback.time
    timers.fire(callback.time)
    timers.fire(callback.time)
    assert callback.calls == 10


def test_the_rotation_has_a_small_part_of_a_turn(turns: Turns) -> None:
    """The first request of a connection is served in it, and so is everything before a client has authenticated."""
    peers = [turns.connect() for _ in range(20)]
    for peer in peers:
        peer.sendall(requests(1, ROTATION_S * 1000 / 3.5))
    turns.reactor.turn()
    assert len(turns.served) == 4
    turns.until(lambda: len(turns.served) == len(peers))


def test_connections_that_are_gone_are_closed_for_a_bounded_time(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    peers = [turns.connect_served() for _ in range(30)]
    close = turns.reactor._close

    def slow(channel: Channel) -> None:
        turns.time += TURN_S / 3.5
        close(channel)

    monkeypatch.setattr(turns.reactor, "_close", slow)
    for peer in peers:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
    turns.reactor.turn()
    assert len(turns.reactor.connections) == len(peers) - 4
    turns.until(lambda: not len(turns.reactor.connections))
