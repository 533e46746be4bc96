"""SaslHandshake (17) and SaslAuthenticate (36) on a listener without SASL.

A client that is configured for SASL and dials a PLAINTEXT listener gets ILLEGAL_SASL_STATE and no mechanisms, as from
Kafka's `KafkaApis`, so that it reports the mistake instead of waiting for a timeout (KIP-43, KIP-152).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.registry import api
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext


@api(SaslHandshakeRequest)
def sasl_handshake(_ctx: RequestContext, _request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """ILLEGAL_SASL_STATE: this listener takes no SASL."""
    return SaslHandshakeResponse(error_code=int(ErrorCode.ILLEGAL_SASL_STATE))


@api(SaslAuthenticateRequest)
def sasl_authenticate(_ctx: RequestContext, _request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """ILLEGAL_SASL_STATE: a connection to this listener needs no authentication."""
    return SaslAuthenticateResponse(
        error_code=int(ErrorCode.ILLEGAL_SASL_STATE),
        error_message="SaslAuthenticate request received after successful authentication",
    )
