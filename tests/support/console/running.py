"""A console in a thread of the test's process, and what a test does with it over loopback."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import unescape
from threading import Thread
from typing import Any

import httpx2
import uvicorn
from starlette.applications import Starlette

from barnabas.console.app import create_app
from barnabas.console.console import Console
from barnabas.console.listening import listen
from barnabas.console.server import configuration
from barnabas.console.settings import Settings
from tests.support.waiting import wait_for

_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)


class RunningConsole:
    """A console that serves, with a client that keeps cookies and follows redirects."""

    def __init__(self, settings: Settings, url: str, app: Starlette) -> None:
        self.settings = settings
        self.url = url
        self.console: Console = app.state.console
        """Its state, in this process."""
        self.client = httpx2.Client(base_url=url, follow_redirects=True, timeout=60)

    @property
    def csrf_token(self) -> str:
        """The token of this client's session, from a page."""
        match = re.search(r'name="csrf-token" content="([^"]*)"', self.client.get("/topics").text)
        assert match is not None
        return unescape(match[1])

    def json(self, path: str, status: int = 200) -> Any:
        """The JSON answer at `/api` + `path`."""
        response = self.client.get("/api" + path)
        assert response.status_code == status, response.text
        return response.json()

    def act(self, path: str, status: int = 200, **fields: Any) -> Any:
        """The JSON answer to an action at `/api` + `path`."""
        response = self.client.post("/api" + path, json=fields, headers={"x-csrf-token": self.csrf_token})
        assert response.status_code == status, response.text
        return response.json()

    def html(self, path: str, status: int = 200) -> str:
        """The HTML of a page."""
        response = self.client.get(path)
        assert response.status_code == status, response.text
        return response.text

    def text(self, path: str, status: int = 200) -> str:
        """The words of a page's HTML, with single spaces."""
        return words(self.html(path, status))

    def submit(self, path: str, fields: Mapping[str, Any], status: int = 200) -> str:
        """The words of the page after a form was sent as a browser without script sends it."""
        response = self.client.post(path, data={"csrf": self.csrf_token, **fields})
        assert response.status_code == status, response.text
        return words(response.text)


def words(html: str) -> str:
    """The text of HTML without tags, with single spaces."""
    return " ".join(unescape(_TAG.sub(" ", html)).split())


@contextmanager
def running_console(bootstrap: str, **settings: Any) -> Iterator[RunningConsole]:
    """A console for a cluster on a free port; `settings` are further fields of `Settings`."""
    chosen = Settings(bootstrap, port=0, **settings)
    app = create_app(chosen)
    with listen(chosen.host, 0) as listener:
        server = uvicorn.Server(configuration(chosen, app))
        thread = Thread(target=server.run, args=[[listener]], name="console")
        thread.start()
        try:
            wait_for(lambda: server.started or not thread.is_alive(), "the console serves")
            console = RunningConsole(chosen, f"http://127.0.0.1:{listener.getsockname()[1]}", app)
            with console.client:
                yield console
        finally:
            server.should_exit = True
            thread.join(30)
