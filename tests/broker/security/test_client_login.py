"""The log-ins of this node at other nodes: mechanisms, refusals, and sessions that end."""

from __future__ import annotations

import os

import pytest

from barnabas.broker.config.sasl_logins import Credentials
from barnabas.broker.net.client.network_client import NetworkClient
from barnabas.broker.security.client_login import logins
from barnabas.coord.security.exchange import AuthenticationFailed, Exchange, InvalidCredentials
from barnabas.coord.security.plain import PlainExchange
from barnabas.coord.security.scram import SCRAM_MECHANISMS
from barnabas.coord.security.scram_server import Credential, ScramExchange
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.cluster import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from barnabas.wire.messages.security.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tests.broker.scripted_nodes import Answers, ScriptedNode, Wire

NAME, PASSWORD, SALT = "node", "node-secret", b"salt"


class SecuredNode:
    """A node that authenticates clients with the right password, by any mechanism, for a session."""

    def __init__(self, wire: Wire) -> None:
        self.node: ScriptedNode = wire.node()
        self.lifetime_ms = 0
        self.enabled = ["PLAIN", *SCRAM_MECHANISMS]
        self.forges = False
        self._exchange: Exchange | None = None
        self.node.on(SaslHandshakeRequest, self._handshake)
        self.node.on(SaslAuthenticateRequest, self._authenticate)
        self.node.on(AllocateProducerIdsRequest, lambda request, _: AllocateProducerIdsResponse(producer_id_start=7))

    def _handshake(self, request: SaslHandshakeRequest, version: int) -> SaslHandshakeResponse:
        assert version == 1
        if request.mechanism not in self.enabled:
            return SaslHandshakeResponse(
                error_code=int(ErrorCode.UNSUPPORTED_SASL_MECHANISM), mechanisms=list(self.enabled)
            )
        self._exchange = self._begin(request.mechanism)
        return SaslHandshakeResponse(mechanisms=list(self.enabled))

    def _begin(self, mechanism: str) -> Exchange:
        if mechanism == "PLAIN":
            return PlainExchange({NAME: PASSWORD})
        scram = SCRAM_MECHANISMS[mechanism]
        salted = scram.salted_password(PASSWORD, SALT, 4096)
        credential = Credential(SALT, scram.stored_key(salted), scram.server_key(salted), 4096)
        return ScramExchange(scram, lambda name: (credential, name == NAME), lambda _: None, os.urandom)

    def _authenticate(self, request: SaslAuthenticateRequest, _: int) -> SaslAuthenticateResponse:
        assert self._exchange is not None
        try:
            token = self._exchange.step(bytes(request.auth_bytes), 0)
        except (AuthenticationFailed, InvalidCredentials) as error:
            return SaslAuthenticateResponse(
                error_code=int(ErrorCode.SASL_AUTHENTICATION_FAILED), error_message=str(error)
            )
        is_done = self._exchange.identity is not None
        if self.forges and is_done:
            token = b"v=AAAA"
        return SaslAuthenticateResponse(
            error_message=None, auth_bytes=token, session_lifetime_ms=self.lifetime_ms if is_done else 0
        )

    @property
    def kinds(self) -> list[str]:
        """What was asked, in order; ApiVersions is not among it."""
        return [type(request).__name__.removesuffix("Request") for request in self.node.requests]


@pytest.fixture
def secured(wire: Wire) -> SecuredNode:
    return SecuredNode(wire)


def client_of(wire: Wire, secured: SecuredNode, mechanism: str, password: str = PASSWORD) -> NetworkClient:
    login = logins(Credentials(mechanism, NAME, password))
    return NetworkClient(wire.loop, wire.outgoing.connect, lambda: secured.node.address, client_id="test", login=login)


def ask(client: NetworkClient, then: Answers) -> None:
    client.send(AllocateProducerIdsRequest(broker_id=1), then, timeout_s=10.0)


@pytest.mark.parametrize(("mechanism", "tokens"), [("PLAIN", 1), ("SCRAM-SHA-256", 2), ("SCRAM-SHA-512", 2)])
def test_a_connection_logs_in_before_its_first_request(wire, secured, mechanism: str, tokens: int) -> None:
    client, answers = client_of(wire, secured, mechanism), Answers()
    for _ in range(2):
        ask(client, answers)
    wire.until(lambda: len(answers.all) == 2)
    assert [response.producer_id_start for response in answers.all] == [7, 7]
    assert secured.kinds == ["SaslHandshake", *["SaslAuthenticate"] * tokens, *["AllocateProducerIds"] * 2]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_password_fails_the_request_and_is_logged_without_it(wire, secured, caplog, mechanism: str) -> None:
    client, answers = client_of(wire, secured, mechanism, "wrong-secret"), Answers()
    ask(client, answers)
    wire.until(lambda: answers.all)
    assert answers.codes == [ErrorCode.NETWORK_EXCEPTION]
    assert "authentication failed: SASL_AUTHENTICATION_FAILED" in str(answers.all[0])
    assert "Authentication at 127.0.0.1" in caplog.text
    assert "secret" not in caplog.text
    assert "AllocateProducerIds" not in secured.kinds


def test_a_mechanism_that_the_node_does_not_have(wire, secured, caplog) -> None:
    secured.enabled = ["SCRAM-SHA-512"]
    client, answers = client_of(wire, secured, "PLAIN"), Answers()
    ask(client, answers)
    wire.until(lambda: answers.all)
    assert answers.codes == [ErrorCode.NETWORK_EXCEPTION]
    assert "PLAIN: UNSUPPORTED_SASL_MECHANISM (it has SCRAM-SHA-512)" in caplog.text
    assert secured.kinds == ["SaslHandshake"]  # no password was sent


def test_a_node_that_does_not_prove_that_it_knows_the_password_gets_no_request(wire, secured) -> None:
    secured.forges = True
    client, answers = client_of(wire, secured, "SCRAM-SHA-256"), Answers()
    ask(client, answers)
    wire.until(lambda: answers.all)
    assert answers.codes == [ErrorCode.NETWORK_EXCEPTION]
    assert "AllocateProducerIds" not in secured.kinds


def test_a_new_connection_takes_the_place_of_one_whose_session_ends(wire, secured) -> None:
    secured.lifetime_ms = 10_000
    client, answers = client_of(wire, secured, "PLAIN"), Answers()
    ask(client, answers)
    wire.until(lambda: len(answers.all) == 1)
    wire.advance(8.4)
    ask(client, answers)
    wire.until(lambda: len(answers.all) == 2)
    assert secured.kinds.count("SaslHandshake") == 1
    wire.advance(0.2)
    ask(client, answers)
    wire.until(lambda: len(answers.all) == 3)
    assert secured.kinds.count("SaslHandshake") == 2
    assert answers.codes == [None, None, None]


def test_the_log_in_of_a_lost_connection_is_made_again(wire, secured) -> None:
    client, answers = client_of(wire, secured, "SCRAM-SHA-256"), Answers()
    ask(client, answers)
    wire.until(lambda: len(answers.all) == 1)
    client.disconnect()
    ask(client, answers)
    wire.until(lambda: len(answers.all) == 2)
    assert secured.kinds.count("SaslHandshake") == 2
    assert answers.codes == [None, None]


def test_a_listener_without_sasl_needs_no_login() -> None:
    assert logins(None) is None
