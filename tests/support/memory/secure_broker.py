"""A broker in this process whose connections authenticate by SASL, with its own clock."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from barnabas.broker.security.sasl_listener import SaslListener
from barnabas.coord.security.scram import SCRAM_MECHANISMS
from barnabas.wire.messages.security.sasl import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
    ScramCredentialUpsertion,
)
from tests.support.memory.broker import Client, MemoryBroker

ALICE, SECRET = "alice", "alice-secret"
ADMIN, ADMIN_SECRET = "admin", "admin-secret"
SALT = b"a salt of twenty bytes"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PLAIN_USERS = (
    f'{MODULE} username="{ADMIN}" password="{ADMIN_SECRET}" user_{ADMIN}="{ADMIN_SECRET}" user_{ALICE}="{SECRET}";'
)
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_USERS,
}


class SecureBroker(MemoryBroker):
    """A broker with one SASL_PLAINTEXT listener."""

    def __init__(self, data_dir: Path, sets: Mapping[str, str] | None = None) -> None:
        super().__init__(data_dir, {**SETTINGS, **(sets or {})})
        broker = self.broker
        self.sasl = SaslListener(broker.loop, broker.config, "SASL_PLAINTEXT", lambda: broker.image, executor=self.disk)

    def dial(self, **options: Any) -> Client:
        """A connection that has to authenticate."""
        client = self.client(**options)
        client.connection.security_protocol = "SASL_PLAINTEXT"
        self.sasl.attach(client.connection)
        return client

    def plain(self, name: str = ALICE, password: str = SECRET) -> Client:
        """A connection that is authenticated by PLAIN."""
        client = self.dial()
        assert handshake(client, "PLAIN").error_code == 0
        response = authenticate(client, f"\0{name}\0{password}".encode())
        assert response.error_code == 0, response
        return client

    def add_scram(
        self, name: str = ALICE, password: str = SECRET, mechanism: str = "SCRAM-SHA-256", **more: int
    ) -> None:
        """Make a credential, as an administrator does."""
        scram = SCRAM_MECHANISMS[mechanism]
        iterations = more.get("iterations", 4096)
        upsertion = ScramCredentialUpsertion(
            name=name,
            mechanism=scram.id,
            iterations=iterations,
            salt=SALT,
            salted_password=scram.salted_password(password, SALT, iterations),
        )
        response = self.client().ask(
            AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0, AlterUserScramCredentialsResponse
        )
        assert [result.error_code for result in response.results] == [0], response


def handshake(client: Client, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
    return client.ask(SaslHandshakeRequest(mechanism=mechanism), version, SaslHandshakeResponse)


def authenticate(client: Client, token: bytes, version: int = 2) -> SaslAuthenticateResponse:
    return client.ask(SaslAuthenticateRequest(auth_bytes=token), version, SaslAuthenticateResponse)


def fails(client: Client, token: bytes, version: int = 2) -> SaslAuthenticateResponse:
    """Send a token that is refused: nothing is answered at once, then the answer comes and the connection closes."""
    client.send(SaslAuthenticateRequest(auth_bytes=token), version)
    assert client.answers() == []
    assert not client.connection.wants_data
    client.memory.advance(0.1)
    (response,) = client.answers()
    assert isinstance(response, SaslAuthenticateResponse)
    assert client.connection.is_finished
    return response


def scram_first(name: str, nonce: str = "fyko", extensions: str = "") -> bytes:
    return f"n,,n={name},r={nonce}{extensions}".encode()


def scram_final(password: str, first: bytes, server: bytes, mechanism: str = "SCRAM-SHA-256") -> bytes:
    """A client's last message, computed step by step from RFC 5802."""
    scram = SCRAM_MECHANISMS[mechanism]
    fields = dict(item.split("=", 1) for item in server.decode().split(","))
    salted = scram.salted_password(password, b64decode(fields["s"]), int(fields["i"]))
    unproved = f"c=biws,r={fields['r']}"
    message = first[3:] + b"," + server + b"," + unproved.encode()
    signature = scram.hmac(scram.stored_key(salted), message)
    proof = bytes(a ^ b for a, b in zip(scram.client_key(salted), signature, strict=True))
    return f"{unproved},p={b64encode(proof).decode()}".encode()
