"""The doors: listeners through which the fuzz sends its frames, their broker keys, and how a connection is made.

| door | connection | refused requests |
|---|---|---|
| `plain` | PLAINTEXT, without an authorizer | nothing |
| `before-login` | SASL_PLAINTEXT, not authenticated | all but ApiVersions, SaslHandshake, SaslAuthenticate |
| `after-login` | SASL_PLAINTEXT, a user with few ACLs | what the ACLs do not allow |
| `tls` | SSL, frames inside the stream | nothing |
| `tls-records` | SSL, records and handshakes themselves are mutated | nothing |

The healthy client and the fuzz's own administrator always use the PLAINTEXT listener. The topic `SECRET_TOPIC` has one
record: no response to an attacker without access to it may have its content.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple, Protocol

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.batches.records import build_batch
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.messages.security.acls import AclCreation, CreateAclsRequest
from barnabas.wire.messages.security.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.hostile.attacker import frame
from tests.support.processes.server import free_port
from tests.support.requests.raw_client import RawClient
from tests.support.security.certificates import Authority

USER, PASSWORD = "mallory", "mallory-secret"
SECRET_TOPIC = "classified"
SECRET = b"the content that nobody may see"
BEFORE_LOGIN = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
HOST = "127.0.0.1"
WAIT_S = 30.0
PATIENCE_S = 0.2
RECORD = 1 << 16
_TOPIC, _GROUP, _CLUSTER, _TRANSACTIONAL_ID = 2, 3, 4, 5
_LITERAL, _PREFIXED = 3, 4
_READ, _WRITE, _DESCRIBE, _CREATE, _IDEMPOTENT_WRITE = 3, 4, 8, 5, 12
ALLOWED = (
    (_TOPIC, "orders", _LITERAL, _READ),
    (_TOPIC, "payments", _PREFIXED, _WRITE),
    (_TOPIC, "compacted", _LITERAL, _DESCRIBE),
    (_GROUP, "g", _PREFIXED, _READ),
    (_TRANSACTIONAL_ID, "t", _PREFIXED, _WRITE),
    (_CLUSTER, "kafka-cluster", _LITERAL, _IDEMPOTENT_WRITE),
)


class Pipe(Protocol):
    """What `traffic.Connection` needs of a connection. OSError when it is closed, BlockingIOError when it must wait."""

    def fileno(self) -> int: ...
    def send(self, data: bytes, /) -> int: ...
    def recv(self, size: int, /) -> bytes: ...
    def close(self) -> None: ...


class Door(NamedTuple):
    """One way to a broker."""

    name: str
    is_secret: bool
    """Whether `SECRET` may not be in a response."""
    keys: tuple[ApiKey, ...]
    """The APIs that most frames are of; empty for all."""
    protocol: str
    enter: Callable[[int, Random], tuple[socket.socket, Pipe]]
    """Connects to a port. Returns the socket, which does not block, and the pipe that sends and receives."""


def connected(port: int) -> socket.socket:
    """A new connection."""
    connection = socket.socket()
    connection.settimeout(WAIT_S)
    connection.connect((HOST, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _plain(port: int, _random: Random) -> tuple[socket.socket, Pipe]:
    connection = connected(port)
    connection.setblocking(False)
    return connection, connection


def _logged_in(port: int, _random: Random) -> tuple[socket.socket, Pipe]:
    connection = connected(port)
    for request, version in (
        (SaslHandshakeRequest(mechanism="PLAIN"), 1),
        (SaslAuthenticateRequest(auth_bytes=f"\0{USER}\0{PASSWORD}".encode()), 2),
    ):
        connection.sendall(frame(request, version))
        size = int.from_bytes(_exactly(connection, 4), "big")
        response = _exactly(connection, size)
        assert request.api_key != ApiKey.SASL_AUTHENTICATE or response[5:7] == b"\0\0", response
    connection.setblocking(False)
    return connection, connection


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionResetError
        data += more
    return data


class TlsPipe:
    """TLS on a socket that does not block; `changes` may mutate the bytes that are sent."""

    def __init__(self, connection: socket.socket, changes: Random | None) -> None:
        self._socket = connection
        self._changes = changes
        self._into, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self._tls = context.wrap_bio(self._into, self._out)
        self.waits = b""
        """Encrypted bytes that are not sent yet; `send` sends them first."""

    def handshake(self) -> None:
        """Until it is done; OSError when the broker closes the connection."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._socket.sendall(self._mutated(self._out.read(), 20))
                data = self._socket.recv(RECORD)
                if not data:
                    raise ConnectionResetError from None
                self._into.write(data)
                continue
            self._socket.sendall(self._mutated(self._out.read(), 20))
            return

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, data: bytes) -> int:
        """Encrypts all that fits into a few records; what the socket does not take waits."""
        if self.waits:
            self.waits = self.waits[self._socket.send(self.waits) :]
            return 0
        taken = self._tls.write(data[:RECORD])
        self.waits = self._mutated(self._out.read(), 3)
        return taken

    def recv(self, size: int) -> bytes:
        try:
            data = self._socket.recv(size)
        except BlockingIOError:
            data = None
        if data == b"":
            return b""
        self._into.write(data or b"")
        chunks = []
        try:
            while True:
                more = self._tls.read(RECORD)
                if not more:
                    break
                chunks.append(more)
        except ssl.SSLWantReadError:
            if not chunks:
                raise BlockingIOError from None
        return b"".join(chunks)

    def close(self) -> None:
        self._socket.close()

    def _mutated(self, data: bytes, seldom: int) -> bytes:
        """One of `seldom` pieces is changed: bytes flipped, cut, repeated, sizes and types of records replaced."""
        changes = self._changes
        if changes is None or not data or changes.randrange(seldom):
            return data
        mutated = bytearray(data)
        for _ in range(changes.choice((1, 1, 2, 5))):
            at = changes.choice((0, 1, 3, 4, changes.randrange(len(mutated) + 1)))
            match changes.randrange(5):
                case 0 if at < len(mutated):
                    mutated[at] ^= 1 << changes.randrange(8)
                case 1:
                    mutated[at : at + 1] = changes.choice((b"\0", b"\xff", b"\x16", b"\x15", b"\x17", b"\x80"))
                case 2:
                    del mutated[at : at + changes.choice((1, 5, 100))]
                case 3:
                    mutated[at:at] = changes.randbytes(changes.choice((1, 5, 300)))
                case _:
                    mutated += mutated[: changes.choice((5, 100))]
        return bytes(mutated)


def _in_tls(port: int, _random: Random) -> tuple[socket.socket, Pipe]:
    return _with_tls(port, None)


def _broken_tls(port: int, random: Random) -> tuple[socket.socket, Pipe]:
    return _with_tls(port, random)


def _with_tls(port: int, changes: Random | None) -> tuple[socket.socket, Pipe]:
    connection = connected(port)
    if changes is not None:
        connection.settimeout(PATIENCE_S)  # the broker may wait for the rest of a record that was cut
    try:
        pipe = TlsPipe(connection, changes)
        pipe.handshake()
    except OSError:
        connection.close()
        raise
    connection.setblocking(False)
    return connection, pipe


DOORS = {
    one.name: one
    for one in (
        Door("plain", False, (), "PLAINTEXT", _plain),
        Door("before-login", True, BEFORE_LOGIN, "SASL_PLAINTEXT", _plain),
        Door("after-login", True, (), "SASL_PLAINTEXT", _logged_in),
        Door("tls", False, (), "SSL", _in_tls),
        Door("tls-records", False, (), "SSL", _broken_tls),
    )
}


def settings(door: Door, directory: Path, port: int) -> tuple[dict[str, str], int]:
    """The config keys of a broker with this door and a PLAINTEXT listener at `port`, and the port of the door."""
    if door.protocol == "PLAINTEXT":
        return {}, port
    own = free_port()
    config = {"listeners": f"PLAINTEXT://{HOST}:{port},{door.protocol}://{HOST}:{own}"}
    if door.protocol == "SASL_PLAINTEXT":
        module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        config |= {
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{module} user_{USER}="{PASSWORD}";',
            "connection.failed.authentication.delay.ms": "0",
            "authorizer.class.name": "barnabas",
            "super.users": "User:ANONYMOUS",
        }
    else:
        file = directory / "broker.pem"
        directory.mkdir(parents=True, exist_ok=True)
        config |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": Authority().sign("localhost").write(file)}
    return config, own


def prepare(admin: RawClient) -> None:
    """Give the user its ACLs, and write the secret record."""
    creations = [
        AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=pattern,
            principal=f"User:{USER}",
            host="*",
            operation=operation,
            permission_type=3,
        )
        for kind, name, pattern, operation in ALLOWED
    ]
    results = admin(CreateAclsRequest(creations=creations), 3).results
    assert not any(result.error_code for result in results), results
    admin.create_topic(SECRET_TOPIC, may_exist=True)
    data = PartitionProduceData(index=0, records=build_batch([(1, None, SECRET)]))
    topic = TopicProduceData(name=SECRET_TOPIC, partition_data=[data])
    admin(ProduceRequest(acks=1, timeout_ms=10_000, topic_data=[topic]), 9)
