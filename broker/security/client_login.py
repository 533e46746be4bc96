"""The log-ins of this node at other nodes, by PLAIN, SCRAM or OAUTHBEARER (`broker.net.client.login`).

The salted password of SCRAM, which takes a few milliseconds, is computed once for each salt, not for each connection.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from barnabas.coord.security.exchange import InvalidCredentials
from barnabas.coord.security.oauthbearer import OAUTHBEARER
from barnabas.coord.security.plain import PLAIN, plain_token
from barnabas.coord.security.scram import SCRAM_MECHANISMS
from barnabas.coord.security.scram_client import ScramClient
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.config.sasl_logins import Credentials
    from barnabas.broker.net.client.login import Login


def logins(
    credentials: Credentials | None,
    random_bytes: Callable[[int], bytes] = os.urandom,
    tokens: Callable[[str], Callable[[], str]] | None = None,
) -> Callable[[], Login] | None:
    """Return a function that makes the log-in of each connection; None if connections need none.

    `tokens` returns, for a path, a function that returns the current token of that file.
    """
    if credentials is None:
        return None
    if credentials.mechanism == PLAIN:
        return lambda: PlainLogin(credentials.name, credentials.password)
    if credentials.mechanism == OAUTHBEARER:
        assert tokens is not None
        token = tokens(credentials.token_file)
        return lambda: BearerLogin(token())
    mechanism = SCRAM_MECHANISMS[credentials.mechanism]

    @lru_cache(maxsize=16)
    def salted(salt: bytes, iterations: int) -> bytes:
        return mechanism.salted_password(credentials.password, salt, iterations)

    def scram() -> ScramLogin:
        client = ScramClient(mechanism, credentials.name, salted, random_bytes, is_token=credentials.is_token)
        return ScramLogin(mechanism.name, client)

    return scram


class PlainLogin:
    """Name and password."""

    mechanism = PLAIN

    def __init__(self, name: str, password: str) -> None:
        self._token = plain_token(name, password)

    def first(self) -> bytes:
        """Name and password."""
        return self._token

    def step(self, _token: bytes) -> None:
        """There is no second token."""


class BearerLogin:
    """A token; its refusal is acknowledged before the server ends the exchange (RFC 7628)."""

    mechanism = OAUTHBEARER

    def __init__(self, token: str) -> None:
        self._token = token

    def first(self) -> bytes:
        """The token."""
        return f"n,,\x01auth=Bearer {self._token}\x01\x01".encode()

    def step(self, token: bytes) -> bytes | None:
        """The acknowledgement of a refusal; None for an accepted token."""
        return b"\x01" if token else None


class ScramLogin:
    """SCRAM, in which the server proves, too, that it has the credential."""

    def __init__(self, mechanism: str, client: ScramClient) -> None:
        self.mechanism = mechanism
        self._client = client

    def first(self) -> bytes:
        """The client's first message."""
        return self._client.first()

    def step(self, token: bytes) -> bytes | None:
        """The client's last message, then None."""
        try:
            return self._client.step(token)
        except InvalidCredentials as error:
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, str(error)) from error
