"""AlterUserScramCredentials (51) and DescribeUserScramCredentials (50): the credentials of users, as records (KIP-554).

A request has the salted password, of which only the two keys are kept. Each user has a result of its own; a user that a
request names twice is not changed. Source: Kafka 4.4 `ScramControlManager`, `ScramImage`.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from typing import Final, TypeAlias

from barnabas.coord.security.scram import MAX_ITERATIONS, SCRAM_BY_ID, SCRAM_MECHANISMS
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.records.metadata_records import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from barnabas.wire.messages.security.sasl import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.wire.schema import Message
from barnabas.wire.steps import result_of

Credentials: TypeAlias = Mapping[tuple[str, int], UserScramCredentialRecord]
"""The records by user and id of the mechanism."""

SALT_BYTES: Final = 32
"""The length of the salts that are made here."""
FIRST_METADATA_VERSION: Final = 11
"""metadata.version 3.5-IV2, the first with SCRAM."""


def alter_credentials(
    credentials: Credentials, request: AlterUserScramCredentialsRequest, metadata_version: int
) -> tuple[list[Message], AlterUserScramCredentialsResponse]:
    """The records of a request, and its response."""
    return result_of(alter_credentials_in_steps(credentials, request, metadata_version))


def alter_credentials_in_steps(
    credentials: Credentials, request: AlterUserScramCredentialsRequest, metadata_version: int
) -> Generator[None, None, tuple[list[Message], AlterUserScramCredentialsResponse]]:
    """`alter_credentials`; yields after each change, which takes some hashes. The image must not change meanwhile."""
    named = Counter(change.name for change in _changes(request))
    records: list[Message] = []
    errors: dict[str, KafkaError] = {}
    for change in _changes(request):
        if change.name in errors:
            continue
        try:
            if metadata_version < FIRST_METADATA_VERSION:
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")
            record = _record(credentials, change)
            if named[change.name] > 1:
                raise KafkaError(
                    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
                )
            records.append(record)
        except KafkaError as error:
            errors[change.name] = error
        yield
    changed = [AlterUserScramCredentialsResult(user=name, error_message=None) for name in named if name not in errors]
    return records, AlterUserScramCredentialsResponse(results=changed + [_failed(*error) for error in errors.items()])


def password_records(
    credentials: Credentials,
    mechanism: str,
    passwords: Mapping[str, str],
    metadata_version: int,
    random_bytes: Callable[[int], bytes],
) -> list[Message]:
    """The records that give users these passwords; none for a user that has it. KafkaError if that is not possible."""
    scram = SCRAM_MECHANISMS[mechanism]
    upsertions = []
    for name, password in passwords.items():
        old = credentials.get((name, scram.id))
        if old is not None:
            salted = scram.salted_password(password, bytes(old.salt), old.iterations)
            if hmac.compare_digest(scram.stored_key(salted), bytes(old.stored_key)):
                continue
        salt = random_bytes(SALT_BYTES)
        upsertions.append(
            ScramCredentialUpsertion(
                name=name,
                mechanism=scram.id,
                iterations=scram.min_iterations,
                salt=salt,
                salted_password=scram.salted_password(password, salt, scram.min_iterations),
            )
        )
    records, response = alter_credentials(
        credentials, AlterUserScramCredentialsRequest(upsertions=upsertions), metadata_version
    )
    for result in response.results:
        if result.error_code:
            raise KafkaError(ErrorCode(result.error_code), result.error_message)
    return records


def failed_description(
    request: DescribeUserScramCredentialsRequest, error: KafkaError
) -> DescribeUserScramCredentialsResponse:
    """The response with an error for the request and, as in Kafka, a result without a name for each named user."""
    code, message = int(error.code), error.message
    results = [
        DescribeUserScramCredentialsResult(user="", error_code=code, error_message=message) for _ in request.users or ()
    ]
    return DescribeUserScramCredentialsResponse(results=results, error_code=code, error_message=message)


def failed_alteration(
    request: AlterUserScramCredentialsRequest, error: KafkaError
) -> AlterUserScramCredentialsResponse:
    """The response for an error of the whole request."""
    names = dict.fromkeys(change.name for change in _changes(request))
    return AlterUserScramCredentialsResponse(results=[_failed(name, error) for name in names])


MOST_SHOWN: Final = 1000
"""Characters of a name in the text of an error, which has to fit into a string."""


def describe_credentials(
    credentials: Credentials, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """The mechanisms and iterations of the users that are asked for, or of all."""
    by_user: dict[str, list[CredentialInfo]] = {}
    for (name, mechanism), record in sorted(credentials.items()):
        infos = by_user.setdefault(name, [])
        infos.append(CredentialInfo(mechanism=mechanism, iterations=record.iterations))
    names = Counter(user.name for user in request.users) if request.users else Counter(by_user.keys())
    results = []
    for name, times in names.items():
        result = DescribeUserScramCredentialsResult(user=name, error_message="")
        if times > 1:
            result.error_code = int(ErrorCode.DUPLICATE_RESOURCE)
            result.error_message = (
                f"Cannot describe SCRAM credentials for the same user twice in a single request: {name[:MOST_SHOWN]}"
            )
        elif name in by_user:
            result.credential_infos = by_user[name]
        else:
            result.error_code = int(ErrorCode.RESOURCE_NOT_FOUND)
            result.error_message = f"Attempt to describe a user credential that does not exist: {name[:MOST_SHOWN]}"
        results.append(result)
    return DescribeUserScramCredentialsResponse(error_message="", results=results)


def _changes(request: AlterUserScramCredentialsRequest) -> list[ScramCredentialDeletion | ScramCredentialUpsertion]:
    return [*request.deletions, *request.upsertions]


def _record(credentials: Credentials, change: ScramCredentialDeletion | ScramCredentialUpsertion) -> Message:
    """The record of one change; KafkaError if it is not possible."""
    if not change.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    mechanism = SCRAM_BY_ID.get(change.mechanism)
    if mechanism is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramCredentialDeletion):
        if (change.name, change.mechanism) not in credentials:
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    if change.iterations < mechanism.min_iterations:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > MAX_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    salted = bytes(change.salted_password)
    if not salted:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Empty salted password")
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=bytes(change.salt),
        stored_key=mechanism.stored_key(salted),
        server_key=mechanism.server_key(salted),
        iterations=change.iterations,
    )


def _failed(name: str, error: KafkaError) -> AlterUserScramCredentialsResult:
    return AlterUserScramCredentialsResult(user=name, error_code=int(error.code), error_message=error.message)
