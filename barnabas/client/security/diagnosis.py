"""Finds out whether a listener that closes a connection expects TLS or a log-in, on connections of its own."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from barnabas.client.errors import AuthenticationFailed, ClientError, TlsFailed
from barnabas.client.probe import speaks_tls
from barnabas.wire.messages.security.sasl import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from barnabas.client.security.sasl import Channel

PATIENCE_S = 2.0


def tls_missing(host: str, port: int, address: str) -> TlsFailed | None:
    """The error of a plain connection to a listener with TLS; None if it has none."""
    try:
        if not speaks_tls(host, port, PATIENCE_S):
            return None
    except (ClientError, OSError):
        return None
    return TlsFailed(f"the listener at {address} expects TLS: security.protocol must be SSL or SASL_SSL")


def login_missing(channel: Channel, has_tls: bool) -> AuthenticationFailed | None:
    """The error of a listener that closes connections which do not log in; None if it has no SASL.

    `channel` is a new connection to it.
    """
    deadline = monotonic() + PATIENCE_S
    response = channel.call(SaslHandshakeRequest(mechanism="?"), SaslHandshakeResponse, deadline)
    if not response.mechanisms:
        return None
    return AuthenticationFailed(
        f"the listener at {channel.address} expects a log-in: set security.protocol to "
        f"{'SASL_SSL' if has_tls else 'SASL_PLAINTEXT'} and sasl.mechanism to one of {', '.join(response.mechanisms)}"
    )
