"""OAUTHBEARER: which tokens are accepted, and the errors for others, as in Apache Kafka 4.4.0."""

from __future__ import annotations

import hashlib
import hmac
import logging
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.config.load import load
from barnabas.broker.security.jwks import MIN_REFRESH_S, read_document
from barnabas.coord.security.claims import ClaimRules, TokenRefused, identity_of
from barnabas.coord.security.exchange import AuthenticationFailed, InvalidCredentials
from barnabas.coord.security.oauthbearer import OAuthBearerExchange, parse_initial, unsecured_claims
from barnabas.wire.configdef import ConfigError
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.cases import for_each
from tests.support.memory.secure_broker import SecureBroker, authenticate, fails
from tests.support.security.token_checks import INVALID, KEYS, URL, accepted, dial, message, refused
from tests.support.security.token_issuer import AUDIENCE, ISSUER, claims, jwk, signed, unsecured, write_jwks
from tests.support.world import START_MS

NOW = START_MS // 1000
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
JAAS = "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config"


def broker(tmp_path: Path, *keys: dict[str, Any], **sets: str) -> SecureBroker:
    url = write_jwks(tmp_path / "jwks.json", *(keys or (jwk("RSA", "one"),)))
    return SecureBroker(tmp_path / "data", {**KEYS, URL: url, **sets})


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[SecureBroker]:
    memory = broker(tmp_path)
    yield memory
    memory.close()


def test_a_token_lets_its_bearer_in_until_it_expires(secure: SecureBroker) -> None:
    client = dial(secure)
    response = authenticate(client, message(signed(), "alice", "traceId=1\x01"))
    assert (response.error_code, response.session_lifetime_ms) == (0, 600_000)
    assert str(client.connection.principal) == "User:alice"
    assert client.ask(MetadataRequest(topics=[]), 12, MetadataResponse).controller_id == 1
    secure.advance(600)
    client.send(MetadataRequest(topics=[]), 12)
    assert client.answers() == []
    assert client.connection.is_finished


@for_each("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"])
def test_algorithms_of_rsa(secure: SecureBroker, algorithm: str) -> None:
    accepted(secure, signed(algorithm))


@pytest.mark.parametrize(("algorithm", "curve"), [("ES256", "P-256"), ("ES384", "P-384"), ("ES512", "P-521")])
def test_algorithms_of_elliptic_curves(tmp_path: Path, algorithm: str, curve: str) -> None:
    secure = broker(tmp_path, jwk(curve, "one", crv=curve))
    accepted(secure, signed(algorithm, curve))
    secure.close()


@for_each(
    "changes",
    [
        {"exp": NOW - 30},
        {"exp": None},
        {"exp": "soon"},
        {"exp": True},
        {"iat": None},
        {"iat": NOW + 31},
        {"nbf": NOW + 31},
        {"iss": "https://other.example"},
        {"iss": None},
        {"aud": "someone"},
        {"aud": None},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
    ],
    ids=str,
)
def test_claims_that_do_not_hold(secure: SecureBroker, changes: dict[str, Any]) -> None:
    payload = claims(**changes)
    with pytest.raises(TokenRefused):
        identity_of(payload, ClaimRules(30, ISSUER, (AUDIENCE,)), START_MS)
    if not any(isinstance(value, (bool, str)) and name == "exp" for name, value in changes.items()) and changes != {
        "sub": 7
    }:
        refused(secure, signed(**changes))


@for_each(
    "changes",
    [{"exp": NOW - 29}, {"iat": NOW + 29}, {"nbf": NOW + 29}, {"aud": ["x", "other"]}, {"iat": NOW - 0.5}],
    ids=str,
)
def test_clocks_may_differ_and_audiences_be_several(secure: SecureBroker, changes: dict[str, Any]) -> None:
    accepted(secure, signed(**changes))


def tampered(token: str) -> str:
    head, payload, signature = token.split(".")
    return ".".join([head, payload[:-4] + ("AAAA" if payload[-4:] != "AAAA" else "BBBB"), signature])


def with_shared_secret() -> str:
    """Signed with the text of the public key as the secret of an HMAC: the classic confusion."""
    head, payload, _ = unsecured({"alg": "HS256", "kid": "one"}).split(".")
    mac = hmac.digest(jwk("RSA", "one")["n"].encode(), f"{head}.{payload}".encode(), hashlib.sha256)
    return f"{head}.{payload}.{urlsafe_b64encode(mac).decode().rstrip('=')}"


@for_each(
    "make",
    [
        unsecured,
        lambda: unsecured({"alg": "none", "kid": "one"}),
        lambda: unsecured({"alg": ["RS256"], "kid": "one"}, "AAAA"),
        lambda: unsecured({"alg": "RS256", "kid": ["one"]}, "AAAA"),
        with_shared_secret,
        lambda: tampered(signed()),
        lambda: signed(number=1),  # by another key with this id
        lambda: signed(key_id="two"),
        lambda: signed("ES256", "P-256"),
        lambda: "x",
        lambda: "a.b.c",
        lambda: signed().rsplit(".", 1)[0] + ".",
    ],
)
def test_signatures_that_do_not_hold(secure: SecureBroker, make: Callable[[], str]) -> None:
    refused(secure, make())


def test_a_key_is_used_for_what_it_is_for(tmp_path: Path) -> None:
    secure = broker(
        tmp_path, jwk("RSA", "one", alg="RS256"), jwk("RSA", "enc", use="enc"), jwk("P-384", "p", crv="P-384")
    )
    accepted(secure, signed("RS256"))
    refused(secure, signed("RS512"))
    refused(secure, signed("RS256", key_id="enc"))
    refused(secure, signed("ES256", "P-256", "p"))
    secure.close()


def test_a_token_without_a_key_id_is_verified_by_the_only_key_of_its_kind(tmp_path: Path, secure: SecureBroker) -> None:
    accepted(secure, signed(key_id=None))
    (tmp_path / "two").mkdir()
    other = broker(tmp_path / "two", jwk("RSA", "one"), jwk("RSA", "two", 1))
    refused(other, signed(key_id=None))
    accepted(other, signed(key_id="two", number=1))
    other.close()


def test_names_of_claims(tmp_path: Path) -> None:
    secure = broker(tmp_path, **{"sasl.oauthbearer.sub.claim.name": "email"})
    client = accepted(secure, signed(email="a@example"))
    assert str(client.connection.principal) == "User:a@example"
    refused(secure, signed())
    secure.close()


def test_an_unknown_key_has_the_document_read_again_but_not_always(tmp_path: Path) -> None:
    secure = broker(tmp_path)
    write_jwks(tmp_path / "jwks.json", jwk("RSA", "two", 1))
    refused(secure, signed(key_id="two", number=1))  # it is read meanwhile
    accepted(secure, signed(key_id="two", number=1))
    write_jwks(tmp_path / "jwks.json", jwk("RSA", "three", 2))
    refused(secure, signed(key_id="three", number=2))
    refused(secure, signed(key_id="three", number=2))
    secure.advance(MIN_REFRESH_S)
    refused(secure, signed(key_id="three", number=2))
    accepted(secure, signed(key_id="three", number=2))
    secure.close()


def test_the_document_is_read_again_after_its_time(tmp_path: Path) -> None:
    secure = broker(tmp_path, **{"sasl.oauthbearer.jwks.endpoint.refresh.ms": "60000"})
    write_jwks(tmp_path / "jwks.json", jwk("RSA", "two", 1))
    secure.advance(59)
    accepted(secure, signed())
    secure.advance(1)
    refused(secure, signed())
    accepted(secure, signed(key_id="two", number=1))
    (tmp_path / "jwks.json").write_text("no document")
    secure.advance(61)
    accepted(secure, signed(key_id="two", number=1))  # the keys that there are stay
    secure.close()


def test_a_url_is_asked_again_until_it_answers(tmp_path: Path) -> None:
    """Nothing listens on port 1 of this machine."""
    secure = SecureBroker(tmp_path / "data", {**KEYS, URL: "http://127.0.0.1:1/jwks"})
    refused(secure, signed())
    calls: list[None] = []
    submit = secure.disk.submit

    def count(work: Callable[[], None], then: Callable[[Exception | None], None]) -> None:
        calls.append(None)
        submit(work, then)

    secure.disk.submit = count  # type: ignore[method-assign]
    secure.advance(5.0)
    assert len(calls) == 4  # 0.3, 0.7, 1.5 and 3.1 seconds after the start; the first one was in `refused`
    secure.close()


@for_each("text", ["", "[]", '{"keys": {}}', '{"keys": [1]}', "x" * (1024 * 1024 + 1)])
def test_a_file_that_is_no_document_is_a_mistake_of_the_start(tmp_path: Path, text: str) -> None:
    (tmp_path / "jwks.json").write_text(text)
    with pytest.raises(ValueError):
        read_document((tmp_path / "jwks.json").as_uri())
    with pytest.raises(ConfigError, match="cannot read file://"):
        SecureBroker(tmp_path / "data", {**KEYS, URL: (tmp_path / "jwks.json").as_uri()})


def test_an_authorization_id_must_be_the_bearer(secure: SecureBroker) -> None:
    response = fails(dial(secure), message(signed(), "bob"))
    assert response.error_message == (
        "Authentication failed: Client requested an authorization id (bob) that is different from the token's "
        "principal name (alice)"
    )


# Tokens without a signature


def test_unsecured_tokens_where_they_are_asked_for(tmp_path: Path) -> None:
    options = 'unsecuredValidatorAllowableClockSkewMs="2000" unsecuredValidatorRequiredScope="read write"'
    sets = {"sasl.enabled.mechanisms": "OAUTHBEARER", JAAS: f"{MODULE} {options};"}
    secure = SecureBroker(tmp_path / "data", sets)
    accepted(secure, unsecured(scope="write read admin", iss=None, iat=None))
    accepted(secure, unsecured(scope=["write", "read"], exp=NOW - 1))
    refused(secure, unsecured(scope="read"), '{"status":"insufficient_scope", "scope":"read write"}')
    refused(secure, unsecured(scope="read write", exp=NOW - 2))
    refused(secure, unsecured({"alg": "RS256"}, scope="read write"))
    refused(secure, unsecured(signature="AAAA", scope="read write"))
    secure.close()


@for_each(
    ("sets", "sentence"),
    [
        ({}, f"{URL} is not set"),
        ({JAAS: f"{MODULE};"}, "an option of unsecuredValidator"),
        (
            {
                JAAS: f'{MODULE} unsecuredValidatorAllowableClockSkewMs="1";',
                "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": (
                    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
                ),
            },
            f"{URL} is not set",
        ),
        ({JAAS: f'{MODULE} unsecuredValidatorAllowableClockSkewMs="x";'}, "must be a number of milliseconds"),
        ({URL: "ftp://example/keys"}, "must begin with one of file://, http://, https://"),
        ({URL: "file:///keys", "sasl.oauthbearer.expected.audience": "a"}, "expected.issuer is not set: set it"),
        ({URL: "file:///keys", "sasl.oauthbearer.expected.issuer": "a"}, "expected.audience is not set: set it"),
    ],
)
def test_a_listener_that_would_accept_any_token_is_refused(sets: dict[str, str], sentence: str) -> None:
    keys = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "OAUTHBEARER", **sets}
    with pytest.raises(ConfigError, match=sentence):
        load(keys, {}, None)


def test_keys_of_a_listener(tmp_path: Path) -> None:
    url = write_jwks(tmp_path / "jwks.json", jwk("RSA", "one"))
    prefix = "listener.name.sasl_plaintext.oauthbearer.sasl.oauthbearer."
    sets = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{prefix}jwks.endpoint.url": url,
        "listener.name.sasl_plaintext.sasl.oauthbearer.allow.unverified.issuer": "true",
        f"{prefix}expected.audience": "kafka",
    }
    secure = SecureBroker(tmp_path / "data", sets)
    accepted(secure, signed(iss=None))
    refused(secure, signed(aud="x"))
    secure.close()


# Parsers


def test_the_first_message() -> None:
    assert parse_initial(message("abc.def-_~+/==", "a=2Cb", "k=v\x01")) == ("a,b", "abc.def-_~+/==")
    for other in (
        b"",
        b"n,,",
        b"y,,\x01auth=Bearer a\x01\x01",
        b"n,,\x01auth=Basic a\x01\x01",
        b"n,,\x01x=y\x01\x01",
        b"\xff",
    ):
        with pytest.raises(InvalidCredentials):
            parse_initial(other)


def test_the_log_says_why_a_token_is_refused(secure: SecureBroker, caplog: pytest.LogCaptureFixture) -> None:
    """Its client gets the status only."""
    token = signed(aud="somebody else")
    with caplog.at_level(logging.INFO, "kafka.network.Selector"):
        refused(secure, token)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.endswith(f"({INVALID}: the token is for another audience)")
    assert token not in line


def test_only_one_answer_to_a_refusal_is_expected() -> None:
    def refuse(_token: str, _now_ms: int) -> Any:
        raise TokenRefused("no")

    exchange = OAuthBearerExchange(refuse)
    assert exchange.step(message("a"), 0) == INVALID.encode()
    with pytest.raises(InvalidCredentials):
        exchange.step(message("a"), 0)
    with pytest.raises(AuthenticationFailed):
        exchange.step(b"\x01", 0)
    assert exchange.identity is None


@given(st.binary(max_size=200) | st.text(alphabet="n,a=\x01uthBer 2C.\xe9", max_size=60).map(str.encode))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    try:
        parse_initial(data)
    except InvalidCredentials:
        pass


@given(st.text(max_size=100) | st.text(alphabet="eyJ.0-_{}[", max_size=60))
def test_any_text_is_an_unsecured_token_or_refused(text: str) -> None:
    try:
        unsecured_claims(text)
    except TokenRefused:
        pass


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)


@given(st.dictionaries(st.sampled_from(["sub", "exp", "iat", "nbf", "iss", "aud", "scope"]), VALUES | st.lists(VALUES)))
def test_any_claims_hold_or_are_refused(found: dict[str, Any]) -> None:
    try:
        identity_of(found, ClaimRules(30, None, ("a",), required_scope=("s",)), START_MS)
    except TokenRefused:
        pass
