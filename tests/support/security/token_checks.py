"""Log-ins by bearer tokens, accepted and refused."""

from __future__ import annotations

from barnabas.wire.errors import ErrorCode
from tests.support.memory.broker import Client
from tests.support.memory.secure_broker import SecureBroker, authenticate, fails, handshake
from tests.support.security.token_issuer import AUDIENCE, ISSUER

URL = "sasl.oauthbearer.jwks.endpoint.url"


INVALID = '{"status":"invalid_token"}'


KEYS = {
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.oauthbearer.expected.issuer": ISSUER,
    "sasl.oauthbearer.expected.audience": f"other,{AUDIENCE}",
}


def message(token: str, authorization_id: str = "", extensions: str = "") -> bytes:
    header = f"a={authorization_id}" if authorization_id else ""
    return f"n,{header},\x01auth=Bearer {token}\x01{extensions}\x01".encode()


def dial(secure: SecureBroker) -> Client:
    client = secure.dial()
    assert handshake(client, "OAUTHBEARER").error_code == 0
    return client


def accepted(secure: SecureBroker, token: str) -> Client:
    client = dial(secure)
    response = authenticate(client, message(token))
    assert (response.error_code, bytes(response.auth_bytes)) == (0, b""), response
    return client


def refused(secure: SecureBroker, token: str, error: str = INVALID) -> None:
    """A token is answered with the reason, and the client's answer to that with the failure."""
    client = dial(secure)
    response = authenticate(client, message(token))
    assert (response.error_code, bytes(response.auth_bytes).decode()) == (0, error)
    assert client.connection.authenticator is not None
    failed = fails(client, b"\x01")
    assert (failed.error_code, failed.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, error)
