"""PLAIN: which clients are authenticated, and the errors for the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coord.security.exchange import AuthenticationFailed, InvalidCredentials
from barnabas.coord.security.plain import PlainExchange, plain_token
from tests.support.cases import for_each

USERS = {"alice": "secret", "bob": "geheim"}


def test_a_user_with_the_password_is_let_in() -> None:
    for token in (b"\0alice\0secret", b"alice\0alice\0secret", plain_token("alice", "secret")):
        exchange = PlainExchange(USERS)
        assert exchange.step(token, 0) == b""
        assert exchange.identity is not None
        assert str(exchange.identity.principal) == "User:alice"
        assert exchange.identity.expires_ms is None


@for_each(
    ("token", "text"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0mallory\0secret", "Authentication failed: Invalid username or password"),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (
            b"bob\0alice\0secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
    ],
)
def test_others_are_told_why_not(token: bytes, text: str) -> None:
    exchange = PlainExchange(USERS)
    with pytest.raises(AuthenticationFailed, match=f"^{text}$"):
        exchange.step(token, 0)
    assert exchange.identity is None


@given(st.binary(max_size=100))
def test_no_other_token_is_let_in(token: bytes) -> None:
    exchange = PlainExchange(USERS)
    with pytest.raises((AuthenticationFailed, InvalidCredentials)):
        exchange.step(token, 0)
    assert exchange.identity is None
