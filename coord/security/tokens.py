"""Delegation tokens: made, renewed and expired by the controller, as records (KIP-48, KIP-373).

A token is an id with an owner and two times: it can be used until it expires, and renewed until its end. Its password
is an HMAC of the id with `delegation.token.secret.key`, so that no record has it, and a node with another key knows no
token. Source: Kafka 4.4 `DelegationTokenControlManager`, `DelegationTokenManager`.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.records.metadata_records import DelegationTokenRecord, RemoveDelegationTokenRecord
from barnabas.wire.messages.security.tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from barnabas.wire.principal import USER_TYPE, KafkaPrincipal
from barnabas.wire.schema import Message

Tokens: TypeAlias = Mapping[str, DelegationTokenRecord]
"""The records by token id."""

FIRST_METADATA_VERSION: Final = 14
"""metadata.version 3.6-IV2, the first with delegation tokens."""
NO_TIMESTAMP: Final = -1


class TokenSettings(NamedTuple):
    """The config keys of delegation tokens."""

    secret: str | None
    """delegation.token.secret.key; None: there are no tokens."""
    max_lifetime_ms: int
    expiry_ms: int

    def __repr__(self) -> str:
        return f"TokenSettings({self.max_lifetime_ms}, {self.expiry_ms})"


class Requester(NamedTuple):
    """The principal and time of a request, and the metadata.version."""

    principal: KafkaPrincipal
    now_ms: int
    metadata_version: int


@lru_cache(maxsize=65536)
def token_hmac(secret: str, token_id: str) -> bytes:
    """The HMAC of a token."""
    return hmac.digest(secret.encode(), token_id.encode(), "sha512")


def token_password(secret: str, token_id: str) -> str:
    """The password with which a token logs in by SCRAM."""
    return b64encode(token_hmac(secret, token_id)).decode()


def principal_of(text: str) -> KafkaPrincipal:
    """The principal of a record's `User:alice`."""
    kind, _, name = text.partition(":")
    return KafkaPrincipal(kind, name)


def is_expired(record: DelegationTokenRecord, now_ms: int) -> bool:
    """Whether a token can no longer be used."""
    return record.max_timestamp < now_ms or record.expiration_timestamp < now_ms


def create_token(
    settings: TokenSettings, request: CreateDelegationTokenRequest, requester: Requester, new_id: Callable[[], str]
) -> tuple[list[Message], CreateDelegationTokenResponse]:
    """A token for the requester, or for the owner that the request names."""
    owner = owner_of(request, requester.principal)
    response = creation_response(owner, requester.principal)
    code = _create_error(settings, request, requester)
    if code:
        response.error_code = int(code)
        return [], response
    assert settings.secret is not None
    lifetime_ms = settings.max_lifetime_ms
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    response.issue_timestamp_ms = requester.now_ms
    response.max_timestamp_ms = requester.now_ms + lifetime_ms
    response.expiry_timestamp_ms = min(response.max_timestamp_ms, requester.now_ms + settings.expiry_ms)
    response.token_id = new_id()
    response.hmac = token_hmac(settings.secret, response.token_id)
    record = DelegationTokenRecord(
        owner=str(owner),
        requester=str(requester.principal),
        renewers=[str(KafkaPrincipal(renewer.principal_type, renewer.principal_name)) for renewer in request.renewers],
        issue_timestamp=response.issue_timestamp_ms,
        max_timestamp=response.max_timestamp_ms,
        expiration_timestamp=response.expiry_timestamp_ms,
        token_id=response.token_id,
    )
    return [record], response


def _create_error(
    settings: TokenSettings, request: CreateDelegationTokenRequest, requester: Requester
) -> ErrorCode | None:
    if settings.secret is None:
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    if requester.metadata_version < FIRST_METADATA_VERSION:
        return ErrorCode.UNSUPPORTED_VERSION
    if any(renewer.principal_type != USER_TYPE for renewer in request.renewers):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return None


def owner_of(request: CreateDelegationTokenRequest, requester: KafkaPrincipal) -> KafkaPrincipal:
    """Whose token is asked for."""
    if request.owner_principal_name:
        return KafkaPrincipal(request.owner_principal_type or "", request.owner_principal_name)
    return requester._replace(is_token_authenticated=False)


def creation_response(owner: KafkaPrincipal, requester: KafkaPrincipal, code: int = 0) -> CreateDelegationTokenResponse:
    """The response without a token."""
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=NO_TIMESTAMP,
        expiry_timestamp_ms=NO_TIMESTAMP,
        max_timestamp_ms=NO_TIMESTAMP,
    )


def renew_token(
    settings: TokenSettings, tokens: Tokens, request: RenewDelegationTokenRequest, requester: Requester
) -> tuple[list[Message], RenewDelegationTokenResponse]:
    """Move the expiry of a token, to its end at most."""
    token = _usable(settings, tokens, bytes(request.hmac), requester)
    if isinstance(token, ErrorCode):
        return [], RenewDelegationTokenResponse(error_code=int(token))
    period_ms = settings.expiry_ms
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    record = _expiring_at(token, requester.now_ms + period_ms)
    return [record], RenewDelegationTokenResponse(expiry_timestamp_ms=record.expiration_timestamp)


def expire_token(
    settings: TokenSettings, tokens: Tokens, request: ExpireDelegationTokenRequest, requester: Requester
) -> tuple[list[Message], ExpireDelegationTokenResponse]:
    """Set the expiry of a token, or remove it for a negative time."""
    token = _usable(settings, tokens, bytes(request.hmac), requester)
    if isinstance(token, ErrorCode):
        return [], ExpireDelegationTokenResponse(error_code=int(token))
    if request.expiry_time_period_ms < 0:
        response = ExpireDelegationTokenResponse(expiry_timestamp_ms=request.expiry_time_period_ms)
        return [RemoveDelegationTokenRecord(token_id=token.token_id)], response
    record = _expiring_at(token, requester.now_ms + request.expiry_time_period_ms)
    return [record], ExpireDelegationTokenResponse(expiry_timestamp_ms=record.expiration_timestamp)


def expired_tokens(tokens: Tokens, now_ms: int) -> list[Message]:
    """The records that remove what has expired."""
    return [RemoveDelegationTokenRecord(token_id=key) for key, token in tokens.items() if is_expired(token, now_ms)]


def _usable(
    settings: TokenSettings, tokens: Tokens, key: bytes, requester: Requester
) -> DelegationTokenRecord | ErrorCode:
    """The token with this HMAC, if the requester may change it."""
    if settings.secret is None:
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    secret = settings.secret
    token = next(
        (record for record in tokens.values() if hmac.compare_digest(token_hmac(secret, record.token_id), key)), None
    )
    if token is None:
        return ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    if is_expired(token, requester.now_ms):
        return ErrorCode.DELEGATION_TOKEN_EXPIRED
    if str(requester.principal) not in {token.owner, *token.renewers}:
        return ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    return token


def _expiring_at(record: DelegationTokenRecord, expires_ms: int) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=record.owner,
        requester=record.requester,
        renewers=list(record.renewers),
        issue_timestamp=record.issue_timestamp,
        max_timestamp=record.max_timestamp,
        expiration_timestamp=min(record.max_timestamp, expires_ms),
        token_id=record.token_id,
    )


def describe_tokens(
    secret: str,
    tokens: Tokens,
    request: DescribeDelegationTokenRequest,
    may_see: Callable[[DelegationTokenRecord], bool],
) -> DescribeDelegationTokenResponse:
    """The tokens that have to do with one of the owners; all of them for null, none for an empty list.

    `may_see` says whether the requester may see a token. Source: Kafka 4.4 `DelegationTokenManager.filterToken`.
    """
    owners = None
    if request.owners is not None:
        owners = {str(KafkaPrincipal(owner.principal_type, owner.principal_name)) for owner in request.owners}
    described = [
        _described(secret, token)
        for token in tokens.values()
        if (owners is None or not owners.isdisjoint({token.owner, token.requester, *token.renewers})) and may_see(token)
    ]
    return DescribeDelegationTokenResponse(tokens=described)


def _described(secret: str, record: DelegationTokenRecord) -> DescribedDelegationToken:
    owner, requester = principal_of(record.owner), principal_of(record.requester)
    renewers = [principal_of(renewer) for renewer in record.renewers]
    return DescribedDelegationToken(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp=record.issue_timestamp,
        expiry_timestamp=record.expiration_timestamp,
        max_timestamp=record.max_timestamp,
        token_id=record.token_id,
        hmac=token_hmac(secret, record.token_id),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=renewer.type, principal_name=renewer.name)
            for renewer in renewers
        ],
    )
