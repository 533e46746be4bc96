"""The guard: an ASGI middleware around the whole console, which every request passes.

In this order: the headers of the response, `Host`, method, `Origin`, session, `--read-only`, body, CSRF token. A
request that is refused gets one sentence and never reaches the pages. The page finds its session in
`request.state.session`.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import anyio.to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from barnabas.client.errors import ClientError
from barnabas.console.guard.addresses import is_same_origin
from barnabas.console.guard.bodies import (
    MAX_BODY_BYTES,
    MAX_LOGIN_BYTES,
    Bodies,
    RefusedError,
    csrf_token_in,
    replayed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from barnabas.console.guard.access import Access
    from barnabas.console.guard.sessions import Session

# The console's pages have no inline script or style and load nothing from other origins, so a value that gets into a
# page as markup against all escaping would still not run.
CSP: Final = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
SECURITY_HEADERS: Final[dict[str, str]] = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with no-referrer, browsers send the Origin `null` with the console's own forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
HSTS: Final = "max-age=31536000"
"""Over TLS only."""

READING: Final = frozenset({"GET", "HEAD"})
METHODS: Final = READING | {"POST"}
LOGIN, LOGOUT = "/login", "/logout"
API: Final = "/api/"
LOGIN_PATHS: Final = frozenset({LOGIN, "/api/login"})
SESSION_PATHS: Final = LOGIN_PATHS | {LOGOUT, "/api/logout"}
"""They begin or end a session and change nothing else, so `--read-only` allows them."""
STATIC: Final = "/static/"
CSRF_HEADER: Final = "x-csrf-token"
READ_ONLY: Final = "This console was started with --read-only: nothing can be changed here."

MAX_AUDIT: Final = 4_000
"""Characters of a line in the log."""

logger = logging.getLogger("barnabas.console")
audit_logger = logging.getLogger("barnabas.console.audit")


class Guard:
    """Refuses what must not reach the pages."""

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        *,
        bodies: Bodies | None = None,
        refusal: Callable[[Scope, int, str], Response] | None = None,
    ) -> None:
        """`refusal` makes the page of a refused request; a plain text by default."""
        self._app = app
        self._access = access
        self._bodies = bodies or Bodies()
        self._refusal = refusal or _plain_refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        guarded = _Answer(scope, send, has_tls=self._access.has_tls)
        try:
            await self._serve(scope, receive, guarded)
        except RefusedError as error:
            await self._refused(scope, error)(scope, receive, guarded)
        except Exception:
            logger.exception("%s %s failed", scope["method"], scope["path"])
            if guarded.has_begun:
                raise
            failure = RefusedError(500, "The console failed: its log has the details.")
            await self._refused(scope, failure)(scope, receive, guarded)

    def _refused(self, scope: Scope, error: RefusedError) -> Response:
        if scope["path"].startswith(API):
            return JSONResponse({"error": str(error)}, error.status)
        if error.status == 401 and scope["path"] not in LOGIN_PATHS:
            return _to_login(scope)
        return self._refusal(scope, error.status, str(error))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not self._access.hosts.allows(host):
            raise RefusedError(
                403,
                f"The Host header {host[:80]!r} is not an address of this console (--allow-host adds a name): "
                "a page of another site may have sent you here.",
            )
        method, path = scope["method"], scope["path"]
        if method not in METHODS:
            raise RefusedError(405, f"{method} is not served here; GET reads and POST changes.")
        if method not in READING and not is_same_origin(headers, scope["scheme"], host):
            raise RefusedError(403, "The request comes from a page of another site, so it was not done.")
        if self._access.is_undecided:
            await self._decide()
        session, is_bearer = self._session(headers)
        if session is None and not (path in LOGIN_PATHS or path.startswith(STATIC)):
            raise RefusedError(401, "Log in first.")
        scope.setdefault("state", {})["session"] = session
        if method in READING:
            if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
                raise RefusedError(400, f"A {method} request has no body.")
            await self._app(scope, receive, send)
            return
        if self._access.settings.read_only and path not in SESSION_PATHS:
            raise RefusedError(403, READ_ONLY)
        body = await self._bodies.read(scope, receive, MAX_BODY_BYTES if session is not None else MAX_LOGIN_BYTES)
        try:
            if session is not None and not is_bearer and path not in LOGIN_PATHS:
                await _check_csrf(scope, headers, body, session)
            await self._app(scope, replayed(body, receive), send)
        finally:
            self._bodies.release(body)

    async def _decide(self) -> None:
        try:
            await anyio.to_thread.run_sync(self._access.decide)
        except ClientError as error:
            logger.info("Whether people must log in is not known yet: %s", error)
        except ValueError as error:
            raise RefusedError(503, str(error)) from None

    def _session(self, headers: Headers) -> tuple[Session | None, bool]:
        """The session of a request, and whether it is named by a bearer token, which no page of another site has."""
        if self._access.everyone is not None:
            return self._access.everyone, False
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self._access.sessions.find(token.strip()), True
        session_id = _cookie(headers, self._access.cookie)
        return (None if session_id is None else self._access.sessions.find(session_id)), False


class _Answer:
    """Sends a response with the headers that all have."""

    def __init__(self, scope: Scope, send: Send, *, has_tls: bool) -> None:
        self._send = send
        self._headers = dict(SECURITY_HEADERS)
        if has_tls:
            self._headers["strict-transport-security"] = HSTS
        if not scope["path"].startswith(STATIC):
            self._headers["cache-control"] = "no-store"
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        """Send a message of ASGI."""
        if message["type"] == "http.response.start":
            self.has_begun = True
            MutableHeaders(scope=message).update(self._headers)
        await self._send(message)


async def _check_csrf(scope: Scope, headers: Headers, body: bytes, session: Session) -> None:
    token = headers.get(CSRF_HEADER) or await csrf_token_in(scope, headers.get("content-type", ""), body)
    if not session.has_token(token):
        raise RefusedError(
            403,
            "The request has no valid CSRF token, so it was not done: load the page again. Scripts send the token of "
            "GET /api/session in the header X-CSRF-Token.",
        )


def audit(session: Session, request: Request, arguments: Mapping[str, object], outcome: str) -> None:
    """Write the line of a change to the log, as JSON. `arguments` have no secrets."""
    address = "-" if request.client is None else request.client.host
    action = request.url.path
    line = {"user": session.user, "from": address, "action": action, "arguments": dict(arguments), "outcome": outcome}
    audit_logger.info("%s", json.dumps(line, default=str)[:MAX_AUDIT])


def _cookie(headers: Headers, name: str) -> str | None:
    for line in headers.getlist("cookie"):
        for part in line.split(";"):
            key, _, value = part.strip().partition("=")
            if key == name:
                return value.strip('"')
    return None


def _to_login(scope: Scope) -> Response:
    """Send a person to the log-in, and back afterwards; htmx asks for a part of a page and follows a header."""
    query = scope["query_string"].decode("ascii", "replace")
    there = scope["path"] + (f"?{query}" if query else "") if scope["method"] == "GET" else "/"
    location = f"{LOGIN}?next={quote(there, safe='')}"
    if Headers(scope=scope).get("hx-request") == "true":
        return PlainTextResponse("Log in first.", 401, {"HX-Redirect": LOGIN})
    return RedirectResponse(location, 303)


def _plain_refusal(scope: Scope, status: int, text: str) -> Response:  # noqa: ARG001 - a page may look at the request
    return PlainTextResponse(text, status)
