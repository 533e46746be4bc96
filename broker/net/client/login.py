"""How a connection to another node authenticates before its first request: a mechanism of SASL and its tokens."""

from __future__ import annotations

from typing import Protocol


class Login(Protocol):
    """The client's side of one authentication."""

    mechanism: str
    """The name of the mechanism."""

    def first(self) -> bytes:
        """The first token."""

    def step(self, token: bytes) -> bytes | None:
        """The answer to a token of the server, None after the last one. KafkaError(SASL_AUTHENTICATION_FAILED)."""
