"""The session of a request: who asks, and with which security the console connects for them."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import Request

    from barnabas.client.security.settings import Security
    from barnabas.console.settings import Settings


@dataclass
class Session:
    """Someone who uses the console."""

    user: str
    """The SASL user, or `anonymous`."""
    security: Security | None
    csrf_token: str = field(default_factory=lambda: secrets.token_urlsafe(24))


class Sessions:
    """The sessions of one console: without log-in it is one, with the security of the console itself."""

    def __init__(self, settings: Settings) -> None:
        self._everyone = Session("anonymous", settings.security)

    def of(self, request: Request) -> Session:  # noqa: ARG002 - the log-in decides by the cookie
        """The session of a request."""
        return self._everyone
