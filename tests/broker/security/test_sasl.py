"""SaslHandshake and SaslAuthenticate on a PLAINTEXT listener: answered as Apache Kafka 4.4.0 answers them."""

from __future__ import annotations

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.security.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tests.support.memory.broker import MemoryBroker


@pytest.mark.parametrize("version", [0, 1])
def test_a_handshake_is_refused_with_no_mechanisms(memory: MemoryBroker, version: int) -> None:
    response = memory.client().ask(SaslHandshakeRequest(mechanism="PLAIN"), version, SaslHandshakeResponse)
    assert (response.error_code, response.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])


@pytest.mark.parametrize("version", [0, 1, 2])
def test_authentication_is_refused_and_the_connection_stays_usable(memory: MemoryBroker, version: int) -> None:
    client = memory.client()
    request = SaslAuthenticateRequest(auth_bytes=b"\0user\0password")
    response = client.ask(request, version, SaslAuthenticateResponse)
    assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert response.error_message == "SaslAuthenticate request received after successful authentication"
    assert client.ask(MetadataRequest(topics=[]), 12, MetadataResponse).controller_id == 1
