"""Delegation tokens (KIP-48): list, create, renew, expire; the client configuration of one."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Annotated

import msgspec

from barnabas.client.admin.tokens import NOW, UNLIMITED, Token, create_token, expire_token, find_token, list_tokens
from barnabas.client.admin.tokens import renew_token as renew
from barnabas.client.cluster import Cluster
from barnabas.client.security.jaas import login_line
from barnabas.console.console import Call
from barnabas.console.pages import part
from barnabas.console.resources import Done, action, resource
from barnabas.console.screens.access.secured import advice, principal
from barnabas.console.tables import Page, TableQuery, paged
from barnabas.wire.errors import ErrorCode, KafkaError

NOT_HERE = (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
"""Errors of a broker or a connection that has no tokens."""
COLUMNS = ("token_id", "owner", "issued_ms", "expiry_ms", "max_ms")


@dataclass(frozen=True)
class TokenRow:
    """A token without its secret. Times are in ms since 1970."""

    token_id: str
    owner: str
    requester: str
    renewers: list[str]
    issued_ms: int
    expiry_ms: int
    max_ms: int


@dataclass(frozen=True)
class Tokens:
    """The tokens that the user may see."""

    tokens: Page[TokenRow]
    why: str
    """Why there are none here."""
    advice: str
    """How to get security, on a broker that is not secured."""


@resource("/tokens", template="access/tokens.html", summary="The delegation tokens that the user may see.")
def list_of_tokens(cluster: Cluster, call: Call, query: TableQuery) -> Tokens:
    """A broker without them says how to get them."""
    why = ""
    rows: list[TokenRow] = []
    try:
        rows = [_row(token) for token in list_tokens(cluster)]
    except KafkaError as error:
        if error.code not in NOT_HERE:
            raise
        why = f"{error}: tokens need delegation.token.secret.key in the broker, and a log-in with SASL or TLS."
    page = paged(rows, query, columns=COLUMNS, search=lambda row: f"{row.token_id} {row.owner}", sort="issued_ms")
    return Tokens(page, why, advice(call))


def _row(token: Token) -> TokenRow:
    return TokenRow(
        token.token_id,
        token.owner,
        token.requester,
        list(token.renewers),
        token.issued,
        token.expiry,
        token.max_time,
    )


@dataclass(frozen=True)
class TokenQuery:
    """Which token."""

    token_id: str


@dataclass(frozen=True)
class TokenView:
    """A token with its secret, with which a client acts as its owner."""

    token: TokenRow
    hmac: str
    """Base64; the password of the log-in."""
    jaas: str
    """The value of `sasl.jaas.config`."""


@resource("/tokens/{token_id}", template="access/token.html", summary="One token, with its secret.")
def one_token(cluster: Cluster, query: TokenQuery) -> TokenView:
    """The broker tells the secret to those who may use it."""
    token = find_token(cluster, query.token_id)
    hmac = b64encode(token.hmac).decode()
    return TokenView(_row(token), hmac, login_line("SCRAM-SHA-512", token.token_id, hmac, is_token=True))


@dataclass(frozen=True)
class CreateToken:
    """A new token."""

    owner: str = ""
    """Empty: the user itself."""
    renewers: str = ""
    """Users, separated by commas."""
    max_hours: Annotated[float, msgspec.Meta(ge=0)] = 0
    """How long it can be renewed; 0: as long as the broker allows."""


@action("/create-token", summary="Create a delegation token.")
def new_token(cluster: Cluster, form: CreateToken) -> Done:
    """Its secret is on its page."""
    token = create_token(
        cluster,
        owner=principal(form.owner) if form.owner else None,
        renewers=[principal(name.strip()) for name in form.renewers.split(",") if name.strip()],
        max_lifetime_ms=int(form.max_hours * 3_600_000) or UNLIMITED,
    )
    return Done(f"created token {token.token_id} of {token.owner}", f"/tokens/{part(token.token_id)}")


@dataclass(frozen=True)
class ChangeToken:
    """A token, and a period from now."""

    token_id: str
    hours: Annotated[float, msgspec.Meta(ge=0)] = 0
    """0: the broker's period to renew, now to expire."""


@action("/tokens/{token_id}/renew", summary="Renew a token.")
def renew_token(cluster: Cluster, form: ChangeToken) -> Done:
    """For its owner and its renewers."""
    token = find_token(cluster, form.token_id)
    renew(cluster, token.hmac, int(form.hours * 3_600_000) or UNLIMITED)
    return Done(f"renewed token {form.token_id}", f"/tokens/{part(form.token_id)}")


@action("/tokens/{token_id}/expire", summary="Let a token expire, now or after a time.")
def end_token(cluster: Cluster, form: ChangeToken) -> Done:
    """An expired token is removed by the broker."""
    token = find_token(cluster, form.token_id)
    expire_token(cluster, token.hmac, int(form.hours * 3_600_000) or NOW)
    return Done(f"expired token {form.token_id}", "/tokens")
