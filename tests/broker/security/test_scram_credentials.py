"""AlterUserScramCredentials (51) and DescribeUserScramCredentials (50): every error of Apache Kafka 4.4.0."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.coord.security.scram import SCRAM_SHA_256
from barnabas.coord.security.scram_changes import alter_credentials, failed_alteration, failed_description
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.security.sasl import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)
from tests.support.cases import for_each
from tests.support.memory.broker import MemoryBroker


def upsertion(
    name: str = "alice", mechanism: int = 1, iterations: int = 4096, salted: bytes = b"x"
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted
    )


def deletion(name: str = "alice", mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(
    memory: MemoryBroker, *changes: ScramCredentialDeletion | ScramCredentialUpsertion
) -> dict[str, tuple[int, str | None]]:
    request = AlterUserScramCredentialsRequest(
        deletions=[item for item in changes if isinstance(item, ScramCredentialDeletion)],
        upsertions=[item for item in changes if isinstance(item, ScramCredentialUpsertion)],
    )
    response = memory.client().ask(request, 0, AlterUserScramCredentialsResponse)
    assert len({item.user for item in response.results}) == len(response.results)
    return {item.user: (item.error_code, item.error_message) for item in response.results}


def describe(memory: MemoryBroker, *users: str) -> dict[str, tuple[int, str | None, list[tuple[int, int]]]]:
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in users] or None)
    response = memory.client().ask(request, 0, DescribeUserScramCredentialsResponse)
    assert response.error_code == 0
    return {
        result.user: (
            result.error_code,
            result.error_message,
            [(info.mechanism, info.iterations) for info in result.credential_infos],
        )
        for result in response.results
    }


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[MemoryBroker]:
    broker = MemoryBroker(tmp_path / "again")
    yield broker
    broker.close()


def test_credentials_are_kept_over_a_restart_and_described_without_secrets(tmp_path: Path) -> None:
    first = MemoryBroker(tmp_path / "data")
    assert alter(first, upsertion("alice"), upsertion("bob", 2, 8192)) == {"alice": (0, None), "bob": (0, None)}
    assert alter(first, upsertion("alice", 2, 5000)) == {"alice": (0, None)}
    first.close()
    second = MemoryBroker(tmp_path / "data")
    expected = {"alice": (0, "", [(1, 4096), (2, 5000)]), "bob": (0, "", [(2, 8192)])}
    assert describe(second) == expected
    record = second.broker.image.scram["alice", 1]
    assert bytes(record.stored_key) == SCRAM_SHA_256.stored_key(b"x")
    assert bytes(record.server_key) == SCRAM_SHA_256.server_key(b"x")
    assert bytes(record.salt) == b"salt"
    second.close()


def test_a_deletion(memory: MemoryBroker) -> None:
    alter(memory, upsertion("alice"))
    assert alter(memory, deletion("alice")) == {"alice": (0, None)}
    assert describe(memory) == {}
    assert memory.broker.image.scram == {}


@for_each(
    ("change", "code", "text"),
    [
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (deletion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (upsertion(mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (deletion(mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion(iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (upsertion(iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (upsertion(salted=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Empty salted password"),
        (deletion(), ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"),
    ],
)
def test_each_user_is_refused_for_himself(memory: MemoryBroker, change, code: ErrorCode, text: str) -> None:
    results = alter(memory, change, upsertion("bob"))
    assert results == {change.name: (code, text), "bob": (0, None)}
    assert set(memory.broker.image.scram) == {("bob", 1)}


@pytest.mark.parametrize(
    "changes", [(upsertion(), upsertion(mechanism=2)), (deletion(), upsertion()), (deletion(), deletion(), deletion())]
)
def test_a_user_who_is_named_twice_is_not_changed(memory: MemoryBroker, changes) -> None:
    alter(memory, upsertion())
    twice = (ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
    assert alter(memory, *changes) == {"alice": twice}
    assert describe(memory) == {"alice": (0, "", [(1, 4096)])}


def test_descriptions_of_users(memory: MemoryBroker) -> None:
    alter(memory, upsertion("alice"), upsertion("bob"))
    users = describe(memory, "alice", "mallory", "bob", "bob")
    assert users["alice"] == (0, "", [(1, 4096)])
    text = "Attempt to describe a user credential that does not exist: mallory"
    assert users["mallory"] == (ErrorCode.RESOURCE_NOT_FOUND, text, [])
    text = "Cannot describe SCRAM credentials for the same user twice in a single request: bob"
    assert users["bob"] == (ErrorCode.DUPLICATE_RESOURCE, text, [])


def test_an_old_metadata_version_has_no_credentials() -> None:
    records, response = alter_credentials({}, AlterUserScramCredentialsRequest(upsertions=[upsertion()]), 10)
    assert records == []
    assert [result.error_code for result in response.results] == [ErrorCode.UNSUPPORTED_VERSION]


def test_an_error_of_the_controller_is_that_of_each_user() -> None:
    request = AlterUserScramCredentialsRequest(deletions=[deletion()], upsertions=[upsertion("bob")])
    response = failed_alteration(request, KafkaError(ErrorCode.NOT_CONTROLLER))
    assert [(result.user, result.error_code) for result in response.results] == [("alice", 41), ("bob", 41)]


def test_a_refused_description_has_a_result_for_each_user() -> None:
    refusal = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no")
    for names in (["alice", "bob"], []):
        request = DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names] or None)
        response = failed_description(request, refusal)
        assert (response.error_code, response.error_message) == (refusal.code, "no")
        assert [(result.user, result.error_code, result.error_message) for result in response.results] == [
            ("", refusal.code, "no") for _ in names
        ]


def test_the_longest_name_fits_into_an_error(tmp_path: Path) -> None:
    memory = MemoryBroker(tmp_path)
    longest = "u" * 32_767
    (code, text, _) = describe(memory, longest)[longest]
    assert code == ErrorCode.RESOURCE_NOT_FOUND
    assert text is not None
    assert text.endswith(f"does not exist: {'u' * 1000}")
    assert describe(memory, longest, longest)[longest][0] == ErrorCode.DUPLICATE_RESOURCE
    memory.close()
