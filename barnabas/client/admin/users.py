"""SCRAM credentials of users (KIP-554). Errors: `KafkaError` from the broker, `NotFound`, `TimedOut`, `Unreachable`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.errors import no_such, outcome_for, raise_for
from barnabas.client.security.scram import Credential
from barnabas.coord.security.scram import SCRAM_MECHANISMS
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.security.sasl import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)

MECHANISMS = {scram.id: name for name, scram in SCRAM_MECHANISMS.items()}


class UserCredential(NamedTuple):
    """A credential as the broker describes it: without salt and password."""

    user: str
    mechanism: str
    iterations: int


def list_credentials(cluster: Cluster, users: Sequence[str] | None = None) -> list[UserCredential]:
    """The credentials of all users, or of some of them (`NotFound` if one has none), by name and mechanism."""
    # No users are all users, as in Kafka's own client: Kafka 4.4 never answers a null of a client that may not ask.
    names = [UserName(name=name) for name in users or ()]
    request = DescribeUserScramCredentialsRequest(users=names)

    def attempt(deadline: float) -> list[UserCredential]:
        response = cluster.any_node(deadline).call(request, DescribeUserScramCredentialsResponse, deadline)
        raise_for(response.error_code, "users", response.error_message)
        credentials = []
        for result in response.results:
            if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
                raise no_such("user", result.user)
            raise_for(result.error_code, f"user {result.user!r}", result.error_message)
            credentials += [
                UserCredential(result.user, MECHANISMS.get(info.mechanism, str(info.mechanism)), info.iterations)
                for info in result.credential_infos
            ]
        return sorted(credentials)

    return cluster.retry(attempt)


def set_credential(cluster: Cluster, user: str, credential: Credential) -> None:
    """Add or replace a user's credential of one mechanism."""
    alter_credentials(cluster, user, [credential], [])


def delete_credentials(cluster: Cluster, user: str, mechanisms: Sequence[str]) -> None:
    """Delete a user's credentials of these mechanisms, one after the other: a request may change a user once only."""
    for name in mechanisms:
        alter_credentials(cluster, user, [], [name])


def alter_credentials(cluster: Cluster, user: str, new: Sequence[Credential], deleted: Sequence[str]) -> None:
    """Set and delete credentials of a user in one request; Kafka takes one change of a user."""
    upsertions = [
        ScramCredentialUpsertion(
            name=user,
            mechanism=SCRAM_MECHANISMS[credential.mechanism].id,
            iterations=credential.iterations,
            salt=credential.salt,
            salted_password=credential.salted_password,
        )
        for credential in new
    ]
    deletions = [ScramCredentialDeletion(name=user, mechanism=SCRAM_MECHANISMS[name].id) for name in deleted]
    _alter(cluster, AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions))


def _alter(cluster: Cluster, request: AlterUserScramCredentialsRequest) -> None:
    def attempt(deadline: float) -> None:
        response = cluster.any_node(deadline).call(request, AlterUserScramCredentialsResponse, deadline)
        for result in response.results:
            error = outcome_for(result.error_code, f"user {result.user!r}", result.error_message)
            if error is not None and error.code == ErrorCode.RESOURCE_NOT_FOUND:
                raise no_such("user", result.user, error)
            if error is not None:
                raise error

    cluster.retry(attempt)
