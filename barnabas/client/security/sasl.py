"""SASL on a connection (KIP-43, KIP-152, KIP-368): SaslHandshake, then SaslAuthenticate until the mechanism is done.

PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER. A refusal of the broker is `AuthenticationFailed` with the
broker's message, and is not tried again. No error shows a password or a token.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeVar

from barnabas.client.errors import AuthenticationFailed
from barnabas.client.security.scram import login
from barnabas.coord.security.exchange import InvalidCredentials
from barnabas.coord.security.scram import SCRAM_MECHANISMS
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.security.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from barnabas.wire.schema import Message

Reply = TypeVar("Reply", bound="Message")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
REFRESH_PART: Final = 0.85
"""The part of a session's lifetime after which a client authenticates again, as the least of Kafka's client."""


class Channel(Protocol):
    """A connection that is open, `client.connection.NodeConnection`."""

    @property
    def address(self) -> str:
        """`host:port`."""

    def call(self, request: Message, reply: type[Reply], deadline: float, max_version: int | None = None) -> Reply:
        """Send a request and wait for its reply."""


class Sasl(NamedTuple):
    """A mechanism with its user and password, or with its source of tokens."""

    mechanism: str
    user: str = ""
    password: str = ""
    is_token: bool = False
    """The user is the id of a delegation token, the password its HMAC (KIP-48)."""
    token: Callable[[], str] | None = None
    extensions: tuple[tuple[str, str], ...] = ()
    """SASL extensions of OAUTHBEARER (KIP-342)."""

    def __repr__(self) -> str:
        return f"<Sasl {self.mechanism} {self.user}>"


def authenticate(connection: Channel, sasl: Sasl, deadline: float) -> float:
    """Log in. Returns after how many seconds to do so again, 0 for never. `AuthenticationFailed`, `TimedOut`."""
    handshake = connection.call(SaslHandshakeRequest(mechanism=sasl.mechanism), SaslHandshakeResponse, deadline)
    if handshake.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(handshake.mechanisms) or "none"
        raise AuthenticationFailed(
            f"the broker at {connection.address} does not have sasl.mechanism={sasl.mechanism}; it has {offered}"
        )
    if handshake.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise AuthenticationFailed(
            f"the listener at {connection.address} has no SASL: its security.protocol is PLAINTEXT or SSL"
        )
    if handshake.error_code:
        raise AuthenticationFailed(f"the broker at {connection.address} refuses SASL: error {handshake.error_code}")
    steps = _Steps(connection, deadline)
    if sasl.mechanism in SCRAM_MECHANISMS:
        _scram(steps, sasl)
    elif sasl.mechanism == "PLAIN":
        steps.send(b"\0".join((b"", sasl.user.encode(), sasl.password.encode())))
    else:
        _oauthbearer(steps, sasl)
    return steps.lifetime_ms / 1000 * REFRESH_PART


class _Steps:
    """The messages of a mechanism, and the lifetime that the last answer gave."""

    def __init__(self, connection: Channel, deadline: float) -> None:
        self.address = connection.address
        self.lifetime_ms = 0
        self._connection = connection
        self._deadline = deadline

    def send(self, message: bytes) -> bytes:
        request = SaslAuthenticateRequest(auth_bytes=message)
        response = self._connection.call(request, SaslAuthenticateResponse, self._deadline)
        if response.error_code:
            why = response.error_message or f"error {response.error_code}"
            raise AuthenticationFailed(f"the broker at {self.address} does not let this client in: {why}")
        self.lifetime_ms = response.session_lifetime_ms
        return bytes(response.auth_bytes)


def _scram(steps: _Steps, sasl: Sasl) -> None:
    client = login(sasl.mechanism, sasl.user, sasl.password, is_token=sasl.is_token)
    message: bytes | None = client.first()
    try:
        while message is not None:
            message = client.step(steps.send(message))
    except InvalidCredentials as error:
        raise AuthenticationFailed(f"the broker at {steps.address} cannot be trusted: {error}") from None


def _oauthbearer(steps: _Steps, sasl: Sasl) -> None:
    assert sasl.token is not None
    fields = "".join(f"\x01{name}={value}" for name, value in sasl.extensions)
    refusal = steps.send(f"n,,\x01auth=Bearer {sasl.token()}{fields}\x01\x01".encode())
    if refusal:  # a JSON text; the error comes after our acknowledgement (RFC 7628)
        steps.send(b"\x01")
        raise AuthenticationFailed(f"the broker at {steps.address} does not accept the token")
