"""The ASGI application of a console: routes of all screens, the files of the pages, what every request passes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from barnabas.console.console import Console
from barnabas.console.guard.middleware import Guard
from barnabas.console.guard.pages import LogInPages
from barnabas.console.pages import STATIC, Pages
from barnabas.console.resources import Declared
from barnabas.console.screens import SCREENS
from barnabas.console.screens.api import openapi_json
from barnabas.console.serving import Serving

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from barnabas.console.settings import Settings


class PathAsSent:
    """Lets routes match the path as it was sent: `%2F` in a name is no separator."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        raw_path = scope.get("raw_path")
        if scope["type"] == "http" and raw_path:
            scope["path"] = raw_path.partition(b"?")[0].decode("ascii", "replace")
        await self._app(scope, receive, send)


def create_app(settings: Settings) -> Starlette:
    """The application; `app.state.console` is its state."""
    console = Console(settings)
    declared = sorted(declarations(), key=lambda each: _specific_first(each.path))
    pages = Pages(SCREENS)
    log_in = LogInPages(console.access, pages.plain)
    documented = [*declared, *log_in.declared()]
    serving = Serving(console, pages, documented)

    def refusal(scope: Scope, status: int, text: str) -> Response:
        is_part = any(name == b"hx-request" for name, _ in scope["headers"])
        values = {"status": HTTPStatus(status), "text": text, "path": scope["path"]}
        return HTMLResponse(pages.plain("_failure.html" if is_part else "refused.html", values), status)

    async def failed(request: Request, error: Exception) -> Response:
        return serving.failure(request, error)

    async def first_page(_request: Request) -> Response:
        return RedirectResponse(SCREENS[0].path)

    async def openapi(_request: Request) -> Response:
        return Response(openapi_json(documented), media_type="application/json")

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        console.start()
        try:
            yield
        finally:
            console.close()

    routes: list[Any] = [route for each in declared for route in serving.routes(each)]
    routes += log_in.routes()
    app = Starlette(
        routes=[
            Route("/", first_page),
            Route("/api", serving.api_page),
            Route("/api/openapi.json", openapi),
            *routes,
            Mount(
                "/static", GZipMiddleware(StaticFiles(directory=STATIC), compresslevel=6)
            ),  # pages are not: they have secrets
        ],
        middleware=[Middleware(PathAsSent), Middleware(Guard, access=console.access, refusal=refusal)],
        exception_handlers={404: failed, 405: failed},
        lifespan=lifespan,
    )
    app.state.console = console
    return app


def declarations() -> list[Declared]:
    """What the modules of all screens declare."""
    modules = [module for screen in SCREENS for module in screen.modules]
    return [value for module in modules for value in vars(module).values() if isinstance(value, Declared)]


def _specific_first(path: str) -> list[bool]:
    """A route without a parameter comes before one with it at the same place."""
    return ["{" in segment for segment in path.split("/")]
