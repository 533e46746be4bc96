"""The reactor on loopback sockets: limits, slow peers, isolation of failures, large responses, shutdown."""

from __future__ import annotations

import errno
import logging
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from barnabas.broker.event_loop.disk_threads import DiskThreads
from barnabas.broker.net import acceptor
from barnabas.broker.net.acceptor import Listener, bind
from barnabas.broker.net.admission import plain_host
from barnabas.broker.net.limits import Limits
from barnabas.wire.frame import encode_request
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.produce import ProduceResponse
from barnabas.wire.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.wire.types import chunk_bytes
from tests.support.memory.broker import batch
from tests.support.memory.loopback import ASK, fetch, make_topic, produce, serving


@pytest.mark.trio
async def test_large_batches_are_read_as_they_were_written(tmp_path: Path) -> None:
    async with serving(tmp_path) as loopback:
        peer = await loopback.dial()
        await make_topic(peer, "t")
        sent = [
            batch(bytes([number]) * size) for number, size in enumerate((10, 20_000, 300_000, 1_000_000, 5, 900_000))
        ]
        for records in sent:
            response = await peer.ask(produce("t", records), 9)
            assert isinstance(response, ProduceResponse)
            assert response.responses[0].partition_responses[0].error_code == 0
        response = await peer.ask(fetch("t", 0), 11)
        assert isinstance(response, FetchResponse)
        got = bytes(response.responses[0].partitions[0].records or b"")
        position = 0
        for records in sent:  # only base offset and leader epoch have changed
            assert got[position + 8 : position + 12] == records[8:12]
            assert got[position + 16 : position + len(records)] == records[16:]
            position += len(records)
        assert position == len(got)


@pytest.mark.trio
async def test_a_client_that_does_not_read_delays_no_other(tmp_path: Path) -> None:
    async with serving(tmp_path) as loopback:
        lazy, busy = await loopback.dial(), await loopback.dial()
        await make_topic(busy, "t")
        for _ in range(8):
            await busy.ask(produce("t", batch(bytes(1_000_000))), 9)
        await lazy.send(*[(fetch("t", 0), 11)] * 10)
        for _ in range(20):
            assert isinstance(await busy.ask(ASK, 3), ApiVersionsResponse)
        for _ in range(10):
            response = await lazy.receive(FetchResponse, 11)
            assert isinstance(response, FetchResponse)
            assert len(response.responses[0].partitions[0].records or b"") > 8_000_000


@pytest.mark.trio
async def test_a_long_poll_is_woken_across_connections_and_by_its_deadline(tmp_path: Path) -> None:
    async with serving(tmp_path) as loopback:
        reader, writer = await loopback.dial(), await loopback.dial()
        await make_topic(writer, "t")
        await reader.send((fetch("t", 0, max_wait_ms=15_000), 11))
        await writer.ask(produce("t", batch(b"x")), 9)
        response = await reader.receive(FetchResponse, 11)
        assert isinstance(response, FetchResponse)
        assert response.responses[0].partitions[0].records
        response = await reader.ask(fetch("t", 1, max_wait_ms=20), 11)
        assert isinstance(response, FetchResponse)
        assert not response.responses[0].partitions[0].records


@pytest.mark.trio
@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\xa5", bytes(range(200, 256)) * 9, b"\0" * 64]
)
async def test_a_connection_with_another_protocol_is_closed_alone(tmp_path: Path, data: bytes, caplog) -> None:
    async with serving(tmp_path) as loopback:
        good, bad = await loopback.dial(), await loopback.dial()
        await bad.stream.send_all(data)
        assert await bad.is_closed()
        assert isinstance(await good.ask(ASK, 3), ApiVersionsResponse)
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "127.0.0.1" in warnings[0].getMessage()
    assert not [record for record in caplog.records if record.levelno > logging.WARNING]


@pytest.mark.trio
async def test_responses_before_a_bad_request_are_still_sent(tmp_path: Path) -> None:
    async with serving(tmp_path) as loopback:
        peer = await loopback.dial()
        await peer.send((ASK, 3))
        frame = b"".join(chunk_bytes(chunk) for chunk in encode_request(ASK, 3, 1, None))
        await peer.stream.send_all(frame + b"GET / HTTP/1.1\r\n")
        await peer.receive(ApiVersionsResponse, 3)
        await peer.receive(ApiVersionsResponse, 3)
        assert await peer.is_closed()


@pytest.mark.trio
async def test_a_bug_in_a_connection_closes_it_alone(tmp_path: Path, monkeypatch, caplog) -> None:
    async with serving(tmp_path) as loopback:
        good, bad = await loopback.dial(), await loopback.dial()
        await good.ask(ASK, 3)
        await bad.ask(ASK, 3)
        port = bad.stream.socket.getsockname()[1]
        channel = next(
            channel for channel in loopback.reactor._channels.values() if channel.connection.peer_port == port
        )

        class Broken:
            def __getattr__(self, name: str):
                if name == "receive":
                    raise ZeroDivisionError
                return getattr(connection, name)

        connection = channel.connection
        channel.connection = Broken()  # type: ignore[assignment]
        loopback.reactor._channels[channel.connection] = loopback.reactor._channels.pop(connection)
        await bad.send((ASK, 3))
        assert await bad.is_closed()
        assert isinstance(await good.ask(ASK, 3), ApiVersionsResponse)
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.trio
async def test_no_more_connections_than_allowed(tmp_path: Path) -> None:
    async with serving(tmp_path, Limits(max_connections=2)) as loopback:
        first, second = await loopback.dial(), await loopback.dial()
        await first.ask(ASK, 3)
        await second.ask(ASK, 3)
        third = await loopback.dial()
        await third.send((ASK, 3))
        for _ in range(10):
            await first.ask(ASK, 3)
        assert len(loopback.reactor.connections) == 2
        await second.stream.aclose()
        await third.receive(ApiVersionsResponse, 3)


@pytest.mark.trio
async def test_no_more_connections_from_one_address_than_allowed(tmp_path: Path) -> None:
    async with serving(tmp_path, Limits(max_connections_per_ip=1)) as loopback:
        first = await loopback.dial()
        await first.ask(ASK, 3)
        assert await (await loopback.dial()).is_closed()
        await first.ask(ASK, 3)


@pytest.mark.trio
async def test_idle_and_trickling_connections_are_closed_but_not_waiting_ones(tmp_path: Path) -> None:
    async with serving(tmp_path, Limits(idle_s=60)) as loopback:
        idle, trickling, parked = [await loopback.dial() for _ in range(3)]
        for peer in (idle, trickling, parked):
            await make_topic(peer, "t")
        await parked.send((fetch("t", 0, max_wait_ms=10_000), 11))
        await trickling.stream.send_all(b"\x00\x10\x00\x00" + bytes(50))
        while not any(connection.has_delayed_response for connection in loopback.reactor._channels):
            await trio.lowlevel.checkpoint()
        while not any(connection.partial for connection in loopback.reactor._channels):
            await trio.lowlevel.checkpoint()
        later = loopback.broker.loop.now() + 61
        assert loopback.reactor.close_idle(later - 30) == 0
        assert loopback.reactor.close_idle(later) == 2
        assert await idle.is_closed()
        assert await trickling.is_closed()
        assert len(loopback.reactor.connections) == 1


@pytest.mark.trio
async def test_accepting_pauses_while_there_are_no_descriptors(tmp_path: Path, monkeypatch) -> None:
    async with serving(tmp_path) as loopback:
        first = await loopback.dial()
        await first.ask(ASK, 3)
        listener = loopback.reactor.acceptor.listeners[0]
        real = listener.socket
        refusals = []

        class Exhausted:
            def _accept(self) -> None:
                refusals.append(1)
                raise OSError(errno.EMFILE, "Too many open files")

            def __getattr__(self, name: str):
                return getattr(real, name)

        listener.socket = Exhausted()  # type: ignore[assignment]
        waiting = await loopback.dial()
        await waiting.send((ASK, 3))
        while not refusals:
            await first.ask(ASK, 3)
        assert isinstance(await first.ask(ASK, 3), ApiVersionsResponse)
        listener.socket = real
        assert isinstance(await waiting.receive(ApiVersionsResponse, 3), ApiVersionsResponse)
        assert len(refusals) == 1


@pytest.mark.trio
async def test_a_connection_leaves_the_last_descriptors_to_the_logs(tmp_path: Path, monkeypatch) -> None:
    async with serving(tmp_path) as loopback:
        first = await loopback.dial()
        await first.ask(ASK, 3)
        reactor = loopback.reactor
        spare = reactor.acceptor._spare
        descriptors = [spare] if spare is not None else []
        with monkeypatch.context() as patched:
            patched.setattr(acceptor, "_usable_descriptors", lambda: 0)
            last = await loopback.dial()
            assert isinstance(await last.ask(ASK, 3), ApiVersionsResponse)
            assert [channel.fd for channel in reactor._channels.values()][1:] == descriptors
            waiting = await loopback.dial()
            await waiting.send((ASK, 3))
            while not reactor.acceptor.is_paused:
                await first.ask(ASK, 3)
            assert len(reactor.connections) == 2
        assert isinstance(await waiting.receive(ApiVersionsResponse, 3), ApiVersionsResponse)
    assert reactor.acceptor._spare is None


@pytest.mark.trio
async def test_a_reset_connection_is_removed(tmp_path: Path) -> None:
    async with serving(tmp_path) as loopback:
        good, gone = await loopback.dial(), await loopback.dial()
        await make_topic(good, "t")
        await gone.send((fetch("t", 0, max_wait_ms=15_000), 11))
        partition = loopback.broker.partitions.get("t", 0)
        while not partition.waiters:
            await trio.lowlevel.checkpoint()
        gone.stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await gone.stream.aclose()
        while partition.waiters:
            await good.ask(ASK, 3)
        await good.ask(produce("t", batch(b"x")), 9)
        assert len(loopback.reactor.connections) == 1


@pytest.mark.trio
async def test_a_segment_deleted_while_it_is_sent_is_sent_completely(tmp_path: Path) -> None:
    """A slice keeps its file open."""
    async with serving(tmp_path) as loopback:
        peer = await loopback.dial()
        await make_topic(peer, "t")
        for _ in range(20):
            await peer.ask(produce("t", batch(bytes(1_000_000))), 9)
        await peer.send((fetch("t", 0), 11))
        while not any(connection.out for connection in loopback.reactor._channels):
            await trio.lowlevel.checkpoint()
        deleted = await (await loopback.dial()).ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 3)
        assert isinstance(deleted, DeleteTopicsResponse)
        assert deleted.responses[0].error_code == 0
        for path in loopback.broker.log_dirs.deletions.take_due(loopback.broker.loop.now() + 1e6):
            loopback.broker.log_dirs.deletions.remove(path)
        response = await peer.receive(FetchResponse, 11)
        assert isinstance(response, FetchResponse)
        assert len(response.responses[0].partitions[0].records or b"") > 20_000_000


@pytest.mark.trio
async def test_a_stop_sends_responses_and_closes_connections(tmp_path: Path) -> None:
    async with serving(tmp_path) as loopback:
        peer, parked = await loopback.dial(), await loopback.dial()
        await make_topic(peer, "t")
        for _ in range(5):
            await peer.ask(produce("t", batch(bytes(1_000_000))), 9)
        await parked.send((fetch("t", 5, max_wait_ms=15_000), 11))
        await peer.send((fetch("t", 0), 11))
        while not any(connection.out for connection in loopback.reactor._channels):
            await trio.lowlevel.checkpoint()
        loopback.reactor.acceptor.close()
        loopback.reactor.stop_reading()
        response = await peer.receive(FetchResponse, 11)
        assert isinstance(response, FetchResponse)
        assert len(response.responses[0].partitions[0].records or b"") > 5_000_000
        assert await parked.is_closed()
        assert await peer.is_closed()
        await loopback.reactor.wait_closed()
        with pytest.raises(OSError, match=r"connect"):
            await loopback.dial()


class SlowFlushes(DiskThreads):
    """Threads that flush when the test allows it."""

    def __init__(self) -> None:
        super().__init__()
        self.may_sync = threading.Event()
        self.may_sync.set()

    def submit(self, work: Callable[[], None], then: Callable[[Exception | None], None]) -> None:
        def wait_and_work() -> None:
            assert self.may_sync.wait(20)
            work()

        super().submit(wait_and_work, then)


@pytest.mark.trio
async def test_a_stop_waits_for_responses_that_wait_for_a_flush(tmp_path: Path) -> None:
    """A record that is being flushed is acknowledged before the connection closes."""
    flushes = SlowFlushes()
    async with serving(tmp_path, sets={"barnabas.log.sync": "always"}, flushes=flushes) as loopback:
        producer, reader = await loopback.dial(), await loopback.dial()
        await make_topic(producer, "t")
        flushes.may_sync.clear()
        await reader.send((fetch("t", 0, max_wait_ms=15_000), 11))
        await producer.send((produce("t", batch(b"x")), 9))
        while not loopback.broker.partitions.get("t", 0).log.log_end_offset:
            await trio.lowlevel.checkpoint()
        loopback.reactor.acceptor.close()
        loopback.reactor.stop_reading()
        assert await reader.is_closed()
        assert len(loopback.reactor.connections) == 1
        flushes.may_sync.set()
        response = await producer.receive(ProduceResponse, 9)
        assert isinstance(response, ProduceResponse)
        assert response.responses[0].partition_responses[0].base_offset == 0
        assert await producer.is_closed()
        await loopback.reactor.wait_closed()


@pytest.mark.trio
async def test_a_flush_in_a_thread_wakes_the_reactor(tmp_path: Path) -> None:
    async with serving(tmp_path, sets={"barnabas.log.sync": "always"}) as loopback:
        peers = [await loopback.dial() for _ in range(3)]
        await make_topic(peers[0], "t")
        for turn in range(20):
            for peer in peers:
                await peer.send((produce("t", batch(b"x")), 9))
            offsets = []
            for peer in peers:
                response = await peer.receive(ProduceResponse, 9)
                assert isinstance(response, ProduceResponse)
                offsets.append(response.responses[0].partition_responses[0].base_offset)
            assert sorted(offsets) == [3 * turn, 3 * turn + 1, 3 * turn + 2]


@pytest.mark.trio
async def test_other_tasks_run_while_the_reactor_is_busy(tmp_path: Path) -> None:
    async with serving(tmp_path) as loopback:
        peer = await loopback.dial()
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await trio.sleep(0.001)
                ticks += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(tick)
            while ticks < 5:
                await peer.ask(ASK, 3)
            nursery.cancel_scope.cancel()


def test_a_taken_port_is_an_error() -> None:
    first = bind("127.0.0.1", 0, 1)
    with pytest.raises(OSError, match="in use"):
        bind("127.0.0.1", first.getsockname()[1], 1)
    first.close()


def test_a_mapped_ipv6_address_is_shown_as_ipv4() -> None:
    assert plain_host("::ffff:10.1.2.3") == "10.1.2.3"
    assert plain_host("::1") == "::1"


@pytest.mark.trio
async def test_the_address_the_client_has_connected_to_is_advertised(tmp_path: Path) -> None:
    async with serving(tmp_path) as loopback:
        response = await (await loopback.dial()).ask(MetadataRequest(topics=[]), 12)
        assert isinstance(response, MetadataResponse)
        assert [(broker.host, broker.port) for broker in response.brokers] == [loopback.address]


@pytest.mark.trio
async def test_requests_continue_after_a_turn_sent_its_maximum(tmp_path: Path) -> None:
    """Responses of exactly the size of a turn must not hold back the following requests for ever."""
    async with serving(tmp_path) as loopback:
        peer = await loopback.dial()
        await make_topic(peer, "t")
        for _ in range(3):
            await peer.ask(produce("t", batch(bytes(1_040_000))), 9)
        await peer.send(*[(fetch("t", 0), 11)] * 3, (ASK, 3))
        for _ in range(3):
            await peer.receive(FetchResponse, 11)
        await peer.receive(ApiVersionsResponse, 3)


@pytest.mark.trio
async def test_two_listeners_out_of_descriptors_pause_together(tmp_path: Path) -> None:
    async with serving(tmp_path) as loopback:
        second = bind("127.0.0.1", 0, 50)
        loopback.reactor.listen(Listener("SECOND", second))
        error = OSError(errno.EMFILE, "Too many open files")
        for listener in loopback.reactor.acceptor.listeners:
            if not loopback.reactor.acceptor.is_paused:
                loopback.reactor.acceptor.pause(error)
            loopback.reactor.acceptor.accept(listener)
        peer = await loopback.dial()
        assert isinstance(await peer.ask(ASK, 3), ApiVersionsResponse)
