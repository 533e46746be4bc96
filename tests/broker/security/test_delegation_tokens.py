"""Delegation tokens (38-41): made, renewed, expired, described, and used to log in, as in Apache Kafka 4.4.0."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.coord.security.tokens import Requester, TokenSettings, create_token, token_password
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.security.tokens import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from barnabas.wire.principal import KafkaPrincipal
from tests.support.memory.broker import Client
from tests.support.memory.secure_broker import (
    ADMIN,
    ADMIN_SECRET,
    SecureBroker,
    authenticate,
    fails,
    handshake,
    scram_final,
    scram_first,
)
from tests.support.world import START_MS

HOUR_MS = 3_600_000
KEYS = {
    "delegation.token.secret.key": "key-secret",
    "delegation.token.max.lifetime.ms": str(10 * HOUR_MS),
    "delegation.token.expiry.time.ms": str(2 * HOUR_MS),
}
ALICE = KafkaPrincipal("User", "alice")


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[SecureBroker]:
    broker = SecureBroker(tmp_path / "data", KEYS)
    yield broker
    broker.close()


def create(client: Client, *renewers: str, **options) -> CreateDelegationTokenResponse:
    named = [CreatableRenewers(principal_type="User", principal_name=name) for name in renewers]
    request = CreateDelegationTokenRequest(renewers=named, **{"max_lifetime_ms": -1, **options})
    return client.ask(request, 3, CreateDelegationTokenResponse)


def renew(client: Client, key: bytes, period_ms: int = -1) -> tuple[int, int]:
    response = client.ask(
        RenewDelegationTokenRequest(hmac=key, renew_period_ms=period_ms), 2, RenewDelegationTokenResponse
    )
    return response.error_code, response.expiry_timestamp_ms


def expire(client: Client, key: bytes, period_ms: int = -1) -> tuple[int, int]:
    ask = ExpireDelegationTokenRequest(hmac=key, expiry_time_period_ms=period_ms)
    response = client.ask(ask, 2, ExpireDelegationTokenResponse)
    return response.error_code, response.expiry_timestamp_ms


def describe(client: Client, *owners: str, of_all: bool = False) -> DescribeDelegationTokenResponse:
    named = [DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in owners]
    return client.ask(
        DescribeDelegationTokenRequest(owners=None if of_all else named), 3, DescribeDelegationTokenResponse
    )


def log_in(secure: SecureBroker, token: CreateDelegationTokenResponse, mechanism: str = "SCRAM-SHA-256") -> Client:
    client = secure.dial()
    handshake(client, mechanism)
    first = scram_first(token.token_id, extensions=",tokenauth=true")
    server = bytes(authenticate(client, first).auth_bytes)
    password = b64encode(bytes(token.hmac)).decode()
    done = authenticate(client, scram_final(password, first, server, mechanism))
    assert done.error_code == 0, done
    assert done.session_lifetime_ms == token.expiry_timestamp_ms - secure.clock.now_ms
    return client


def test_a_token_is_made_and_described(secure: SecureBroker) -> None:
    client = secure.plain()
    token = create(client, "bob")
    assert token.error_code == 0
    assert (token.principal_type, token.principal_name) == ("User", "alice")
    assert (token.token_requester_principal_type, token.token_requester_principal_name) == ("User", "alice")
    assert token.issue_timestamp_ms == START_MS
    assert token.expiry_timestamp_ms == START_MS + 2 * HOUR_MS
    assert token.max_timestamp_ms == START_MS + 10 * HOUR_MS
    assert len(bytes(token.hmac)) == 64
    assert b64encode(bytes(token.hmac)).decode() == token_password("key-secret", token.token_id)
    (described,) = describe(client, "alice").tokens
    assert (described.token_id, bytes(described.hmac)) == (token.token_id, bytes(token.hmac))
    assert [item.principal_name for item in described.renewers] == ["bob"]
    assert [item.token_id for item in describe(client, of_all=True).tokens] == [token.token_id]
    assert [item.token_id for item in describe(client, "bob").tokens] == [token.token_id]  # a renewer sees it
    assert describe(client, "mallory").tokens == []
    assert describe(client).tokens == []


def test_the_lifetime_that_is_asked_for_is_a_maximum(secure: SecureBroker) -> None:
    client = secure.plain()
    assert create(client, max_lifetime_ms=HOUR_MS).expiry_timestamp_ms == START_MS + HOUR_MS
    assert create(client, max_lifetime_ms=99 * HOUR_MS).max_timestamp_ms == START_MS + 10 * HOUR_MS


def test_a_token_for_another_owner(secure: SecureBroker) -> None:
    token = create(secure.plain(ADMIN, ADMIN_SECRET), owner_principal_type="User", owner_principal_name="alice")
    assert (token.principal_name, token.token_requester_principal_name) == ("alice", "admin")
    assert log_in(secure, token).connection.principal == ALICE._replace(is_token_authenticated=True)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_token_logs_in_as_its_owner_and_may_not_ask_for_tokens(secure: SecureBroker, mechanism: str) -> None:
    token = create(secure.plain())
    client = log_in(secure, token, mechanism)
    assert client.connection.principal == ALICE._replace(is_token_authenticated=True)
    assert client.ask(MetadataRequest(topics=[]), 12, MetadataResponse).controller_id == 1
    not_allowed = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert create(client).error_code == not_allowed
    assert renew(client, bytes(token.hmac)) == (not_allowed, -1)
    assert expire(client, bytes(token.hmac)) == (not_allowed, -1)
    assert describe(client, "alice").error_code == not_allowed


def test_a_token_that_does_not_exist_fails_as_a_wrong_password_does(secure: SecureBroker) -> None:
    token = create(secure.plain())
    answers = []
    for token_id in (token.token_id, "AAAAAAAAAAAAAAAAAAAAAA"):
        client = secure.dial()
        handshake(client, "SCRAM-SHA-256")
        first = scram_first(token_id, extensions=",tokenauth=true")
        server = bytes(authenticate(client, first).auth_bytes)
        answers.append(fails(client, scram_final("wrong", first, server)))
    assert answers[0].error_message == answers[1].error_message
    assert answers[0].error_code == answers[1].error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_token_is_no_user_and_a_user_no_token(secure: SecureBroker) -> None:
    token = create(secure.plain())
    client = secure.dial()
    handshake(client, "SCRAM-SHA-256")
    first = scram_first(token.token_id)
    server = bytes(authenticate(client, first).auth_bytes)
    password = b64encode(bytes(token.hmac)).decode()
    assert fails(client, scram_final(password, first, server)).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_the_session_of_a_token_ends_with_it(secure: SecureBroker) -> None:
    client = log_in(secure, create(secure.plain(), max_lifetime_ms=60_000))
    secure.advance(60)
    client.send(MetadataRequest(topics=[]), 12)
    assert client.answers() == []
    assert client.connection.is_finished


def test_an_expired_token_does_not_log_in(secure: SecureBroker) -> None:
    token = create(secure.plain(), max_lifetime_ms=60_000)
    secure.advance(61)
    client = secure.dial()
    handshake(client, "SCRAM-SHA-256")
    first = scram_first(token.token_id, extensions=",tokenauth=true")
    server = bytes(authenticate(client, first).auth_bytes)
    password = b64encode(bytes(token.hmac)).decode()
    assert fails(client, scram_final(password, first, server)).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_renewing(secure: SecureBroker) -> None:
    alice, admin = secure.plain(), secure.plain(ADMIN, ADMIN_SECRET)
    key = bytes(create(alice).hmac)
    secure.advance(3600)
    now_ms = secure.clock.now_ms
    assert renew(alice, key) == (0, now_ms + 2 * HOUR_MS)
    assert renew(alice, key, 1000) == (0, now_ms + 1000)
    assert renew(alice, key, 99 * HOUR_MS) == (0, now_ms + 2 * HOUR_MS)
    assert renew(admin, key) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    assert renew(alice, b"x" * 64) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, 0)
    shared = bytes(create(alice, "admin", max_lifetime_ms=HOUR_MS).hmac)
    assert renew(admin, shared) == (0, now_ms + HOUR_MS)  # its end
    secure.advance(3601)
    assert renew(admin, shared) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, 0)


def test_expiring(secure: SecureBroker) -> None:
    alice, admin = secure.plain(), secure.plain(ADMIN, ADMIN_SECRET)
    token = create(alice)
    key = bytes(token.hmac)
    now_ms = secure.clock.now_ms
    assert expire(admin, key) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    assert expire(alice, key, 5000) == (0, now_ms + 5000)
    assert expire(alice, key, 99 * HOUR_MS) == (0, now_ms + 10 * HOUR_MS)
    assert expire(alice, key, -1) == (0, -1)
    assert secure.broker.image.tokens == {}
    assert expire(alice, key, -1) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, 0)


def test_expired_tokens_are_removed(secure: SecureBroker) -> None:
    alice = secure.plain()
    create(alice, max_lifetime_ms=1000)
    created = create(alice)
    secure.advance(2)
    secure.broker.controller.remove_expired_tokens()
    secure.broker.loop.end_turn()
    assert list(secure.broker.image.tokens) == [created.token_id]


def test_who_is_not_authenticated_may_not_ask(secure: SecureBroker) -> None:
    client = secure.client()  # as on a PLAINTEXT listener
    not_allowed = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    response = client.ask(CreateDelegationTokenRequest(), 1, CreateDelegationTokenResponse)
    assert (response.error_code, response.principal_type) == (not_allowed, "User")  # v1 has no field for the requester
    response = create(client)
    assert (response.error_code, response.principal_name, response.expiry_timestamp_ms) == (
        not_allowed,
        "ANONYMOUS",
        -1,
    )
    assert renew(client, b"x")[0] == expire(client, b"x")[0] == describe(client).error_code == not_allowed


def test_without_a_key_there_are_no_tokens(tmp_path: Path) -> None:
    secure = SecureBroker(tmp_path / "data")
    client = secure.plain()
    disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert create(client).error_code == disabled
    assert renew(client, b"x")[0] == expire(client, b"x")[0] == describe(client).error_code == disabled
    secure.close()


def test_other_refusals() -> None:
    settings = TokenSettings("key-secret", HOUR_MS, HOUR_MS)
    other = [CreatableRenewers(principal_type="Group", principal_name="g")]
    request = CreateDelegationTokenRequest(renewers=other)
    for version, code in ((29, ErrorCode.INVALID_PRINCIPAL_TYPE), (13, ErrorCode.UNSUPPORTED_VERSION)):
        records, response = create_token(settings, request, Requester(ALICE, 0, version), lambda: "id")
        assert (records, response.error_code) == ([], code)
    assert "secret" not in repr(settings)


def test_tokens_are_kept_over_a_restart_without_their_hmac(tmp_path: Path) -> None:
    first = SecureBroker(tmp_path / "data", KEYS)
    token = create(first.plain(), "bob")
    first.close()
    second = SecureBroker(tmp_path / "data", KEYS)
    assert log_in(second, token)
    second.close()
    log = next((tmp_path / "data").glob("__cluster_metadata-0/*.log")).read_bytes()
    assert token.token_id.encode() in log
    assert bytes(token.hmac) not in log
