"""The reactor with TLS on loopback sockets: nothing is left inside OpenSSL, slow peers, handshakes that do not end."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from barnabas.broker.config.load import load
from barnabas.broker.event_loop.disk_threads import DiskThreads
from barnabas.broker.net import page_cache, tls_channel, tls_stream
from barnabas.broker.net.acceptor import Listener, bind
from barnabas.broker.net.channel import Channel
from barnabas.broker.net.limits import Limits
from barnabas.broker.net.log_ins import LogIns
from barnabas.broker.net.page_cache import ReadAhead
from barnabas.broker.net.tls_channel import HandshakeThreads, IncomingTls, TlsListener
from barnabas.broker.security.tls import Tls
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.produce import ProduceResponse
from barnabas.wire.principal import ANONYMOUS, KafkaPrincipal
from tests.support.memory.broker import batch
from tests.support.memory.loopback import ASK, Loopback, Peer, fetch, make_topic, produce, serving
from tests.support.security.certificates import Authority, Signed
from tests.support.security.key_updates import KeyChanger

CA = Authority()
SERVER = CA.sign("server")
CLIENT = CA.sign("client")


class HeldJobs:
    """An executor whose jobs begin when the test says so."""

    def __init__(self, disk: DiskThreads) -> None:
        self._disk = disk
        self._send, self._receive = trio.open_memory_channel[tuple[Callable[[], None], Callable[..., None]]](10)

    def submit(self, work: Callable[[], None], then: Callable[[Exception | None], None]) -> None:
        self._send.send_nowait((work, then))

    async def run_next(self, failure: Exception | None = None) -> None:
        """Run the next job in a thread, or have it fail with `failure`."""
        work, then = await self._receive.receive()

        def fail() -> None:
            assert failure is not None
            raise failure

        self._disk.submit(work if failure is None else fail, then)

    def __len__(self) -> int:
        return self._receive.statistics().current_buffer_used


class Submissions:
    """Counts the connections that ask for a thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._changed = trio.Event()
        submit = HandshakeThreads.submit

        def counted(threads: HandshakeThreads, incoming: IncomingTls) -> None:
            submit(threads, incoming)
            self.count += 1
            self._changed.set()
            self._changed = trio.Event()

        monkeypatch.setattr(HandshakeThreads, "submit", counted)

    async def reach(self, count: int) -> None:
        """Wait until there were this many."""
        while self.count < count:
            await self._changed.wait()


def hello() -> bytes:
    """The first record of a client."""
    outgoing = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


class TlsLoopback:
    """A reactor with a second listener, which has TLS."""

    def __init__(self, loopback: Loopback) -> None:
        self.loopback = loopback
        loopback.reactor._read_ahead = ReadAhead(loopback.flushes)
        keys = {
            "listeners": "SSL://127.0.0.1:0",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": SERVER.key_pem(),
            "ssl.keystore.certificate.chain": SERVER.chain_pem,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": CA.pem,
            "ssl.client.auth": "requested",
            "ssl.principal.mapping.rules": "RULE:^CN=(client.*?),.*$/$1/U",
        }
        identity = Tls(load(keys, {}, None)).identities["SSL"]
        listening = bind("127.0.0.1", 0, 50)
        self.address = listening.getsockname()
        self.disk = disk = DiskThreads()
        loopback.reactor.watch(disk.fileno(), disk.collect)
        self.threads = HandshakeThreads(disk)
        self.tls = tls = TlsListener(loopback.broker.loop, identity, self.threads, loopback.reactor.poller)
        loopback.reactor.listen(Listener("SSL", listening, protocol="SSL", tls=tls))

    async def dial(self, own: Signed | None = None, path: Path | None = None) -> Peer:
        """A client, with a certificate that is written to `path`."""
        context = ssl.create_default_context(cadata=CA.pem)
        if own is not None and path is not None:
            context.load_cert_chain(own.write(path / "own.pem"))
        plain = (await self.dial_plain()).stream
        stream = trio.SSLStream(plain, context, server_hostname="localhost")
        await stream.do_handshake()
        return Peer(stream)  # type: ignore[arg-type]  # the methods used here are the same

    async def dial_plain(self) -> Peer:
        """A client that does not speak TLS."""
        peer = Peer(await trio.open_tcp_stream(*self.address))
        self.loopback.peers.append(peer)
        return peer

    @property
    def principals(self) -> set[KafkaPrincipal]:
        """The principals of the open connections."""
        return {connection.principal for connection in self.loopback.reactor._channels}


@asynccontextmanager
async def secured(data_dir: Path, *, authentication_s: float = 30.0) -> AsyncIterator[TlsLoopback]:
    async with serving(data_dir, Limits(authentication_s=authentication_s)) as loopback:
        yield TlsLoopback(loopback)


@pytest.mark.trio
async def test_many_requests_in_one_write_are_all_answered(tmp_path: Path) -> None:
    async with secured(tmp_path) as broker:
        peer = await broker.dial()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.send, *[(ASK, 3)] * 10_000)  # 350 KB in records of 16 KB
            for _ in range(10_000):
                assert isinstance(await peer.receive(ApiVersionsResponse, 3), ApiVersionsResponse)


@pytest.mark.trio
async def test_what_is_left_inside_openssl_is_served_without_an_event_of_the_socket(tmp_path: Path) -> None:
    """A connection's turn ends after a megabyte, in the middle of what has been decrypted."""
    async with secured(tmp_path) as broker:
        peer = await broker.dial()
        for size in range(1_000_000, 1_120_000, 4_000):
            await peer.send((produce("missing", bytes(size)), 9), (ASK, 3))
            assert isinstance(await peer.receive(ProduceResponse, 9), ProduceResponse)
            assert isinstance(await peer.receive(ApiVersionsResponse, 3), ApiVersionsResponse)


@pytest.mark.trio
async def test_large_batches_are_read_as_they_were_written(tmp_path: Path) -> None:
    async with secured(tmp_path) as broker:
        peer = await broker.dial()
        await make_topic(peer, "t")
        sent = [
            batch(bytes([number]) * size) for number, size in enumerate((10, 20_000, 65_536, 1_000_000, 5, 900_000))
        ]
        for records in sent:
            response = await peer.ask(produce("t", records), 9)
            assert isinstance(response, ProduceResponse)
            assert response.responses[0].partition_responses[0].error_code == 0
        assert await read(peer) == b"".join(records[16:] for records in sent)


async def read(peer: Peer) -> bytes:
    """The batches of the topic `t` from the first CRC on: offsets, lengths and epochs left out."""
    response = await peer.ask(fetch("t", 0), 11)
    assert isinstance(response, FetchResponse)
    got, position, parts = bytes(response.responses[0].partitions[0].records or b""), 0, []
    while position < len(got):
        end = position + 12 + int.from_bytes(got[position + 8 : position + 12], "big")
        parts.append(got[position + 16 : end])
        position = end
    return b"".join(parts)


@pytest.mark.trio
async def test_a_client_that_does_not_read_delays_no_other(tmp_path: Path) -> None:
    async with secured(tmp_path) as broker:
        lazy, busy = await broker.dial(), await broker.dial()
        await make_topic(busy, "t")
        for _ in range(8):
            await busy.ask(produce("t", batch(bytes(1_000_000))), 9)
        await lazy.send(*[(fetch("t", 0), 11)] * 4)
        for _ in range(20):
            assert isinstance(await busy.ask(ASK, 3), ApiVersionsResponse)
        for _ in range(4):
            response = await lazy.receive(FetchResponse, 11)
            assert isinstance(response, FetchResponse)
            assert len(response.responses[0].partitions[0].records or b"") > 8_000_000


@pytest.mark.trio
async def test_what_is_not_in_the_page_cache_is_read_by_a_thread(tmp_path: Path, monkeypatch) -> None:
    offsets: list[int] = []

    def is_cached(_fd: int, offset: int, _end: int) -> bool:
        offsets.append(offset)
        return False

    monkeypatch.setattr(page_cache, "is_cached", is_cached)
    async with secured(tmp_path) as broker:
        peer = await broker.dial()
        await make_topic(peer, "t")
        sent = [batch(bytes([number]) * 900_000) for number in range(3)]
        for records in sent:
            await peer.ask(produce("t", records), 9)
        assert await read(peer) == b"".join(records[16:] for records in sent)
        assert len(offsets) > 2


@pytest.mark.trio
async def test_the_principal_is_that_of_the_certificate(tmp_path: Path) -> None:
    async with secured(tmp_path) as broker:
        nobody = await broker.dial()
        await nobody.ask(ASK, 3)
        assert broker.principals == {ANONYMOUS}
        known = await broker.dial(CLIENT, tmp_path)
        await known.ask(ASK, 3)
        assert broker.principals == {ANONYMOUS, KafkaPrincipal("User", "CLIENT")}
        assert broker.tls.log_ins == LogIns(successful_authentications=2)


@pytest.mark.trio
async def test_a_certificate_without_a_rule_is_refused(tmp_path: Path, caplog) -> None:
    async with secured(tmp_path) as broker:
        peer = await broker.dial(CA.sign("stranger"), tmp_path)
        assert await peer.is_closed()
        assert len(broker.loopback.reactor.connections) == 0
        assert broker.tls.log_ins == LogIns(failed_authentications=1)
    assert "(SSL handshake failed): No rules apply to CN=stranger,O=Barnabas" in caplog.text


@pytest.mark.trio
async def test_a_handshake_that_is_not_done_in_time_is_ended(tmp_path: Path, caplog) -> None:
    async with secured(tmp_path, authentication_s=0.05) as broker:
        silent, half = await broker.dial_plain(), await broker.dial_plain()
        await half.stream.send_all(client_hello()[:50])
        assert await silent.is_closed()
        assert await half.is_closed()
        assert len(broker.loopback.reactor.connections) == 0
    assert caplog.text.count("it has not authenticated within 0.05 s (barnabas.authentication.timeout.ms)") == 2


@pytest.mark.trio
async def test_a_handshake_that_is_done_has_no_limit(tmp_path: Path) -> None:
    async with secured(tmp_path, authentication_s=1.0) as broker:  # on a busy machine a handshake takes its time
        peer, late = await broker.dial(), await broker.dial_plain()
        assert await late.is_closed()  # the limit of both is over
        await peer.ask(ASK, 3)


def client_hello() -> bytes:
    """The first message of a client."""
    outgoing = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


@pytest.mark.trio
async def test_a_connection_is_served_in_the_rotation_until_its_handshake_is_done(tmp_path: Path) -> None:
    """A handshake costs more than most requests, whatever its first bytes have cost."""
    async with secured(tmp_path) as broker:
        half = await broker.dial_plain()
        hello = client_hello()
        await half.stream.send_all(hello[:50])
        peer = await broker.dial()
        await peer.ask(ASK, 3)
        channels = broker.loopback.reactor._channels.values()
        assert sorted(channel.is_heavy for channel in channels) == [False, True]
        for channel in channels:
            channel.is_heavy = False
        assert sorted(channel.is_heavy for channel in channels) == [False, True]


@pytest.mark.trio
async def test_a_hello_in_single_bytes_is_served_as_one(tmp_path: Path) -> None:
    async with secured(tmp_path) as broker:
        peer = await broker.dial_plain()
        for byte in client_hello():
            await peer.stream.send_all(bytes([byte]))
        assert (await peer.stream.receive_some(1)) == b"\x16"


@pytest.mark.trio
@pytest.mark.parametrize("data", [b"\0\0\0\x20\0\x12\0\3", b"GET / HTTP/1.1\r\n\r\n"])
async def test_a_client_without_tls_is_closed_with_one_line(tmp_path: Path, caplog, data: bytes) -> None:
    async with secured(tmp_path) as broker:
        peer = await broker.dial_plain()
        await peer.stream.send_all(data)
        assert await peer.is_closed()
    (record,) = [entry for entry in caplog.records if entry.levelno >= logging.WARNING]
    assert "(SSL handshake failed): the client does not speak TLS" in record.getMessage()


@pytest.mark.trio
async def test_a_health_check_that_only_connects_is_not_logged(tmp_path: Path, caplog) -> None:
    async with secured(tmp_path) as broker:
        peer = await broker.dial_plain()
        peer.stream.socket.shutdown(socket.SHUT_WR)
        assert await peer.is_closed()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.trio
async def test_garbage_after_the_handshake_closes_the_connection_alone(tmp_path: Path) -> None:
    async with secured(tmp_path) as broker:
        good, bad = await broker.dial(), await broker.dial()
        await bad.ask(ASK, 3)
        await bad.stream.transport_stream.send_all(b"\x17\3\3\0\x20" + bytes(32))  # type: ignore[attr-defined]
        assert await bad.is_closed()
        await good.ask(ASK, 3)


@pytest.mark.trio
async def test_a_client_that_only_changes_its_keys_is_closed(tmp_path: Path, caplog) -> None:
    async with secured(tmp_path) as broker:
        good = await broker.dial()
        changer = await trio.to_thread.run_sync(KeyChanger, broker.address, CA.pem, tmp_path)
        with contextlib.closing(changer):
            changer.socket.setblocking(False)
            for _ in range(3):  # a few are answered
                await send_raw(changer, changer.records(5))
                await good.ask(ASK, 3)
            assert len(await receive_raw(changer)) > 0
            await send_raw(changer, changer.records(1000))
            while len(broker.loopback.reactor.connections) > 1:
                await good.ask(ASK, 3)
    assert "The client changes its TLS keys again and again" in caplog.text


@pytest.mark.trio
async def test_a_client_that_changes_its_keys_and_reads_no_answer_is_closed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(tls_stream, "UNREAD_BYTES", 1000)
    monkeypatch.setattr(tls_stream, "ANSWER_BYTES", 1 << 20)
    async with secured(tmp_path) as broker:
        good = await broker.dial()
        changer = await trio.to_thread.run_sync(KeyChanger, broker.address, CA.pem, tmp_path)
        for channel in broker.loopback.reactor._channels.values():
            socket_of(channel).setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        with contextlib.closing(changer):
            changer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            changer.socket.setblocking(False)
            with contextlib.suppress(ConnectionError):
                while len(broker.loopback.reactor.connections) > 1:
                    await send_raw(changer, changer.records(500))
                    await good.ask(ASK, 3)
            await good.ask(ASK, 3)
            assert len(broker.loopback.reactor.connections) == 1


def socket_of(channel: Channel) -> socket.socket:
    """The transport below TLS on the broker's side."""
    assert isinstance(channel.socket, IncomingTls)
    return channel.socket._socket


async def send_raw(changer: KeyChanger, data: bytes) -> None:
    """Send below TLS."""
    while data:
        try:
            data = data[changer.socket.send(data) :]
        except BlockingIOError:
            await trio.lowlevel.wait_writable(changer.socket)


async def receive_raw(changer: KeyChanger) -> bytes:
    """Receive what has arrived below TLS."""
    await trio.lowlevel.wait_readable(changer.socket)
    return changer.socket.recv(1 << 16)


@pytest.mark.trio
async def test_a_stop_sends_responses_and_says_that_it_is_the_end(tmp_path: Path) -> None:
    async with secured(tmp_path) as broker:
        peer = await broker.dial()
        await make_topic(peer, "t")
        for _ in range(5):
            await peer.ask(produce("t", batch(bytes(1_000_000))), 9)
        await peer.send((fetch("t", 0), 11))
        while not any(connection.out for connection in broker.loopback.reactor._channels):
            await trio.lowlevel.checkpoint()
        broker.loopback.reactor.stop_reading()
        response = await peer.receive(FetchResponse, 11)
        assert isinstance(response, FetchResponse)
        assert len(response.responses[0].partitions[0].records or b"") > 5_000_000
        assert await peer.stream.receive_some(1) == b""  # close_notify: without it trio raises BrokenResourceError
        await broker.loopback.reactor.wait_closed()


@pytest.mark.trio
async def test_many_handshakes_at_once_take_few_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each client is served, and requests of the others are answered meanwhile."""
    async with secured(tmp_path) as broker:
        monkeypatch.setattr(tls_channel, "MOST_THREADS", 2)
        running = most = 0
        step = tls_stream.TlsStream.step

        def counted(stream: tls_stream.TlsStream) -> ssl.SSLError | None:
            nonlocal running, most
            if threading.current_thread() is threading.main_thread():
                return step(stream)
            with counting:
                running += 1
                most = max(most, running)
            try:
                return step(stream)
            finally:
                with counting:
                    running -= 1

        counting = threading.Lock()
        monkeypatch.setattr(tls_stream.TlsStream, "step", counted)
        served = 0

        async def log_in() -> None:
            nonlocal served
            peer = await broker.dial()
            assert isinstance(await peer.ask(ASK, 3), ApiVersionsResponse)
            served += 1

        async with trio.open_nursery() as nursery:
            for _ in range(40):
                nursery.start_soon(log_in)
        assert served == 40
        assert 1 <= most <= 2
        assert len(broker.threads) == 0


@pytest.mark.trio
async def test_a_hello_takes_a_thread_only_when_it_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    submissions = Submissions(monkeypatch)
    async with secured(tmp_path) as broker:
        held = HeldJobs(broker.disk)
        broker.threads._executor = held
        peer = await broker.dial_plain()
        record = hello()
        for position in range(len(record) - 1):
            await peer.stream.send_all(record[position : position + 1])
        other = await broker.dial_plain()
        await other.stream.send_all(record)
        await submissions.reach(1)
        assert submissions.count == 1, "of the other one, which came later"
        await held.run_next()
        assert (await other.stream.receive_some(1))[0] == 0x16
        await peer.stream.send_all(record[-1:])
        await submissions.reach(2)
        await held.run_next()
        assert (await peer.stream.receive_some(1))[0] == 0x16


@pytest.mark.trio
async def test_connections_that_close_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One closes while its job runs, another one while it waits for a thread; the next one is served."""
    monkeypatch.setattr(tls_channel, "MOST_THREADS", 1)
    submissions = Submissions(monkeypatch)
    async with secured(tmp_path) as broker:
        held = HeldJobs(broker.disk)
        broker.threads._executor = held
        peers = [await broker.dial_plain() for _ in range(3)]
        for count, peer in enumerate(peers, 1):
            await peer.stream.send_all(hello())
            await submissions.reach(count)
        assert len(held) == 1
        reactor = broker.loopback.reactor
        for channel in list(reactor._channels.values())[:2]:
            reactor._close(channel)
        assert len(broker.threads) == 1
        await held.run_next()
        await held.run_next()
        assert (len(held), len(broker.threads), len(reactor.connections)) == (0, 0, 1)
        assert (await peers[2].stream.receive_some(1))[0] == 0x16


@pytest.mark.trio
async def test_bytes_that_come_during_a_job_are_read_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The socket is not watched meanwhile: a peer that goes on sending costs no turns."""
    submissions = Submissions(monkeypatch)
    async with secured(tmp_path) as broker:
        held = HeldJobs(broker.disk)
        broker.threads._executor = held
        peer = await broker.dial_plain()
        await peer.stream.send_all(hello())
        await submissions.reach(1)
        await peer.stream.send_all(b"no record" * 100)
        assert broker.loopback.reactor.poller.poll(0.05) == []
        await held.run_next()
        broker.threads._executor = broker.disk
        data = b""
        while chunk := await peer.stream.receive_some():
            data += chunk
        assert data.startswith(b"\x16"), "the hello is answered"
        assert broker.tls.log_ins.failed_authentications == 1


@pytest.mark.trio
async def test_a_step_that_cannot_be_taken_closes_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submissions = Submissions(monkeypatch)
    async with secured(tmp_path) as broker:
        held = HeldJobs(broker.disk)
        broker.threads._executor = held
        peer = await broker.dial_plain()
        await peer.stream.send_all(hello())
        await submissions.reach(1)
        await held.run_next(MemoryError())
        assert await peer.stream.receive_some() == b""
        broker.threads._executor = broker.disk
        assert isinstance(await (await broker.dial()).ask(ASK, 3), ApiVersionsResponse)
