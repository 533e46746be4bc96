"""SCRAM (RFC 5802, KIP-84): credentials made from a password, which does not leave the client, and its log-ins."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Final, NamedTuple

from barnabas.coord.security.scram import SCRAM_MECHANISMS
from barnabas.coord.security.scram_client import ScramClient

DEFAULT_ITERATIONS: Final = 4096
MAX_LOGIN_ITERATIONS: Final = 1_000_000
"""A broker that asks for more takes a client's time. Kafka makes no credential above 16,384, others may."""
SALT_BYTES: Final = 32


class Credential(NamedTuple):
    """The values that a broker stores for a password."""

    mechanism: str
    iterations: int
    salt: bytes
    salted_password: bytes


def credential(mechanism: str, password: str, iterations: int, salt: bytes | None = None) -> Credential:
    """A credential with a new salt, or the given one. Passwords are not normalized, as in Kafka's client."""
    used = secrets.token_bytes(SALT_BYTES) if salt is None else salt
    salted = SCRAM_MECHANISMS[mechanism].salted_password(password, used, iterations)
    return Credential(mechanism, iterations, used, salted)


def login(mechanism: str, user: str, password: str, *, is_token: bool = False) -> ScramClient:
    """One log-in."""
    scram = SCRAM_MECHANISMS[mechanism]
    salted = partial(scram.salted_password, password)
    return ScramClient(scram, user, salted, secrets.token_bytes, is_token=is_token, max_iterations=MAX_LOGIN_ITERATIONS)
