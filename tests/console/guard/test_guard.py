"""The guard against attacks, around a page that records what reaches it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from barnabas.console.guard.access import Access
from barnabas.console.guard.bodies import MAX_BODY_BYTES, MAX_LOGIN_BYTES, Bodies, RefusedError
from barnabas.console.guard.login import LoginWay
from barnabas.console.guard.middleware import Guard
from barnabas.console.guard.sessions import Sessions
from barnabas.console.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

ORIGIN = "http://testserver"


class _Console:
    """A console whose every page answers with what it got, and counts."""

    def __init__(self, *, needs_login: bool = False, is_read_only: bool = False, has_tls: bool = False) -> None:
        self.served = 0
        self.sessions = Sessions()
        self.bodies = Bodies()
        certificate = "console.pem" if has_tls else None
        settings = Settings(
            "127.0.0.1:1", allowed_hosts=("testserver",), read_only=is_read_only, certificate=certificate
        )
        way = LoginWay(("PLAIN",), {}) if needs_login else None
        self.access = Access(settings, self.sessions, lambda *_arguments, **_options: way)
        routes = [
            Route("/login", self._log_in, methods=["POST"]),
            Route("/broken", self._broken, methods=["GET"]),
            Route("/{path:path}", self._page, methods=["GET", "POST"]),
        ]
        guard = Middleware(Guard, access=self.access, bodies=self.bodies)
        self.app = Starlette(routes=routes, middleware=[guard])

    @property
    def token(self) -> str:
        """The CSRF token of a console without log-in."""
        assert self.access.everyone is not None
        return self.access.everyone.csrf_token

    async def _page(self, request: Request) -> Response:
        self.served += 1
        session = request.state.session
        body = await request.body()
        return JSONResponse(
            {"user": session.user if session else None, "body": body.decode(), "held": self.bodies.held}
        )

    async def _log_in(self, _request: Request) -> Response:
        session_id, _ = self.sessions.begin("alice", {})
        response = PlainTextResponse("done")
        response.set_cookie(self.access.cookie, session_id)
        return response

    async def _broken(self, _request: Request) -> Response:
        raise ValueError("secret of the traceback")


@contextmanager
def _client(console: _Console, base_url: str = ORIGIN) -> Iterator[TestClient]:
    with TestClient(console.app, base_url=base_url, follow_redirects=False) as client:
        yield client


def test_another_name_for_the_address_reads_nothing() -> None:
    """DNS rebinding: a page of evil.example whose name is now 127.0.0.1."""
    console = _Console()
    with _client(console) as client:
        assert client.get("/topics", headers={"host": "evil.example:8080"}).status_code == 403
        assert client.get("/static/console.css", headers={"host": "evil.example"}).status_code == 403
        assert client.post("/topics/a/delete", headers={"host": "evil.example", "origin": ORIGIN}).status_code == 403
        assert console.served == 0
        answer = client.get("/topics", headers={"host": "evil.example<script>"})
        assert answer.headers["content-type"].startswith("text/plain")
        assert client.get("/topics", headers={"host": "127.0.0.1:8080"}).status_code == 200


def test_a_change_needs_the_token_of_its_session_and_a_page_of_the_console() -> None:
    """CSRF: a form of another site, with and without the cookie of a user."""
    console = _Console()
    token = console.token
    with _client(console) as client:
        for content in ({}, {"csrf": ""}, {"csrf": "guessed"}, {"csrf": token[:-1]}):
            assert client.post("/topics/a/delete", data=content).status_code == 403
            assert client.post("/topics/a/delete", files={"file": b"x"}, data=content).status_code == 403
        for headers in ({"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
            answer = client.post("/topics/a/delete", data={"csrf": token}, headers=headers)
            assert answer.status_code == 403
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            assert client.request(method, "/topics/a/delete", headers={"x-csrf-token": token}).status_code == 405
        assert client.request("GET", "/topics/a/delete", content=b"a=b").status_code == 400
        assert console.served == 0
        fields = {"csrf": token, "name": "<b>"}
        assert client.post("/topics", data=fields, headers={"origin": ORIGIN}).status_code == 200
        upload = client.post("/topics", data=fields, files={"file": ("a", b"x" * 10)})
        assert "<b>" in upload.json()["body"]
        assert client.post("/api/topics", json={}, headers={"x-csrf-token": token}).json()["body"] == "{}"
        assert client.post("/api/topics", json={}).json()["error"].startswith("The request has no valid CSRF token")
        assert console.served == 3
    assert console.bodies.held == 0


def test_without_a_log_in_nothing_but_the_log_in_is_served() -> None:
    console = _Console(needs_login=True)
    with _client(console) as client:
        answer = client.get("/topics?search=a%26b")
        assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=%2Ftopics%3Fsearch%3Da%2526b")
        assert client.get("/topics", headers={"hx-request": "true"}).headers["hx-redirect"] == "/login"
        assert client.get("/api/topics").json() == {"error": "Log in first."}
        assert client.post("/topics", data={}).headers["location"] == "/login?next=%2F"
        assert client.get("/static").status_code == 303
        for value in ("Bearer ", "Bearer x", "Basic YWxpY2U6eA==", "bearer"):
            assert client.get("/api/topics", headers={"authorization": value}).status_code == 401
        assert console.served == 0
        client.post("/login")
        assert client.get("/topics").json()["user"] == "alice"


def test_the_token_of_another_session_is_not_accepted_and_a_bearer_needs_none() -> None:
    console = _Console(needs_login=True)
    alice_id, alice = console.sessions.begin("alice", {})
    _, bob = console.sessions.begin("bob", {})
    with _client(console) as client:
        cookie = {"cookie": f"other=1; {console.access.cookie}={alice_id}"}
        assert client.post("/topics", headers=cookie | {"x-csrf-token": bob.csrf_token}).status_code == 403
        assert client.post("/topics", headers=cookie | {"x-csrf-token": alice.csrf_token}).status_code == 200
        bearer = {"authorization": f"Bearer {alice_id}"}
        assert client.post("/api/topics", headers=bearer).json()["user"] == "alice"
        assert client.post("/api/topics", headers=bearer | {"origin": "http://evil.example"}).status_code == 403
        console.sessions.end(alice)
        assert client.post("/api/topics", headers=bearer).status_code == 401


def test_a_console_that_is_read_only_changes_nothing() -> None:
    console = _Console(is_read_only=True)
    with _client(console) as client:
        for path in ("/topics/a/delete", "/api/topics", "/login/../topics", "/LOGIN"):
            answer = client.post(path, headers={"x-csrf-token": console.token})
            assert (answer.status_code, "--read-only" in answer.text) == (403, True)
        assert client.get("/topics").status_code == 200
        assert client.post("/login").status_code == 200
    assert console.served == 1


def test_bodies_are_bounded_in_size_one_by_one_and_in_all() -> None:
    console = _Console(needs_login=True)
    session_id, _ = console.sessions.begin("alice", {})
    bearer = {"authorization": f"Bearer {session_id}"}

    def pieces(count: int) -> Iterator[bytes]:
        for _ in range(count):
            yield b"x" * 65536

    with _client(console) as client:
        assert client.post("/topics", content=b"x" * (MAX_BODY_BYTES + 1), headers=bearer).status_code == 413
        assert client.post("/topics", content=pieces(MAX_BODY_BYTES // 65536 + 1), headers=bearer).status_code == 413
        assert client.post("/login", content=b"x" * (MAX_LOGIN_BYTES + 1)).status_code == 413
        assert client.post("/topics", content=b"x" * 65536, headers=bearer).json()["held"] == 65536
    assert console.bodies.held == 0


def test_a_body_that_comes_slowly_or_not_at_all_is_given_up() -> None:
    async def attack() -> None:
        bodies = Bodies(most=100, time_s=0.05)

        async def slowly() -> AsyncIterator[dict[str, Any]]:
            while True:
                yield {"type": "http.request", "body": b"x", "more_body": True}
                await anyio.sleep(0.02)

        messages = slowly()
        scope = {"type": "http", "headers": []}
        with pytest.raises(RefusedError, match=r"was not complete after 0\.05 s"):
            await bodies.read(scope, messages.__anext__, 1000)
        assert bodies.held == 0

        async def at_once() -> dict[str, Any]:
            return {"type": "http.request", "body": b"x" * 60, "more_body": False}

        first = await bodies.read(scope, at_once, 1000)
        with pytest.raises(RefusedError, match="Too many large requests"):
            await bodies.read(scope, at_once, 1000)
        bodies.release(first)
        bodies.release(await bodies.read(scope, at_once, 1000))
        assert bodies.held == 0

    anyio.run(attack)


def test_every_response_has_the_headers_that_keep_scripts_and_frames_out() -> None:
    console = _Console(needs_login=True, has_tls=True)
    with _client(console) as client:
        for answer in (client.get("/topics"), client.get("/", headers={"host": "evil"}), client.get("/static/a.css")):
            policy = answer.headers["content-security-policy"]
            assert "default-src 'self'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "same-origin"
            assert "access-control-allow-origin" not in answer.headers
            assert answer.headers["strict-transport-security"]
        assert client.get("/topics").headers["cache-control"] == "no-store"


def test_forms_that_cannot_be_read_and_web_sockets_are_refused() -> None:
    console = _Console()
    with _client(console) as client:
        for kind in ("multipart/form-data", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"):
            content = b"&".join(b"a=b" for _ in range(3000))
            assert client.post("/topics", content=content, headers={"content-type": kind}).status_code in (400, 403)
        with pytest.raises(WebSocketDisconnect) as refused, client.websocket_connect("/topics"):
            pass
        assert refused.value.code == 1008
    assert console.served == 0


def test_a_failure_shows_nothing_and_has_the_headers_too() -> None:
    console = _Console()
    with _client(console) as client:
        for path in ("/broken", "/api/../broken"):
            answer = client.get(path)
            assert answer.status_code == 500
            assert "secret" not in answer.text
            assert "content-security-policy" in answer.headers
