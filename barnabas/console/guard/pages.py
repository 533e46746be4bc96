"""The pages of the log-in, and its JSON API.

`POST /api/login` gives a script the token of its session, to be sent as `Authorization: Bearer TOKEN`: no page of
another site can send that, so such requests need no CSRF token.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from barnabas.console.guard.addresses import local_path
from barnabas.console.guard.bodies import RefusedError
from barnabas.console.guard.middleware import LOGIN, LOGOUT
from barnabas.console.resources import Declared

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from barnabas.console.guard.access import Access


@dataclass(frozen=True)
class UserAndPassword:
    """A SASL user of the broker."""

    user: str
    password: str


@dataclass(frozen=True)
class SessionToken:
    """What a script sends as `Authorization: Bearer TOKEN`."""

    token: str


@dataclass(frozen=True)
class SessionView:
    """The session of a request."""

    user: str
    csrf_token: str
    """For the header X-CSRF-Token of a change; requests with a bearer token need none."""
    is_login: bool
    """Whether somebody has logged in."""
    read_only: bool


@dataclass(frozen=True)
class LoggedOut:
    """A session has ended."""

    text: str


class LogInPages:
    """The routes of one console's log-in."""

    def __init__(self, access: Access, render: Callable[[str, dict[str, Any]], str]) -> None:
        """`render` makes the HTML of a template that needs no session."""
        self._access = access
        self._render = render

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route(LOGIN, self._form, methods=["GET"]),
            Route(LOGIN, self._log_in, methods=["POST"]),
            Route(LOGOUT, self._log_out, methods=["POST"]),
            *(Route(f"/api{each.path}", each.function, methods=[each.method]) for each in self.declared()),
        ]

    def declared(self) -> list[Declared]:
        """What the JSON API has of it, for the document of OpenAPI."""
        return [
            Declared("resource", "/session", "The session of the request.", self._session, view_type=SessionView),
            Declared(
                "action",
                LOGIN,
                "Begin a session of a script, where people log in.",
                self._log_in_script,
                input_type=UserAndPassword,
                view_type=SessionToken,
            ),
            Declared("action", LOGOUT, "End the session.", self._log_out_script, view_type=LoggedOut),
        ]

    async def _form(self, request: Request) -> Response:
        there = local_path(request.query_params.get("next", "/"))
        if self._access.everyone is not None:
            return RedirectResponse(there, 303)
        return self._page(there, "", "")

    async def _log_in(self, request: Request) -> Response:
        async with request.form(max_fields=10, max_files=0) as form:
            fields = {name: value for name, value in form.items() if isinstance(value, str)}
        user, there = fields.get("user", ""), local_path(fields.get("next", "/"))
        try:
            session_id = await self._begin(request, user, fields.get("password", ""))
        except RefusedError as error:
            return self._page(there, user, str(error), error.status)
        response = RedirectResponse(there, 303)
        access = self._access
        response.set_cookie(
            access.cookie, session_id, path="/", httponly=True, samesite="strict", secure=access.has_tls
        )
        return response

    async def _log_in_script(self, request: Request) -> Response:
        try:
            fields = json.loads(await request.body())
            user, password = fields["user"], fields["password"]
        except (ValueError, KeyError, TypeError):
            raise RefusedError(400, 'A log-in is {"user": "...", "password": "..."}.') from None
        if not isinstance(user, str) or not isinstance(password, str):
            raise RefusedError(400, "user and password are texts.")
        return JSONResponse(asdict(SessionToken(await self._begin(request, user, password))))

    async def _begin(self, request: Request, user: str, password: str) -> str:
        """The id of a new session; an older one of the same browser ends."""
        login = self._access.login
        if login is None:
            raise RefusedError(404, "Nobody logs in at this console: its broker has no SASL.")
        address = "-" if request.client is None else request.client.host
        session_id, _ = await login.begin(user, password, address)
        self._end(request)
        return session_id

    async def _session(self, request: Request) -> Response:
        session = request.state.session
        read_only = self._access.settings.read_only
        view = SessionView(session.user, session.csrf_token, session.is_login, read_only)
        return JSONResponse(asdict(view))

    async def _log_out(self, request: Request) -> Response:
        self._end(request)
        response = RedirectResponse(LOGIN, 303)
        response.delete_cookie(
            self._access.cookie, path="/", httponly=True, samesite="strict", secure=self._access.has_tls
        )
        return response

    async def _log_out_script(self, request: Request) -> Response:
        self._end(request)
        return JSONResponse(asdict(LoggedOut("logged out")))

    def _end(self, request: Request) -> None:
        session = request.state.session
        if session is not None and session.is_login:
            self._access.sessions.end(session)

    def _page(self, there: str, user: str, why: str, status: int = 200) -> Response:
        values = {"next": there, "user": user, "why": why, "bootstrap": self._access.settings.bootstrap}
        return HTMLResponse(self._render("login.html", values), status)
