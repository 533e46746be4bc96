"""Endpoints of Starlette from declarations (`resources.py`): the page, the JSON answer, the events.

Functions run in one of `THREADS` threads. A request's path is matched as it was sent, percent-encoded, so that a name
may contain a slash; the parts are decoded afterwards (`app.py` sets it).
"""

from __future__ import annotations

import base64
from contextlib import contextmanager
from dataclasses import fields
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import anyio
from anyio import to_thread
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from barnabas.client.errors import AuthenticationFailed
from barnabas.console.console import Call
from barnabas.console.events import FULL, Streams
from barnabas.console.failures import Refused, answer
from barnabas.console.guard.bodies import MAX_BODY_BYTES, RefusedError
from barnabas.console.guard.middleware import audit
from barnabas.console.screens.api import entries
from barnabas.console.values import from_json, from_texts, to_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from starlette.requests import Request

    from barnabas.console.console import Console
    from barnabas.console.pages import Pages
    from barnabas.console.resources import Declared, Done, Download

THREADS = 16
DOWNLOADS_MAX = 8
FLASH = "barnabas-done"
"""The cookie with the sentence of the last action, for the next page."""


class Serving:
    """The endpoints of one console."""

    def __init__(self, console: Console, pages: Pages, declared: Sequence[Declared]) -> None:
        self._api_entries = entries(declared)
        self._console = console
        self._pages = pages
        self._streams = Streams()
        self._threads: anyio.CapacityLimiter | None = None
        self._downloads = 0

    def routes(self, declared: Declared) -> list[Route]:
        """The routes of one declaration."""
        methods = [declared.method]
        endpoints = {
            "resource": self._resource,
            "action": self._action,
            "stream": self._stream,
            "download": self._download,
        }
        endpoint = endpoints[declared.kind]

        async def page(request: Request) -> Response:
            return await self._answered(request, declared, endpoint, is_api=False)

        async def api(request: Request) -> Response:
            return await self._answered(request, declared, endpoint, is_api=True)

        routes = [Route("/api" + declared.path, api, methods=methods)]
        if declared.template is not None or declared.kind != "resource":
            routes.append(Route(declared.path, page, methods=methods))
        return routes

    async def api_page(self, request: Request) -> Response:
        """The JSON API as a page."""
        call = self._call(request)
        values = {"entries": self._api_entries, "flash": None}
        return HTMLResponse(self._pages.render("api/api.html", call, "/api", values))

    def failure(self, request: Request, error: Exception) -> Response:
        """The response to a failed request: JSON, a part of a page, or a page."""
        status, text = answer(error)
        if request.url.path.startswith("/api/"):
            return _json({"error": text}, status)
        call = self._call(request)
        template = "_failure.html" if "hx-request" in request.headers else "failure.html"
        html = self._pages.render(template, call, _path(request), {"status": status, "text": text, "flash": None})
        return HTMLResponse(html, status)

    def _call(self, request: Request, *, is_page: bool = True) -> Call:
        origin = str(request.base_url).rstrip("/")
        return Call(self._console, self._console.sessions.of(request), origin, is_page)

    # --- endpoints

    async def _answered(self, request: Request, declared: Declared, endpoint: Any, *, is_api: bool) -> Response:
        call = self._call(request, is_page=not is_api)
        try:
            response: Response = await endpoint(request, declared, call, is_api=is_api)
        except (ClientDisconnect, RefusedError):
            raise
        except AuthenticationFailed as error:
            if call.session.is_login:  # the password was changed, or the user deleted
                self._console.sessions.end(call.session)
                raise RefusedError(401, "Log in again: the broker does not accept the password any more.") from None
            response = self.failure(request, error)
        except Exception as error:
            response = self.failure(request, error)
        return response

    async def _resource(self, request: Request, declared: Declared, call: Call, *, is_api: bool) -> Response:
        query = _query(declared, request)
        if declared.ends_with_client:
            async with anyio.create_task_group() as watching:
                watching.start_soon(_watch, request, call)
                view = await self._thread(_outcome, self._function, declared, call, query)
                watching.cancel_scope.cancel()
            if isinstance(view, Exception):
                raise view
        else:
            view = await self._run(declared, call, query)
        if is_api or declared.template is None:
            return _json(view)
        done = _flash_text(request)
        values = {"view": view, "query": query, "flash": done}
        response = HTMLResponse(self._pages.render(declared.template, call, _path(request), values))
        if done is not None:
            response.delete_cookie(FLASH, path="/", httponly=True, samesite="strict")
        return response

    async def _action(self, request: Request, declared: Declared, call: Call, *, is_api: bool) -> Response:
        form = await self._form(request, declared, is_api=is_api)
        arguments = _shown(form, declared.secrets)
        try:
            done: Done = await self._run(declared, call, form)
        except Exception as error:
            audit(call.session, request, arguments, f"failed: {answer(error).text}")
            raise
        audit(call.session, request, arguments, done.text)
        if is_api:
            return _json(done)
        if "hx-request" in request.headers:
            response = Response(headers={"HX-Redirect": done.location})
        else:
            response = RedirectResponse(done.location, HTTPStatus.SEE_OTHER)
        text = base64.urlsafe_b64encode(done.text.encode()).decode()[:3000]
        response.set_cookie(FLASH, text, max_age=60, httponly=True, samesite="strict")
        return response

    async def _stream(self, request: Request, declared: Declared, call: Call, *, is_api: bool) -> Response:  # noqa: ARG002
        query = _query(declared, request)
        if self._streams.is_full:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, FULL)
        steps = self._steps(declared, call, query)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self._streams.body(request, steps), media_type="text/event-stream", headers=headers)

    async def _download(self, request: Request, declared: Declared, call: Call, *, is_api: bool) -> Response:  # noqa: ARG002
        query = _query(declared, request)
        if self._downloads >= DOWNLOADS_MAX:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too many downloads are running: wait until one has ended")
        pieces = self._steps(declared, call, query)
        self._downloads += 1  # many at a time are no way around the limit
        try:
            described: Download = await self._thread(next, pieces)
            first = await self._thread(next, pieces, b"")
        finally:
            self._downloads -= 1
        headers = {
            "cache-control": "no-store",
            "content-disposition": f"attachment; filename*=UTF-8''{quote(described.filename, safe='')}",
        }
        body = self._pieces(first, pieces)
        return StreamingResponse(body, media_type=described.media_type, headers=headers)

    async def _pieces(self, first: bytes, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
        """The bytes of a download. The generator's end, also by a client that is gone, gives the cluster back."""
        self._downloads += 1
        try:
            piece: bytes | None = first
            while piece is not None:
                if piece:
                    yield piece
                piece = await self._thread(next, pieces, None)
        finally:
            self._downloads -= 1
            with anyio.CancelScope(shield=True):
                await self._thread(pieces.close)  # type: ignore[attr-defined]

    async def _thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function in one of the threads."""
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(THREADS)
        return await to_thread.run_sync(function, *arguments, limiter=self._threads)

    # --- the functions

    async def _form(self, request: Request, declared: Declared, *, is_api: bool) -> Any:
        """The form of an action; the guard has read the body and checked the CSRF token."""
        assert declared.input_type is not None
        if is_api:
            return from_json(declared.input_type, await request.body(), _path_texts(request))
        async with request.form(max_fields=10_000, max_files=10, max_part_size=MAX_BODY_BYTES) as form:
            texts = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
        return from_texts(declared.input_type, texts, _path_texts(request))

    async def _run(self, declared: Declared, call: Call, given: Any) -> Any:
        return await self._thread(self._function, declared, call, given)

    def _function(self, declared: Declared, call: Call, given: Any) -> Any:
        with self._arguments(declared, call, given) as arguments:
            return declared.function(**arguments)

    def _steps(self, declared: Declared, call: Call, given: Any) -> Iterator[Any]:
        with self._arguments(declared, call, given) as arguments:
            yield from declared.function(**arguments)

    @contextmanager
    def _arguments(self, declared: Declared, call: Call, given: Any) -> Iterator[dict[str, Any]]:
        arguments = {"query": given, "form": given, "call": call}
        chosen = {name: value for name, value in arguments.items() if name in declared.parameters}
        if not declared.needs_cluster:
            yield chosen
            return
        session = call.session
        with self._console.clusters.borrow(session.key, session.security, declared.timeout_s) as cluster:
            yield chosen | {"cluster": cluster}


async def _watch(request: Request, call: Call) -> None:
    """Say that the client is gone, when it is."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    call.is_gone.set()


def _outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns, or its error: a group of tasks would wrap that."""
    try:
        return function(*arguments)
    except Exception as error:
        return error


def _query(declared: Declared, request: Request) -> Any:
    if declared.input_type is None:
        return None
    return from_texts(declared.input_type, request.query_params.multi_items(), _path_texts(request))


def _path_texts(request: Request) -> dict[str, str]:
    return {name: unquote(text) for name, text in request.path_params.items()}


def _path(request: Request) -> str:
    """The path as it was sent."""
    return str(request.scope["path"])


def _shown(form: Any, secrets: tuple[str, ...]) -> dict[str, Any]:
    """The arguments of an action for the log."""
    return {
        field.name: "[hidden]" if field.name in secrets else _cut(getattr(form, field.name)) for field in fields(form)
    }


def _cut(value: Any) -> Any:
    text = repr(value)
    return value if len(text) <= 200 else f"{text[:200]}… ({len(text)} characters)"


def _flash_text(request: Request) -> str | None:
    text = request.cookies.get(FLASH)
    try:
        return base64.urlsafe_b64decode(text).decode() if text else None
    except ValueError:  # a cookie that is not ours
        return None


def _json(value: object, status: int = 200) -> Response:
    return Response(to_json(value), status, {"cache-control": "no-store"}, "application/json")
