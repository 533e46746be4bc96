"""Delegation tokens (KIP-48). Errors: `KafkaError` from the broker, `NotFound`, `TimedOut`, `Unreachable`.

A broker serves them only to clients that have logged in without a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.errors import no_such, raise_for
from barnabas.wire.errors import ErrorCode
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
from barnabas.wire.schema import Message

UNLIMITED: Final = -1
"""As long as the broker allows."""
NOW: Final = -1
"""A period of `expire_token`."""
HINTS: Final = {
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "the broker has no delegation.token.secret.key",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "it needs a login over TLS or SASL, without a token",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "only the owner and the renewers may do that",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "an ACL for DELEGATION_TOKEN or USER is missing",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "it has expired",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "there is no such token",
}


class Token(NamedTuple):
    """A token. A client with its id and HMAC may act as the owner. Times are in ms."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued: int
    expiry: int
    max_time: int
    hmac: bytes

    def __repr__(self) -> str:
        return f"<Token {self.token_id} of {self.owner}>"


def create_token(
    cluster: Cluster, *, owner: str | None = None, renewers: Sequence[str] = (), max_lifetime_ms: int = UNLIMITED
) -> Token:
    """Create a token; its owner is the client's principal, or `owner`. Principals are `User:alice`."""
    named = [_principal(renewer) for renewer in renewers]
    owner_type, owner_name = (None, None) if owner is None else _principal(owner)
    request = CreateDelegationTokenRequest(
        owner_principal_type=owner_type,
        owner_principal_name=owner_name,
        renewers=[CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in named],
        max_lifetime_ms=max_lifetime_ms,
    )

    def attempt(deadline: float) -> Token:
        response = cluster.any_node(deadline).call(request, CreateDelegationTokenResponse, deadline)
        _check(response.error_code, "a new token")
        return Token(
            response.token_id,
            f"{response.principal_type}:{response.principal_name}",
            f"{response.token_requester_principal_type}:{response.token_requester_principal_name}",
            tuple(renewers),
            response.issue_timestamp_ms,
            response.expiry_timestamp_ms,
            response.max_timestamp_ms,
            bytes(response.hmac),
        )

    return cluster.retry(attempt)


def list_tokens(cluster: Cluster, owners: Sequence[str] | None = None) -> list[Token]:
    """The tokens that the client may see, of all owners or of some, by the time of their issue."""
    principals = None
    if owners is not None:
        named = [_principal(owner) for owner in owners]
        principals = [DescribeDelegationTokenOwner(principal_type=kind, principal_name=name) for kind, name in named]
    request = DescribeDelegationTokenRequest(owners=principals)

    def attempt(deadline: float) -> list[Token]:
        response = cluster.any_node(deadline).call(request, DescribeDelegationTokenResponse, deadline)
        _check(response.error_code, "tokens")
        tokens = [
            Token(
                token.token_id,
                f"{token.principal_type}:{token.principal_name}",
                f"{token.token_requester_principal_type}:{token.token_requester_principal_name}",
                tuple(f"{renewer.principal_type}:{renewer.principal_name}" for renewer in token.renewers),
                token.issue_timestamp,
                token.expiry_timestamp,
                token.max_timestamp,
                bytes(token.hmac),
            )
            for token in response.tokens
        ]
        return sorted(tokens, key=lambda token: (token.issued, token.token_id))

    return cluster.retry(attempt)


def find_token(cluster: Cluster, token_id: str) -> Token:
    """A token by its id; `NotFound` if there is none that the client may see."""
    for token in list_tokens(cluster):
        if token.token_id == token_id:
            return token
    raise no_such("token", token_id)


def renew_token(cluster: Cluster, hmac: bytes, period_ms: int) -> int:
    """Set a token's expiry to a period from now, -1 for the broker's period; return the time of expiry in ms."""
    request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
    return _new_expiry(cluster, request, RenewDelegationTokenResponse)


def expire_token(cluster: Cluster, hmac: bytes, period_ms: int = NOW) -> int:
    """Let a token expire after a period from now, or NOW; the time of its expiry in ms."""
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    return _new_expiry(cluster, request, ExpireDelegationTokenResponse)


def _new_expiry(
    cluster: Cluster,
    request: Message,
    response: type[RenewDelegationTokenResponse] | type[ExpireDelegationTokenResponse],
) -> int:
    def attempt(deadline: float) -> int:
        reply = cluster.any_node(deadline).call(request, response, deadline)
        _check(reply.error_code, "the token")
        return reply.expiry_timestamp_ms

    return cluster.retry(attempt)


def _check(code: int, about: str) -> None:
    hint = HINTS.get(ErrorCode(code)) if code in ErrorCode._value2member_map_ else None
    raise_for(code, about, hint=hint)


def _principal(text: str) -> tuple[str, str]:
    kind, _, name = text.partition(":")
    return kind, name
