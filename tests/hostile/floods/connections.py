"""Connections, some of which authenticate slowly, never, wrongly, or again and again."""

from __future__ import annotations

import struct
from typing import Final

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.security.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.hostile.attacker import Attacker, frame, frame_of
from tests.hostile.floods.run import MB, Flood, Run
from tests.hostile.secured import LISTENERS
from tests.support.memory.secure_broker import scram_first
from tests.support.security.key_updates import KeyChanger

TLS = ("SSL", "SASL_SSL")
SASL = ("SASL_PLAINTEXT", "SASL_SSL")
SECURED = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
TOKEN_BYTES = 500_000
"""Of a large token: below sasl.server.max.receive.size, 512 KiB."""
UNAUTHENTICATED = "barnabas.unauthenticated.connections.max, barnabas.authentication.timeout.ms"
UNAUTHENTICATED_BYTES = "barnabas.unauthenticated.requests.max.bytes, sasl.server.max.receive.size"
BURST: Final = 100
"""Handshakes that begin at the same moment."""
MOST_THREADS: Final = 16
"""Of a broker: those of handshakes (`MOST_THREADS` of `tls_channel`), and of disks."""
FEW = {"barnabas.unauthenticated.connections.max": "300"}


def silent(run: Run) -> None:
    """Connections on which nothing is sent."""
    for _ in run:
        run.dial()


def from_many_addresses(run: Run) -> None:
    """The same from 200 addresses."""
    for number in run:
        run.dial(f"127.0.1.{number % 200 + 1}")


def gone_at_once(run: Run) -> None:
    """Connections that are closed as soon as they are made."""
    for _ in run:
        connection = run.dial()
        if connection is not None:
            connection.close()


def half_open(run: Run) -> None:
    """The first message of TLS, and nothing after it."""
    hello = run.victim.hello()
    for _ in run:
        run.send(hello)


def all_at_once(run: Run) -> None:
    """The first messages of TLS of so many clients at the same moment: they wait for few threads."""
    hello = run.victim.hello()
    peers = []
    for _ in run:
        peer = run.dial()
        if peer is not None:
            peers.append(peer)
        if len(peers) == BURST:
            for peer in peers:
                run.try_send(peer, hello)
            peers.clear()
            threads = run.victim.threads()
            assert threads <= MOST_THREADS, f"the broker has {threads} threads"


def byte_by_byte(run: Run) -> None:
    """A hundred handshakes that arrive in single bytes."""
    hello = run.victim.hello()
    peers = []
    for number in run:
        if number % len(hello) == 0:
            peers = [peer for peer in (run.dial() for _ in range(100)) if peer is not None]
        at = number % len(hello)
        for peer in peers:
            run.try_send(peer, hello[at : at + 1])


def garbage(run: Run) -> None:
    """Bytes that are neither TLS nor Kafka, or Kafka without TLS."""
    texts = [b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)), frame(ApiVersionsRequest(), 3), b"\x16\x03\x01\xff\xff" * 99]
    for number in run:
        run.send(texts[number % len(texts)])


def tls_on_plaintext(run: Run) -> None:
    """Handshakes of TLS where none is spoken."""
    hello = run.victim.hello()
    for _ in run:
        run.send(hello)


def whole_handshakes(run: Run) -> None:
    """Handshakes of TLS that are done, and the connection is left."""
    for _ in run:
        run.attacker(logs_in=False)


def changed_keys(run: Run) -> None:
    """After the handshake, nothing but changes of keys."""
    for _ in run:
        try:
            changer = KeyChanger((run.victim.host, run.victim.port), run.victim.authority, run.folder)
        except OSError:
            run.refused += 1
            continue
        run.try_send(changer.socket, changer.records(200))
        changer.close()


def log_in_begun(run: Run) -> None:
    """SaslHandshake, for PLAIN and the first message of SCRAM, and nothing after it."""
    plain = frame(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    scram = frame(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
    scram += frame(SaslAuthenticateRequest(auth_bytes=scram_first("nobody")), 2)
    for number in run:
        peer = run.attacker(logs_in=False)
        if peer is not None:
            run.try_send(peer.socket, scram if number % 2 else plain)


def endless_handshakes(run: Run) -> None:
    """SaslHandshake a hundred times."""
    sent = frame(SaslHandshakeRequest(mechanism="PLAIN"), 1) * 100
    for _ in run:
        peer = run.attacker(logs_in=False)
        if peer is not None:
            run.try_send(peer.socket, sent)


def failed_log_ins(run: Run) -> None:
    """Wrong passwords: the answers wait for connection.failed.authentication.delay.ms."""
    sent = frame(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    sent += frame(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2)
    for _ in run:
        peer = run.attacker(logs_in=False)
        if peer is not None:
            run.try_send(peer.socket, sent)


def large_tokens(run: Run) -> None:
    """Tokens of half a megabyte, of which the last byte is not sent."""
    request = frame(SaslAuthenticateRequest(auth_bytes=bytes(TOKEN_BYTES)), 2)
    sent = frame(SaslHandshakeRequest(mechanism="PLAIN"), 1) + request[:-1]
    for _ in run:
        peer = run.attacker(logs_in=False)
        if peer is not None:
            peer.socket.settimeout(0.02)
            run.try_send(peer.socket, sent)


def malformed_before(run: Run) -> None:
    """Of each API a frame that is cut, empty or nonsense, before the log-in."""
    for number in run:
        peer = run.attacker(logs_in=False)
        if peer is not None:
            key = list(ApiKey)[number % len(ApiKey)]
            run.try_send(peer.socket, frame_of(key, number % 3, bytes([number % 256]) * (number % 40)))


def announced_before(run: Run) -> None:
    """Frames that are announced, of any size, and not sent, before the log-in."""
    sizes = [1 << 30, 524_288, 100_000, 60_000, -1]
    for number in run:
        peer = run.attacker(logs_in=False)
        if peer is not None:
            run.try_send(peer.socket, struct.pack(">i", sizes[number % len(sizes)]) + bytes(50_000))


def again_and_again(run: Run) -> None:
    """A connection with a session that authenticates again all the time."""
    sent = [
        (SaslHandshakeRequest(mechanism="PLAIN"), 1),
        (SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"), 2),
    ]
    peer: Attacker | None = None
    for _ in run:
        peer = peer or run.attacker()
        if peer is None:
            continue
        try:
            for request, version in sent:
                peer(request, version)
        except OSError:
            peer = None


FLOODS = [
    Flood("connections, silent", silent, LISTENERS, f"max.connections; {UNAUTHENTICATED}", 300, FEW | {
        "max.connections": "1000"}),
    Flood("connections, silent, one address", silent, ("PLAINTEXT", "SASL_SSL"), "max.connections.per.ip", 300,
          {"max.connections.per.ip": "100"}),
    Flood("connections, silent, 200 addresses", from_many_addresses, ("PLAINTEXT", "SASL_SSL"),
          "max.connections.per.ip", 300, FEW | {"max.connections.per.ip": "5"}),
    Flood("connections, closed at once", gone_at_once, LISTENERS, "max.connections", 150),
    Flood("connections, closed at once, limited", gone_at_once, ("SASL_SSL",), "max.connection.creation.rate", 30,
          {"max.connection.creation.rate": "200", "quota.window.num": "2"}),
    Flood("TLS begun and left", half_open, TLS, UNAUTHENTICATED, 300, FEW),
    Flood("TLS begun by many at once", all_at_once, TLS, UNAUTHENTICATED, 300, FEW),
    Flood("TLS byte by byte", byte_by_byte, TLS, UNAUTHENTICATED, 60, FEW),
    Flood("TLS whole handshakes", whole_handshakes, TLS, f"max.connections; {UNAUTHENTICATED}", 50),
    Flood("TLS changes of keys", changed_keys, TLS, "closed after 18 changes without data", 10),
    Flood("garbage in place of TLS", garbage, TLS, "closed with the first byte", 200),
    Flood("TLS on a port without it", tls_on_plaintext, ("PLAINTEXT", "SASL_PLAINTEXT"), "socket.request.max.bytes; "
          "sasl.server.max.receive.size", 200),
    Flood("SASL begun and left", log_in_begun, SASL, UNAUTHENTICATED, 100, FEW),
    Flood("SaslHandshake without end", endless_handshakes, SASL, "closed after the second", 50),
    Flood("failed log-ins", failed_log_ins, SASL, f"connection.failed.authentication.delay.ms; {UNAUTHENTICATED}",
          100, FEW),
    Flood("tokens of 500 KB, not ended", large_tokens, SASL, UNAUTHENTICATED_BYTES, 60, FEW),
    Flood("malformed frames before log-in", malformed_before, SASL, "closed", 100),
    Flood("frames announced before log-in", announced_before, SASL, UNAUTHENTICATED_BYTES, 50, FEW),
    Flood("authentication again and again", again_and_again, SASL, "once a second for a connection", 20,
          {"connections.max.reauth.ms": "60000"}),
]  # fmt: skip

assert all(flood.memory <= 200 * MB for flood in FLOODS)
