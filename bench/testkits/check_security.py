"""Checks of security: ACLs, users, TLS."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from bench.testkits.behaviours import behaviour
from bench.testkits.clients import Clients, error_of, until
from bench.testkits.product import Place, Setup

ALICE, PASSWORD = "alice", "alice-secret"


@behaviour("ACLs: who may not write is told so; they are created, described and deleted", Setup.AUTHORIZER)
def acls(clients: Clients) -> None:
    topic, admin = clients.topic(), clients.admin

    def binding(principal: str, operation: AclOperation) -> AclBinding:
        literal, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
        return AclBinding(ResourceType.TOPIC, topic, literal, principal, "*", operation, allow)

    def create(*bindings: AclBinding) -> None:
        for future in admin.create_acls(list(bindings)).values():
            future.result()

    def may_write() -> bool:
        try:
            clients.send(topic, b"x")
        except KafkaException as error:
            refusal = error.args[0]
        else:
            return True
        assert refusal.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED, f"error {refusal.code()}"
        return False

    other, own = binding("User:other", AclOperation.WRITE), binding(clients.place.principal, AclOperation.ALL)
    create(other)
    until(lambda: not may_write(), "somebody without an ACL to be refused")
    create(own)
    until(may_write, "somebody with an ACL to be allowed")
    any_acl = AclBindingFilter(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    described = set(admin.describe_acls(any_acl).result())
    assert described == {other, own}, f"described {described}"
    (deleted,) = admin.delete_acls([any_acl]).values()
    assert set(deleted.result()) == {other, own}, "other ACLs were deleted"


def _login(password: str) -> dict[str, str]:
    """Settings of alice."""
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}
    return {**settings, "sasl.username": ALICE, "sasl.password": password}


def _make_user(clients: Clients) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    upsertion = UserScramCredentialUpsertion(ALICE, info, PASSWORD.encode())
    clients.admin.alter_user_scram_credentials([upsertion])[ALICE].result()


@behaviour("A user of SCRAM-SHA-512 is made, described, and logs in", Setup.LOG_IN)
def scram(clients: Clients) -> None:
    _make_user(clients)
    found = clients.admin.describe_user_scram_credentials([ALICE])[ALICE].result()
    mechanisms = [one.mechanism for one in found.scram_credential_infos]
    assert mechanisms == [ScramMechanism.SCRAM_SHA_512], f"mechanisms {mechanisms}"
    topic = clients.topic()
    with Clients(Place(clients.place.bootstrap, client=_login(PASSWORD))) as own:
        own.send(topic, b"x")
        assert [one.value() for one in own.read(topic, 1)] == [b"x"], "another record"


@behaviour("Who logs in with a wrong password is told so", Setup.LOG_IN)
def wrong_password(clients: Clients) -> None:
    _make_user(clients)
    errors: list[KafkaError] = []
    settings = {"bootstrap.servers": clients.place.bootstrap, "error_cb": errors.append}
    refused = AdminClient({**settings, **_login("wrong")})

    def is_told() -> bool:
        refused.poll(0.1)
        return any(error.code() == KafkaError._AUTHENTICATION for error in errors)

    until(is_told, "an error of authentication")


@behaviour("TLS: a client that trusts the CA is served, another one is not", Setup.TLS)
def tls(clients: Clients) -> None:
    topic = clients.topic()
    clients.send(topic, b"x")
    assert [one.value() for one in clients.read(topic, 1)] == [b"x"], "another record"
    settings = {"bootstrap.servers": clients.place.bootstrap, "security.protocol": "ssl"}
    errors: list[KafkaError] = []
    stranger = AdminClient({**settings, "error_cb": errors.append})

    def is_told() -> bool:
        stranger.poll(0.1)
        return any(error.code() == KafkaError._SSL for error in errors)

    until(is_told, "an error for a client that does not trust the CA")
    code = error_of(lambda: AdminClient({"bootstrap.servers": clients.place.bootstrap}).list_topics(timeout=5))
    assert code in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN), f"error {code}"
