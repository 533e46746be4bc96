"""A listener with SASL: what a connection may send before and after it is authenticated, as in Apache Kafka 4.4.0."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode, ProtocolError
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.security.sasl import SaslAuthenticateRequest, SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.wire.messages.topics import CreateTopicsRequest
from barnabas.wire.principal import ANONYMOUS
from barnabas.wire.schema import Message
from tests.support.cases import for_each
from tests.support.memory.broker import SIZE, Client
from tests.support.memory.secure_broker import (
    ALICE,
    SECRET,
    SecureBroker,
    authenticate,
    fails,
    handshake,
    scram_final,
    scram_first,
)

TOKEN = f"\0{ALICE}\0{SECRET}".encode()
REFUSED = "Authentication failed: Invalid username or password"
METADATA = MetadataRequest(topics=[])


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[SecureBroker]:
    broker = SecureBroker(tmp_path / "data")
    yield broker
    broker.close()


def versions(client: Client, version: int = 4) -> ApiVersionsResponse:
    ask = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    return client.ask(ask, version, ApiVersionsResponse)


def raw(client: Client, token: bytes) -> bytes:
    """Send a token without a header; its answer."""
    client.feed(SIZE.pack(len(token)) + token)
    client.collect()
    response = bytes(client.inbox)
    client.inbox.clear()
    return response


# Log-ins


@for_each("asks_versions", [True, False])
@for_each("version", [0, 1, 2])
def test_plain_lets_a_user_in(secure: SecureBroker, version: int, asks_versions: bool) -> None:
    client = secure.dial()
    if asks_versions:
        assert versions(client).error_code == 0
    response = handshake(client, "PLAIN")
    assert (response.error_code, response.mechanisms) == (0, ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
    assert client.connection.principal == ANONYMOUS
    done = authenticate(client, TOKEN, version)
    assert (done.error_code, done.error_message, done.auth_bytes, done.session_lifetime_ms) == (0, "", b"", 0)
    assert str(client.connection.principal) == "User:alice"
    assert client.connection.authenticator is None
    assert client.ask(METADATA, 12, MetadataResponse).controller_id == 1
    assert secure.sasl.log_ins.successful_authentications == 1


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_lets_a_user_in(secure: SecureBroker, mechanism: str) -> None:
    secure.add_scram(mechanism=mechanism, iterations=5000)
    client = secure.dial()
    handshake(client, mechanism)
    first = scram_first(ALICE)
    server = authenticate(client, first)
    assert server.session_lifetime_ms == 0
    assert client.connection.authenticator is not None
    done = authenticate(client, scram_final(SECRET, first, bytes(server.auth_bytes), mechanism))
    assert done.error_code == 0
    assert bytes(done.auth_bytes).startswith(b"v=")
    assert str(client.connection.principal) == "User:alice"


def test_a_handshake_of_version_0_is_followed_by_tokens_without_headers(secure: SecureBroker) -> None:
    client = secure.dial()
    assert handshake(client, "PLAIN", 0).error_code == 0
    assert raw(client, TOKEN) == SIZE.pack(0)
    assert client.ask(METADATA, 12, MetadataResponse).controller_id == 1
    assert str(client.connection.principal) == "User:alice"


def test_requests_behind_the_last_token_are_served(secure: SecureBroker) -> None:
    client = secure.dial()
    frames = client.frame(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    frames += client.frame(SaslAuthenticateRequest(auth_bytes=TOKEN), 2)
    client.feed(frames + client.frame(METADATA, 12))
    _, _, response = client.answers()
    assert isinstance(response, MetadataResponse)


def test_sasl_requests_of_an_authenticated_connection_are_illegal(secure: SecureBroker) -> None:
    client = secure.plain()
    response = handshake(client, "PLAIN")
    assert (response.error_code, response.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])
    assert authenticate(client, TOKEN).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.ask(METADATA, 12, MetadataResponse).controller_id == 1


# Requests that are not served before authentication


@for_each("request_", [METADATA, SaslAuthenticateRequest(auth_bytes=TOKEN), CreateTopicsRequest()])
@for_each("asks_versions", [True, False])
def test_nothing_else_is_served_before_a_handshake(secure: SecureBroker, request_, asks_versions: bool) -> None:
    client = secure.dial()
    if asks_versions:
        versions(client)
    with pytest.raises(ProtocolError, match=r"^Unexpected Kafka request of type \w+ during SASL handshake"):
        client.send(request_, 2)
    assert client.answers() == []


def test_an_api_that_is_unknown_closes_the_connection(secure: SecureBroker) -> None:
    with pytest.raises(ProtocolError, match="Unexpected Kafka request of type 9999"):
        secure.dial().feed(bytes.fromhex("0000000a 270f 0000 00000001 ffff"))


def test_versions_may_be_asked_for_once(secure: SecureBroker) -> None:
    client = secure.dial()
    assert versions(client).error_code == 0
    with pytest.raises(ProtocolError, match="Unexpected ApiVersions request"):
        client.send(ApiVersionsRequest(client_software_name="test", client_software_version="1"), 4)


def test_versions_that_were_refused_may_be_asked_for_again(secure: SecureBroker) -> None:
    client = secure.dial()
    client.sent.append((18, 4, 1))
    client.feed(bytes.fromhex("0000000b 0012 0063 00000001 ffff 00"))
    (response,) = client.answers()
    assert isinstance(response, ApiVersionsResponse)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert versions(client).error_code == 0


def test_another_request_in_place_of_a_token_is_illegal(secure: SecureBroker) -> None:
    client = secure.dial()
    handshake(client, "PLAIN")
    client.send(ApiVersionsRequest(client_software_name="test", client_software_version="1"), 4)
    assert client.answers() == []
    secure.advance(0.1)
    (response,) = client.answers()
    assert isinstance(response, ApiVersionsResponse)
    assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.connection.is_finished


def test_a_request_whose_answer_has_no_place_for_an_error_is_not_answered(
    secure: SecureBroker, caplog: pytest.LogCaptureFixture
) -> None:
    client = secure.dial()
    handshake(client, "PLAIN")
    client.send(ProduceRequest(), 9)
    secure.advance(0.1)
    assert client.answers() == []
    assert client.connection.is_finished
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_requests_that_were_sent_with_a_wrong_password_are_not_served(secure: SecureBroker) -> None:
    client = secure.dial()
    frames = client.frame(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    frames += client.frame(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2)
    client.feed(frames + client.frame(CreateTopicsRequest(), 7))
    secure.advance(0.1)
    assert [type(response).__name__ for response in client.answers()] == [
        "SaslHandshakeResponse",
        "SaslAuthenticateResponse",
    ]
    assert client.connection.is_finished


# Failures


def test_a_mechanism_that_is_not_enabled_is_refused_with_those_that_are(secure: SecureBroker) -> None:
    client = secure.dial()
    client.send(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
    assert client.answers() == []
    secure.advance(0.1)
    (response,) = client.answers()
    assert isinstance(response, SaslHandshakeResponse)
    assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert response.mechanisms == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert client.connection.is_finished


@pytest.mark.parametrize("token", [b"\0alice\0wrong", b"\0mallory\0alice-secret"])
def test_a_failure_is_answered_after_a_delay_logged_and_counted(
    secure: SecureBroker, caplog: pytest.LogCaptureFixture, token: bytes
) -> None:
    caplog.set_level(logging.INFO)
    client = secure.dial()
    handshake(client, "PLAIN")
    response = fails(client, token)
    assert (response.error_code, response.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, REFUSED)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "kafka.network.Selector"]
    assert line == (
        "[SocketServer listenerType=BROKER, nodeId=1] Failed authentication with /10.0.0.1 "
        f"(channelId=127.0.0.1:9092-10.0.0.1:5000-0-0) ({REFUSED})"
    )
    assert (secure.sasl.log_ins.failed_authentications, secure.sasl.log_ins.successful_authentications) == (1, 0)
    assert client.connection.principal == ANONYMOUS


def test_the_delay_is_configured(tmp_path: Path) -> None:
    secure = SecureBroker(tmp_path / "data", {"connection.failed.authentication.delay.ms": "5000"})
    client = secure.dial()
    handshake(client, "PLAIN")
    client.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2)
    secure.advance(4.9)
    assert client.answers() == []
    secure.advance(0.1)
    assert len(client.answers()) == 1
    secure.close()


def test_a_client_that_leaves_during_the_delay_leaves_nothing_behind(secure: SecureBroker) -> None:
    client = secure.dial()
    handshake(client, "PLAIN")
    client.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2)
    client.connection.close()
    secure.advance(1)
    assert client.answers() == []


def test_a_wrong_token_without_a_header_has_no_answer(secure: SecureBroker) -> None:
    client = secure.dial()
    handshake(client, "PLAIN", 0)
    assert raw(client, b"\0alice\0wrong") == b""
    assert not client.connection.is_finished
    secure.advance(0.1)
    client.collect()
    assert bytes(client.inbox) == b""
    assert client.connection.is_finished


@pytest.mark.parametrize("name", [ALICE, "mallory"])
def test_scram_does_not_tell_who_exists(secure: SecureBroker, name: str) -> None:
    """A wrong password and an unknown user have the same answers: salt, iterations, and then the same error."""
    secure.add_scram(iterations=6000)
    salts = set()
    for _ in range(2):
        client = secure.dial()
        handshake(client, "SCRAM-SHA-256")
        first = scram_first(name)
        server = bytes(authenticate(client, first).auth_bytes)
        assert server.endswith(b",i=6000")
        salts.add(server.split(b",")[1])
        response = fails(client, scram_final("wrong", first, server))
        assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert response.error_message == (
            "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
        )
    (salt,) = salts
    assert len(salt) == len(b"s=") + 32  # of a salt of 22 bytes


def test_what_is_no_scram_message_has_the_same_answer(secure: SecureBroker) -> None:
    client = secure.dial()
    handshake(client, "SCRAM-SHA-256")
    assert "due to invalid credentials" in str(fails(client, b"\x00\xff").error_message)


def test_a_large_token_is_refused_before_authentication_and_a_large_request_served_after(tmp_path: Path) -> None:
    secure = SecureBroker(tmp_path / "data", {"sasl.server.max.receive.size": "1000"})
    with pytest.raises(ProtocolError, match="1001"):
        secure.dial().feed(SIZE.pack(1001))
    client = secure.plain()
    client.feed(SIZE.pack(2000))  # is read
    assert client.connection.wants_data
    secure.close()


def test_no_api_is_served_without_authentication(secure: SecureBroker) -> None:
    """Each key, with the shortest header: only three are looked at."""
    served = set()
    for key in ApiKey:
        client = secure.dial()
        frame = int(key).to_bytes(2, "big") + bytes.fromhex("0000 00000001 ffff")
        try:
            client.connection.receive(memoryview(SIZE.pack(len(frame)) + frame), 0.0)
        except ProtocolError as error:
            if "during SASL handshake" not in str(error):
                served.add(key)
        else:
            served.add(key)
    assert served == {ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS}


# Sessions (KIP-368)


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[SecureBroker]:
    broker = SecureBroker(
        tmp_path / "data",
        {
            "connections.max.reauth.ms": "60000",
            "listener.name.sasl_plaintext.scram-sha-256.connections.max.reauth.ms": "10000",
        },
    )
    yield broker
    broker.close()


def log_in(client: Client, name: str = ALICE, password: str = SECRET) -> int:
    assert handshake(client, "PLAIN").error_code == 0
    return int(authenticate(client, f"\0{name}\0{password}".encode()).session_lifetime_ms)


def test_a_session_has_a_lifetime_and_nothing_is_served_after_it(sessions: SecureBroker) -> None:
    client = sessions.dial()
    assert log_in(client) == 60000
    sessions.advance(59.9)
    assert client.ask(METADATA, 12, MetadataResponse).controller_id == 1
    sessions.advance(0.1)
    client.send(METADATA, 12)
    assert client.answers() == []
    assert client.connection.is_finished
    assert sessions.sasl.log_ins.expired_connections_killed == 1


def test_the_lifetime_of_a_mechanism(sessions: SecureBroker) -> None:
    sessions.add_scram()
    client = sessions.dial()
    handshake(client, "SCRAM-SHA-256")
    first = scram_first(ALICE)
    server = bytes(authenticate(client, first).auth_bytes)
    assert authenticate(client, scram_final(SECRET, first, server)).session_lifetime_ms == 10000


def test_a_client_may_authenticate_again_before_or_after_the_end(sessions: SecureBroker) -> None:
    client = sessions.dial()
    log_in(client)
    for wait_s in (59.0, 61.0):
        sessions.advance(wait_s)
        assert log_in(client) == 60000
        assert client.ask(METADATA, 12, MetadataResponse).controller_id == 1
    assert (sessions.sasl.log_ins.successful_authentications, sessions.sasl.log_ins.successful_reauthentications) == (
        1,
        2,
    )


def test_another_principal_is_refused(sessions: SecureBroker) -> None:
    client = sessions.dial()
    log_in(client)
    sessions.advance(5)
    handshake(client, "PLAIN")
    response = fails(client, b"\0admin\0admin-secret")
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message == "Cannot change principals during re-authentication from User.alice: User.admin"
    assert sessions.sasl.log_ins.failed_reauthentications == 1


def test_a_wrong_password_of_the_second_time_closes_the_connection(sessions: SecureBroker) -> None:
    client = sessions.dial()
    log_in(client)
    sessions.advance(5)
    handshake(client, "PLAIN")
    assert fails(client, b"\0alice\0wrong").error_message == REFUSED
    assert (sessions.sasl.log_ins.failed_authentications, sessions.sasl.log_ins.failed_reauthentications) == (0, 1)


def test_another_mechanism_is_refused_with_its_first_token(
    sessions: SecureBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    client = sessions.dial()
    log_in(client)
    sessions.advance(5)
    assert handshake(client, "SCRAM-SHA-256").error_code == 0
    client.send(SaslAuthenticateRequest(auth_bytes=scram_first(ALICE)), 2)
    sessions.advance(0.1)
    assert client.answers() == []
    assert client.connection.is_finished
    assert "Failed re-authentication" in caplog.text
    assert (
        "'SCRAM-SHA-256' requested by client is not supported for re-authentication of mechanism 'PLAIN'" in caplog.text
    )


@pytest.mark.parametrize(
    "request_", [METADATA, SaslHandshakeRequest(mechanism="PLAIN"), ApiVersionsRequest(client_software_name="test")]
)
def test_after_another_mechanism_nothing_but_its_token_is_taken(sessions: SecureBroker, request_: Message) -> None:
    """Otherwise a client could go on like that after the end of its session."""
    client = sessions.dial()
    log_in(client)
    sessions.advance(5)
    handshake(client, "SCRAM-SHA-256")
    sessions.advance(1000)
    with pytest.raises(ProtocolError, match="during SASL re-authentication with another mechanism"):
        client.send(request_, 1)
    assert client.answers() == []


def test_a_client_may_begin_again_once_a_second(sessions: SecureBroker) -> None:
    client = sessions.dial()
    log_in(client)
    sessions.advance(5)
    log_in(client)
    sessions.advance(0.5)
    assert handshake(client, "PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
    sessions.advance(0.5)
    assert handshake(client, "PLAIN").error_code == 0


def test_nothing_else_is_served_while_a_client_authenticates_again(sessions: SecureBroker) -> None:
    client = sessions.dial()
    log_in(client)
    sessions.advance(5)
    handshake(client, "PLAIN")
    client.send(ApiVersionsRequest(client_software_name="test", client_software_version="1"), 4)
    sessions.advance(0.1)
    (response,) = client.answers()
    assert isinstance(response, ApiVersionsResponse)
    assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
