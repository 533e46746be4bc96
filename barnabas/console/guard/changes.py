"""Whether a request may change something: `--read-only`, and the token against CSRF."""

from __future__ import annotations

import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING

from barnabas.console.failures import Refused

if TYPE_CHECKING:
    from starlette.requests import Request

    from barnabas.console.guard.sessions import Session
    from barnabas.console.settings import Settings

FIELD = "csrf"
HEADER = "x-csrf-token"


def check_change(request: Request, session: Session, settings: Settings, token: str) -> None:
    """Refuse a change that is not allowed. `token` is the form's, or of the header."""
    if settings.read_only:
        raise Refused(HTTPStatus.FORBIDDEN, "this console was started with --read-only: it changes nothing")
    if not secrets.compare_digest((token or request.headers.get(HEADER, "")).encode(), session.csrf_token.encode()):
        raise Refused(
            HTTPStatus.FORBIDDEN, "the request has no valid CSRF token: load the page again and repeat the change"
        )
