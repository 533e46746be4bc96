"""The pages of the log-in, and its JSON API.

`POST /api/login` gives a script the token of its session, to be sent as `Authorization: Bearer TOKEN`: no page of
another site can send that, so such requests need no CSRF token.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from barnabas.console.guard.addresses import local_path
from barnabas.console.guard.bodies import RefusedError
from barnabas.console.guard.middleware import LOGIN, LOGOUT

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from barnabas.console.guard.access import Access


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
            Route("/api/session", self._session, methods=["GET"]),
            Route("/api/login", self._log_in_script, methods=["POST"]),
            Route("/api/logout", self._log_out_script, methods=["POST"]),
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
        return JSONResponse({"token": await self._begin(request, user, password)})

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
        answer = {
            "user": session.user,
            "csrf_token": session.csrf_token,
            "is_login": session.is_login,
            "read_only": self._access.settings.read_only,
        }
        return JSONResponse(answer)

    async def _log_out(self, request: Request) -> Response:
        self._end(request)
        response = RedirectResponse(LOGIN, 303)
        response.delete_cookie(
            self._access.cookie, path="/", httponly=True, samesite="strict", secure=self._access.has_tls
        )
        return response

    async def _log_out_script(self, request: Request) -> Response:
        self._end(request)
        return JSONResponse({"text": "logged out"})

    def _end(self, request: Request) -> None:
        session = request.state.session
        if session is not None and session.is_login:
            self._access.sessions.end(session)

    def _page(self, there: str, user: str, why: str, status: int = 200) -> Response:
        values = {"next": there, "user": user, "why": why, "bootstrap": self._access.settings.bootstrap}
        return HTMLResponse(self._render("login.html", values), status)
