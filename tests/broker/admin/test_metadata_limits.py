"""How much metadata clients may make: the keys that limit each kind, with POLICY_VIOLATION beyond them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.coord.security.tokens import token_hmac
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from barnabas.wire.messages.quotas import AlterClientQuotasRequest
from barnabas.wire.messages.security.acls import AclCreation, CreateAclsRequest
from barnabas.wire.messages.security.sasl import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.security.tokens import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.wire.schema import Message
from tests.support.memory.broker import Client
from tests.support.memory.secure_broker import ADMIN, ADMIN_SECRET, SecureBroker
from tests.support.requests.quotas import alteration

REFUSED, FINE = int(ErrorCode.POLICY_VIOLATION), 0
SETS = {
    "authorizer.class.name": "barnabas",
    "super.users": f"User:{ADMIN};User:alice",
    "delegation.token.secret.key": "key-secret",
    "barnabas.partitions.max": "5",
    "barnabas.acls.max": "2",
    "barnabas.scram.credentials.max": "2",
    "barnabas.delegation.tokens.max": "3",
    "barnabas.delegation.tokens.of.owner.max": "2",
    "barnabas.client.quotas.max": "2",
    "barnabas.config.resources.max": "2",
}


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[SecureBroker]:
    broker = SecureBroker(tmp_path / "data", SETS)
    yield broker
    broker.close()


@pytest.fixture
def admin(secure: SecureBroker) -> Client:
    return secure.plain(ADMIN, ADMIN_SECRET)


def codes(client: Client, request: Message, version: int) -> set[int]:
    """The error codes of the items of the answer, or of the answer."""
    client.send(request, version)
    client.memory.advance(0)
    (response,) = client.answers()
    for field in response.declared:
        items = getattr(response, field.name)
        if isinstance(items, list) and items and hasattr(items[0], "error_code"):
            return {item.error_code for item in items}
    return {response.error_code}


def create(admin: Client, name: str, partitions: int) -> set[int]:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return codes(admin, CreateTopicsRequest(topics=[topic]), 7)


def test_partitions(admin: Client, caplog) -> None:
    assert create(admin, "a", 6) == {REFUSED}
    assert create(admin, "a", 4) == {FINE}
    assert create(admin, "b", 2) == {REFUSED}
    more = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a", count=6, assignments=None)])
    assert codes(admin, more, 3) == {REFUSED}
    assert "There would be 6 partitions, 5 are allowed (barnabas.partitions.max)" in caplog.text
    assert codes(admin, DeleteTopicsRequest(topics=[DeleteTopicState(name="a")]), 6) == {FINE}
    assert create(admin, "b", 5) == {FINE}


def test_acls(admin: Client) -> None:
    def acl(name: str) -> AclCreation:
        return AclCreation(
            resource_type=2, resource_name=name, resource_pattern_type=3, principal="User:x", host="*", operation=3,
            permission_type=3,
        )  # fmt: skip

    assert codes(admin, CreateAclsRequest(creations=[acl("a"), acl("b"), acl("c")]), 3) == {REFUSED}
    assert codes(admin, CreateAclsRequest(creations=[acl("a"), acl("b")]), 3) == {FINE}
    assert codes(admin, CreateAclsRequest(creations=[acl("a")]), 3) == {FINE}  # is there
    assert codes(admin, CreateAclsRequest(creations=[acl("c")]), 3) == {REFUSED}


def test_scram_credentials(admin: Client) -> None:
    def user(name: str) -> ScramCredentialUpsertion:
        return ScramCredentialUpsertion(
            name=name, mechanism=1, iterations=4096, salt=b"s" * 20, salted_password=b"p" * 32
        )

    def alter(*names: str, gone: tuple[str, ...] = ()) -> set[int]:
        deletions = [ScramCredentialDeletion(name=name, mechanism=1) for name in gone]
        request = AlterUserScramCredentialsRequest(upsertions=[user(name) for name in names], deletions=deletions)
        return codes(admin, request, 0)

    assert alter("a", "b", "c") == {REFUSED}
    assert alter("a", "b") == {FINE}
    assert alter("a") == {FINE}  # another password
    assert alter("c") == {REFUSED}
    assert alter(gone=("a",)) == {FINE}
    assert alter("c") == {FINE}


def test_delegation_tokens(secure: SecureBroker, admin: Client) -> None:
    alice = secure.plain()
    renewers = [CreatableRenewers(principal_type="User", principal_name="bob")]
    request = CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=-1)
    assert codes(alice, request, 3) == codes(alice, request, 3) == {FINE}
    assert codes(alice, request, 3) == {REFUSED}  # of one owner
    assert codes(admin, request, 3) == {FINE}
    assert codes(admin, request, 3) == {REFUSED}  # of all
    tokens = [token for token in secure.broker.image.tokens.values() if token.owner == "User:alice"]
    hmac = token_hmac("key-secret", tokens[0].token_id)
    assert codes(alice, RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=-1), 2) == {FINE}
    assert codes(alice, ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=-1), 2) == {FINE}
    assert codes(alice, request, 3) == {FINE}


def test_client_quotas(admin: Client) -> None:
    def alter(*users: str | None, value: float | None = 1000.0) -> set[int]:
        entries = [alteration({"user": user}, {"producer_byte_rate": value}) for user in users]
        return codes(admin, AlterClientQuotasRequest(entries=entries), 1)

    assert alter("a", "b", None) == {REFUSED}
    assert alter("a", None) == {FINE}
    assert alter("a", value=5.0) == {FINE}
    assert alter("b") == {REFUSED}
    assert alter("a", value=None) == {FINE}
    assert alter("b") == {FINE}


def test_subscriptions_and_groups_with_configs(admin: Client) -> None:
    def alter(kind: int, name: str, value: str | None = "20000") -> set[int]:
        key = "interval.ms" if kind == 16 else "consumer.session.timeout.ms"
        if kind == 32 and value is not None:
            value = "45000"
        config = IncrementalAlterConfigsRequestAlterableConfig(
            name=key, value=value, config_operation=0 if value is not None else 1
        )
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=kind, resource_name=name, configs=[config]
        )
        return codes(admin, IncrementalAlterConfigsRequest(resources=[resource]), 1)

    assert alter(16, "a") == alter(32, "g") == {FINE}
    assert alter(16, "b") == alter(32, "h") == {REFUSED}
    assert alter(16, "a", "30000") == {FINE}
    assert alter(16, "a", None) == {FINE}
    assert alter(32, "h") == {FINE}
