"""The server's side of a SASL mechanism: it receives the client's tokens and answers each, until it is complete.

A failure is one of two exceptions. `AuthenticationFailed` has a text that the client may read; `InvalidCredentials` has
one that it may not, since it could show which users exist: the client gets the same sentence for all of them. Source:
Kafka 4.4 `SaslServerAuthenticator.handleSaslToken`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from barnabas.wire.principal import KafkaPrincipal


class AuthenticationFailed(Exception):  # noqa: N818 (Kafka's SaslAuthenticationException)
    """The client is refused, and may read the text. `why` is the reason for the log, if the text does not say it."""

    def __init__(self, text: str, why: str = "") -> None:
        super().__init__(text)
        self.why = why


class InvalidCredentials(Exception):  # noqa: N818 (Java's SaslException)
    """The authentication failed; the text is for debugging only."""


class Identity(NamedTuple):
    """An authenticated client."""

    principal: KafkaPrincipal
    expires_ms: int | None = None
    """When its credential expires, milliseconds since 1970; None for never."""


class Exchange(Protocol):
    """The messages of one authentication."""

    identity: Identity | None
    """The identity of the client, once the exchange is complete; None before."""

    def step(self, token: bytes, now_ms: int) -> bytes:
        """The answer to a token of the client. AuthenticationFailed or InvalidCredentials."""
