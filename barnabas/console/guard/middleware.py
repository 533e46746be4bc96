"""The guard: an ASGI middleware around the whole console, which every request passes.

In this order: the headers of the response, `Host`, method, `Origin`, session, body, `--read-only`, CSRF token. A request
that is refused gets one sentence and never reaches the pages. The page finds its session in `request.state.session`.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from barnabas.console.guard.addresses import AllowedHosts, is_same_origin
from barnabas.console.guard.bodies import (
    MAX_BODY_BYTES,
    MAX_LOGIN_BYTES,
    Bodies,
    RefusedError,
    csrf_token_in,
    replayed,
)
from barnabas.console.guard.headers import HSTS, SECURITY_HEADERS
from barnabas.console.guard.sessions import Session, Sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from barnabas.client.security.settings import Security
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

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

audit_logger = logging.getLogger("barnabas.console.audit")


@dataclass(frozen=True)
class Rules:
    """What the guard of one console asks for."""

    hosts: AllowedHosts
    cookie: str
    """The name of the session's cookie: cookies do not know ports, so it has the console's."""
    shared: Session | None = field(repr=False, default=None)
    """The session of everybody on a console without log-in."""
    is_read_only: bool = False
    has_tls: bool = False


def cookie_name(port: int, *, has_tls: bool) -> str:
    """The cookie of the console on a port; over TLS browsers accept it from this host only, and only by HTTPS."""
    return f"__Host-barnabas-{port}" if has_tls else f"barnabas-{port}"


def shared_session(properties: Mapping[str, str], security: Security | None) -> Session:
    """The session of a console without log-in: it acts as the user of its configuration, or as nobody."""
    return Session(None, dict(properties), security, "shared")


class Guard:
    """Refuses what must not reach the pages."""

    def __init__(
        self,
        app: ASGIApp,
        rules: Rules,
        sessions: Sessions,
        *,
        bodies: Bodies | None = None,
        refusal: Callable[[Scope, int, str], Response] | None = None,
    ) -> None:
        """`refusal` makes the page of a refused request; a plain text by default."""
        self._app = app
        self._rules = rules
        self._sessions = sessions
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
        guarded = self._with_headers(scope, send)
        try:
            await self._serve(scope, receive, guarded)
        except RefusedError as error:
            response: Response
            if scope["path"].startswith(API):
                response = JSONResponse({"error": str(error)}, error.status)
            elif error.status == 401 and scope["path"] not in LOGIN_PATHS:
                response = _to_login(scope)
            else:
                response = self._refusal(scope, error.status, str(error))
            await response(scope, receive, guarded)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not self._rules.hosts.allows(host):
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
        session, is_bearer = self._session(headers)
        if session is None and not (path in LOGIN_PATHS or path.startswith(STATIC)):
            raise RefusedError(401, "Log in first.")
        scope.setdefault("state", {})["session"] = session
        if method in READING:
            if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
                raise RefusedError(400, f"A {method} request has no body.")
            await self._app(scope, receive, send)
            return
        if self._rules.is_read_only and path not in SESSION_PATHS:
            raise RefusedError(403, READ_ONLY)
        body = await self._bodies.read(scope, receive, MAX_BODY_BYTES if session is not None else MAX_LOGIN_BYTES)
        try:
            if session is not None and not is_bearer and path not in LOGIN_PATHS:
                await _check_csrf(scope, headers, body, session)
            await self._app(scope, replayed(body, receive), send)
        finally:
            self._bodies.release(body)

    def _session(self, headers: Headers) -> tuple[Session | None, bool]:
        """The session of a request, and whether it is named by a bearer token, which no page of another site has."""
        if self._rules.shared is not None:
            return self._rules.shared, False
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self._sessions.find(token.strip()), True
        session_id = _cookie(headers, self._rules.cookie)
        return (None if session_id is None else self._sessions.find(session_id)), False

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        is_static = scope["path"].startswith(STATIC)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
                if self._rules.has_tls:
                    headers["strict-transport-security"] = HSTS
                if not is_static:
                    headers["cache-control"] = "no-store"
            await send(message)

        return send_with_headers


async def _check_csrf(scope: Scope, headers: Headers, body: bytes, session: Session) -> None:
    token = headers.get(CSRF_HEADER) or await csrf_token_in(scope, headers.get("content-type", ""), body)
    if not session.has_token(token):
        raise RefusedError(
            403,
            "The request has no valid CSRF token, so it was not done: load the page again. Scripts send the token of "
            "GET /api/session in the header X-CSRF-Token.",
        )


def set_cookie(response: Response, rules: Rules, session_id: str) -> None:
    """Give a session's id to the browser, in a cookie that scripts and other sites cannot use."""
    response.set_cookie(rules.cookie, session_id, path="/", httponly=True, samesite="strict", secure=rules.has_tls)


def audit(session: Session | None, address: str, action: str, arguments: Mapping[str, object], outcome: str) -> None:
    """Write the line of a change to the log. `arguments` have no secrets; everything is written as JSON in one line."""
    who = "-" if session is None or session.user is None else session.user
    line = {"user": who, "from": address, "action": action, "arguments": dict(arguments), "outcome": outcome}
    audit_logger.info("%s", json.dumps(line, default=str)[:4000])


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
