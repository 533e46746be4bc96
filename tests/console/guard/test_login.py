"""The log-in with the users of a real broker, and which listeners want one."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import pytest

from barnabas.client.admin.users import set_credential
from barnabas.client.cluster import Cluster
from barnabas.client.errors import TlsFailed, Unreachable
from barnabas.client.security.scram import credential
from barnabas.client.security.settings import security_from
from barnabas.console.guard.bodies import RefusedError
from barnabas.console.guard.login import LogIn, login_way
from barnabas.console.guard.sessions import Attempts, Session, Sessions
from tests.support.processes.secured import HARNESS_PASSWORD, HARNESS_USER, Secured


@pytest.fixture(scope="module")
def users(secured: Secured) -> Iterator[None]:
    """Users with a credential of one mechanism each."""
    login = {"sasl_username": HARNESS_USER, "sasl_password": HARNESS_PASSWORD}
    own = secured.properties("SASL_PLAINTEXT", sasl_mechanism="PLAIN", **login)
    with Cluster(secured.harness, security=security_from(own)) as cluster:
        for name, mechanism in (("carol", "SCRAM-SHA-256"), ("dave", "SCRAM-SHA-512")):
            set_credential(cluster, name, credential(mechanism, f"{name}-secret", 4096))
        yield


def _begin(log_in: LogIn, user: str, password: str) -> Session:
    async def begin() -> Session:
        return (await log_in.begin(user, password, "127.0.0.1"))[1]

    return anyio.run(begin)


def test_people_log_in_where_the_listener_has_sasl_and_no_user_is_configured(secured: Secured) -> None:
    plain = login_way(secured.address("PLAINTEXT"), {})
    assert plain is None
    without_tls = login_way(secured.address("SASL_PLAINTEXT"), {})
    assert without_tls is not None
    assert without_tls.mechanisms == ("SCRAM-SHA-512", "SCRAM-SHA-256")  # PLAIN would send the password as it is
    with_tls = login_way(secured.address("SASL_SSL"), secured.properties("SASL_SSL"))
    assert with_tls is not None
    assert with_tls.mechanisms == ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
    user = secured.properties("SASL_SSL", sasl_mechanism="PLAIN", sasl_username="alice", sasl_password="alice-secret")
    assert login_way(secured.address("SASL_SSL"), user) is None
    forced = login_way(secured.address("SASL_SSL"), user, is_forced=True)
    assert forced is not None
    assert not [key for key in forced.properties if key.startswith("sasl.")]
    assert login_way(secured.address("SSL"), secured.properties("SSL")) is None
    with pytest.raises(ValueError, match="--login is for a broker whose listener has SASL"):
        login_way(secured.address("PLAINTEXT"), {}, is_forced=True)
    with pytest.raises(TlsFailed, match=r"expects TLS: security\.protocol must be SSL or SASL_SSL"):
        login_way(secured.address("SASL_SSL"), {})
    with pytest.raises(Unreachable):
        login_way("127.0.0.1:1", {})


def test_a_session_acts_as_its_user_with_any_of_the_mechanisms(secured: Secured, users: None) -> None:
    address = secured.address("SASL_SSL")
    way = login_way(address, secured.properties("SASL_SSL"))
    assert way is not None
    sessions = Sessions()
    log_in = LogIn(way, address, sessions)
    for user, mechanism in (("carol", "SCRAM-SHA-256"), ("dave", "SCRAM-SHA-512"), ("alice", "PLAIN")):
        session = _begin(log_in, user, f"{user}-secret")
        assert (session.user, session.properties["sasl.mechanism"]) == (user, mechanism)
        with Cluster(address, security=session.security) as cluster:
            assert cluster.retry(lambda deadline, cluster=cluster: cluster.metadata([], deadline)).brokers
    assert len(sessions) == 3


def test_wrong_passwords_are_refused_alike_and_limited(secured: Secured, users: None) -> None:
    address = secured.address("SASL_PLAINTEXT")
    way = login_way(address, {})
    assert way is not None
    now = [0.0]
    sessions = Sessions()
    log_in = LogIn(way, address, sessions, attempts=Attempts(lambda: now[0]))
    texts = set()
    for user, password in (
        ("dave", "wrong"),
        ("nobody", "wrong"),
        ("dave", "dave-secret "),
        ("dave", '" tokenauth="true'),
    ):
        with pytest.raises(RefusedError) as refused:
            _begin(log_in, user, password)
        texts.add((refused.value.status, str(refused.value)))
    assert texts == {(401, "The broker does not accept this user and password.")}
    for user, password in (("", "a"), ("a", ""), ("a" * 300, "a"), ("a", "a" * 2000), ("a\n", "a"), ("a", "\0")):
        with pytest.raises(RefusedError, match="Type a user and a password"):
            _begin(log_in, user, password)
    for _ in range(2):
        with pytest.raises(RefusedError):
            _begin(log_in, "dave", "wrong")
    with pytest.raises(RefusedError, match="Too many log-ins have failed: try again in 60 s") as limited:
        _begin(log_in, "dave", "dave-secret")
    assert limited.value.status == 429
    now[0] = 60.0
    assert _begin(log_in, "dave", "dave-secret").user == "dave"
    assert len(sessions) == 1


def test_a_broker_that_does_not_answer_is_no_wrong_password(secured: Secured) -> None:
    way = login_way(secured.address("SASL_PLAINTEXT"), {})
    assert way is not None
    with pytest.raises(RefusedError, match="The password could not be checked") as refused:
        _begin(LogIn(way, "127.0.0.1:1", Sessions()), "dave", "dave-secret")
    assert refused.value.status == 503
