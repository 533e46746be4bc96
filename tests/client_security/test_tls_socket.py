"""A socket with TLS between the records: parts of records, many at once, and every way to end."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest
from cryptography import x509

from barnabas.client.errors import TimedOut, TlsFailed
from barnabas.client.security.tls import TlsSocket
from tests.support.security.certificates import Authority


class Peer:
    """The server's side: what it encrypts is sent as the test says."""

    def __init__(self, plain: socket.socket, context: ssl.SSLContext) -> None:
        self.plain = plain
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def handshake(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
                self.plain.sendall(self._outgoing.read())
                return
            except ssl.SSLWantReadError:
                self.plain.sendall(self._outgoing.read())
                self._incoming.write(self.plain.recv(1 << 16))

    def encrypted(self, data: bytes) -> bytes:
        self._tls.write(data)
        return self._outgoing.read()

    def received(self) -> bytes:
        self._incoming.write(self.plain.recv(1 << 16))
        return self._tls.read(1 << 16)


def contexts(tmp_path: Path, *hosts: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The client's and the server's, of one CA."""
    authority = Authority()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(authority.sign("server", hosts).write(tmp_path / "server.pem"))
    client = ssl.create_default_context(cadata=authority.pem)
    return client, server


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[TlsSocket, Peer]]:
    """Both sides after the handshake, with all that the server has said in it read."""
    client_context, server_context = contexts(tmp_path, "127.0.0.1")
    near, far = socket.socketpair()
    with near, far:
        peer = Peer(far, server_context)
        thread = threading.Thread(target=peer.handshake)
        thread.start()
        tls = TlsSocket(near, client_context, "127.0.0.1", "127.0.0.1:1")
        tls.handshake(monotonic() + 10)
        thread.join(10)
        near.settimeout(10)
        if select.select([near], [], [], 0)[0]:
            with pytest.raises(BlockingIOError):  # session tickets, no data
                tls.recv(1 << 16)
        yield tls, peer


def test_the_end_of_the_peers_certificate_is_known(pair: tuple[TlsSocket, Peer], tmp_path: Path) -> None:
    tls, _ = pair
    certificate = x509.load_pem_x509_certificate((tmp_path / "server.pem").read_bytes())
    assert tls.certificate_end_s() == certificate.not_valid_after_utc.timestamp()


def test_a_record_is_given_when_it_is_complete(pair: tuple[TlsSocket, Peer]) -> None:
    tls, peer = pair
    record = peer.encrypted(b"hello")
    for number in range(len(record) - 1):
        peer.plain.sendall(record[number : number + 1])
        with pytest.raises(BlockingIOError):
            tls.recv(1 << 16)
    peer.plain.sendall(record[-1:])
    assert tls.recv(1 << 16) == b"hello"


def test_all_records_that_have_arrived_are_read_at_once(pair: tuple[TlsSocket, Peer]) -> None:
    """Otherwise a reader that waits with select would wait for bytes that are in memory already."""
    tls, peer = pair
    data = bytes(range(256)) * 200  # more than three records
    peer.plain.sendall(peer.encrypted(data) + peer.encrypted(b"and more"))
    assert tls.recv(1 << 18) == data + b"and more"
    assert select.select([tls], [], [], 0)[0] == []


def test_what_is_sent_arrives(pair: tuple[TlsSocket, Peer]) -> None:
    tls, peer = pair
    tls.sendall(b"question")
    assert peer.received() == b"question"


def test_the_end_of_the_connection_is_an_empty_answer(pair: tuple[TlsSocket, Peer]) -> None:
    tls, peer = pair
    peer.plain.sendall(peer.encrypted(b"last"))
    peer.plain.shutdown(socket.SHUT_WR)
    assert tls.recv(1 << 16) == b"last"
    assert tls.recv(1 << 16) == b""


def test_bytes_that_are_no_record_are_an_error(pair: tuple[TlsSocket, Peer]) -> None:
    tls, peer = pair
    peer.plain.sendall(b"\x17\x03\x03\x00\x20" + b"x" * 32)
    with pytest.raises(TlsFailed, match="ended TLS"):
        tls.recv(1 << 16)


def failed_handshake(tmp_path: Path, answer: bytes | None, seconds: float = 10) -> str:
    """The error text when the server answers the first message with these bytes; None: with nothing."""
    client_context, _ = contexts(tmp_path, "127.0.0.1")
    near, far = socket.socketpair()
    with near, far:
        if answer is not None:
            far.sendall(answer)
            far.shutdown(socket.SHUT_WR)
        tls = TlsSocket(near, client_context, "127.0.0.1", "127.0.0.1:1")
        with pytest.raises((TlsFailed, TimedOut)) as failed:
            tls.handshake(monotonic() + seconds)
    return str(failed.value)


def test_a_server_without_tls(tmp_path: Path) -> None:
    assert "does not speak TLS" in failed_handshake(tmp_path, b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert "closed the connection in the TLS handshake" in failed_handshake(tmp_path, b"")
    assert "did not answer the TLS handshake in time" in failed_handshake(tmp_path, None, seconds=0.05)
    assert "refused the TLS handshake" in failed_handshake(tmp_path, b"\x15\x03\x03\x00\x02\x02\x28")
