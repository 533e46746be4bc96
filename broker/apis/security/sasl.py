"""SaslHandshake (17) and SaslAuthenticate (36). KIP-43, KIP-152, KIP-368.

On a listener with SASL they are answered by the connection's authenticator. Elsewhere, and on a connection that is
authenticated, they are ILLEGAL_SASL_STATE, as from Kafka's `KafkaApis`, so that a client that is configured for SASL
and dials a PLAINTEXT listener reports the mistake instead of waiting for a timeout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.registry import api
from barnabas.broker.apis.security.authentication import refuse
from barnabas.broker.security.sasl_authenticator import AuthenticationRefused
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.security.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.apis.registry import HandlerOutcome
    from barnabas.broker.context import RequestContext
    from barnabas.broker.security.sasl_authenticator import SaslAuthenticator


@api(SaslHandshakeRequest, send_before_close=True)
def sasl_handshake(ctx: RequestContext, request: SaslHandshakeRequest) -> HandlerOutcome:
    """Agree on a mechanism."""
    authenticator = _authenticator(ctx)
    if authenticator is None:
        _log_needless(ctx)
        return SaslHandshakeResponse(error_code=int(ErrorCode.ILLEGAL_SASL_STATE))
    try:
        return authenticator.handshake(request.mechanism, ctx.api_version)
    except AuthenticationRefused as error:
        return refuse(ctx.broker, ctx.connection, authenticator, error.response)


@api(SaslAuthenticateRequest, send_before_close=True)
def sasl_authenticate(ctx: RequestContext, request: SaslAuthenticateRequest) -> HandlerOutcome:
    """Take a token of the mechanism."""
    authenticator = _authenticator(ctx)
    if authenticator is None:
        return SaslAuthenticateResponse(
            error_code=int(ErrorCode.ILLEGAL_SASL_STATE),
            error_message="SaslAuthenticate request received after successful authentication",
        )
    try:
        return authenticator.authenticate(bytes(request.auth_bytes))
    except AuthenticationRefused as error:
        return refuse(ctx.broker, ctx.connection, authenticator, error.response)


def _authenticator(ctx: RequestContext) -> SaslAuthenticator | None:
    """The connection's authenticator, None if it has none or is authenticated."""
    authenticator: SaslAuthenticator | None = ctx.connection.authenticator  # type: ignore[assignment]
    return None if authenticator is None or authenticator.is_complete else authenticator


def _log_needless(ctx: RequestContext) -> None:
    """Log that a client authenticates where it need not: most clients only report that a connection was closed."""
    connection = ctx.connection
    if not connection.security_protocol.startswith("SASL"):
        ctx.broker.needless_log_ins.line(
            connection.peer_host,
            "[SocketServer listener=%s] %s:%d tries to log in, which the listener does not have: set "
            "security.protocol=%s in the client, or use a listener with SASL",
            *(connection.listener, connection.peer_host, connection.peer_port, connection.security_protocol),
        )
