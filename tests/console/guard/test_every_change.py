"""What holds for every change and every live view of a console: found by the declarations, so none is left out.

The console has no broker: a change that the guard lets through fails, and is audited as that.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

import anyio
import httpx2
import msgspec
import pytest

from barnabas.console import events
from barnabas.console.app import declarations
from barnabas.console.events import Event, Streams
from barnabas.console.guard.middleware import READ_ONLY
from barnabas.console.pages import TEMPLATES
from barnabas.console.resources import Declared
from tests.support.console.running import RunningConsole, running_console

NO_BROKER = "127.0.0.1:1"
ACTIONS = [each for each in declarations() if each.kind == "action"]
SECRET = "the-secret-of-the-test"


def path_of(declared: Declared) -> str:
    """A path of the declaration; its parameters have a value of their type."""
    hints = get_type_hints(declared.input_type, include_extras=True)

    def value(match: re.Match[str]) -> str:
        return str(sample(hints[match[1]]))

    return re.sub(r"\{(\w+)\}", value, declared.path)


def form_of(declared: Declared) -> dict[str, Any]:
    """The fields that an action needs, and its secrets."""
    assert declared.input_type is not None
    hints = get_type_hints(declared.input_type, include_extras=True)
    needed = [field for field in fields(declared.input_type) if field.default is MISSING]
    chosen = {field.name: sample(hints[field.name]) for field in needed if field.default_factory is MISSING}
    in_path = set(re.findall(r"\{(\w+)\}", declared.path))
    chosen |= dict.fromkeys(declared.secrets, SECRET)
    return {name: value for name, value in chosen.items() if name not in in_path}


def sample(hint: Any) -> Any:
    """A value of a type of a form."""
    schema = msgspec.json.schema(hint)
    if "enum" in schema:
        return schema["enum"][0]
    return {"string": "x", "integer": max(1, schema.get("minimum", 1)), "number": 1.5, "boolean": True, "array": []}[
        schema["type"]
    ]


def test_read_only_refuses_every_change_and_shows_no_form() -> None:
    with running_console(NO_BROKER, read_only=True) as console:
        headers = {"x-csrf-token": console.client.get("/api/session").json()["csrf_token"]}
        for declared in ACTIONS:
            for prefix in ("", "/api"):
                path = prefix + path_of(declared)
                answer = console.client.post(path, json=form_of(declared), headers=headers)
                assert (path, answer.status_code, READ_ONLY in answer.text.replace("&#39;", "'")) == (path, 403, True)


def test_every_change_needs_the_token_of_its_session_and_the_console_as_origin() -> None:
    pages = {each.path for each in declarations() if each.kind == "resource"}
    with running_console(NO_BROKER) as console:
        token = console.client.get("/api/session").json()["csrf_token"]
        for declared in ACTIONS:
            for prefix in ("", "/api"):
                path = prefix + path_of(declared)
                for headers in ({}, {"x-csrf-token": "x"}, {"x-csrf-token": token, "origin": "http://evil.example"}):
                    answer = console.client.post(path, json=form_of(declared), headers=headers)
                    assert (path, answer.status_code) == (path, 403)
                if declared.path not in pages:
                    assert console.client.get(path).status_code in (404, 405), f"GET {path} changes nothing"


def test_every_change_is_a_line_of_the_log_without_its_secrets(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "barnabas.console.audit")
    with running_console(NO_BROKER, timeout_s=1.0) as console:
        headers = {"x-csrf-token": console.client.get("/api/session").json()["csrf_token"]}
        for declared in ACTIONS:
            caplog.clear()
            path = "/api" + path_of(declared)
            answer = console.client.post(path, json=form_of(declared), headers=headers)
            assert answer.status_code >= 400, f"{path} cannot be done without a broker"
            assert "Traceback" not in answer.text
            lines = [record.getMessage() for record in caplog.records if record.name == "barnabas.console.audit"]
            assert len(lines) == 1, (path, answer.text, lines)
            line = json.loads(lines[0])
            assert (line["user"], line["from"], line["action"]) == ("anonymous", "127.0.0.1", path)
            assert line["outcome"].startswith("failed: ")
            assert SECRET not in caplog.text


def test_what_is_deleted_is_asked_for_first() -> None:
    """No template has a button that deletes outside of a dialog, which says what is deleted."""
    deletes = re.compile(r"delete|remove|abort|expire|empty|forget|/kill|/stop|cancel")
    for template in TEMPLATES.rglob("*.html"):
        if template.name == "_form.html":
            continue
        text = template.read_text()
        for name, arguments in re.findall(r"\{% call (\w+)\((.*?)\) %\}", text, re.DOTALL):
            if name == "form":
                assert not deletes.search(arguments), (template, arguments)
        if template.name not in ("login.html", "base.html"):
            assert 'class="danger"' not in text, template
            assert len(re.findall(r'method="post"', text)) == text.count('action="{{ here|exact }}/set"'), template
        for content in re.findall(r"\{% call asking\(.*?\) %\}(.*?)\{% endcall %\}", text, re.DOTALL):
            assert "<p>" in content, (template, content)


def test_the_number_of_live_views_is_bounded_however_fast_they_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "STREAMS_MAX", 3)

    class Request:
        async def is_disconnected(self) -> bool:
            return False

    async def attack() -> list[str]:
        streams = Streams()
        request: Any = Request()
        bodies = [streams.body(request, iter([Event("here")] * 5)) for _ in range(5)]
        firsts = [await anext(body) for body in bodies]
        assert streams.open == 3
        for body in bodies:
            await body.aclose()
        assert streams.open == 0
        return firsts

    firsts = anyio.run(attack)
    assert firsts[:3] == [": open\n\n"] * 3
    assert all("too many live views" in first for first in firsts[3:])


def test_live_views_are_refused_when_too_many_are_open(
    console: RunningConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "STREAMS_MAX", 0)
    for declared in declarations():
        if declared.kind == "stream":
            answer = console.client.get(path_of(declared) if declared.input_type else declared.path)
            assert (declared.path, answer.status_code) == (declared.path, 503)


HOSTILE = "<script>alert(1)</script>\u202e\u0000\r\nset-cookie: planted=1"


def test_hostile_cookies_headers_and_fields_are_answered_by_sentences(console: RunningConsole) -> None:
    cookies = [
        "; ".join(["a=b"] * 200),
        "=; ;;",
        "barnabas-done=!!!",
        "barnabas-done=" + "QQ" * 4000,
        'x="\\"',
        "\xff\xfe",
    ]
    headers = [
        *({"cookie": cookie.encode("latin-1")} for cookie in cookies),
        {"authorization": b"Bearer " + b"x" * 9000},
        {"x-csrf-token": b"\xff" * 100},
        {"x-forwarded-for": b"<script>", "x-forwarded-proto": b"javascript"},
        {"accept-language": b"x" * 30_000},
    ]
    for chosen in headers:
        answer = httpx2.get(f"{console.url}/topics", headers=chosen, timeout=60)
        assert answer.status_code in (200, 303, 400, 431), (chosen, answer.status_code)
        assert "<script>" not in answer.text.replace("<script src=", "")
        assert "planted" not in answer.headers.get("set-cookie", "")
    token = {"x-csrf-token": console.csrf_token}
    for body in (b"{", b"[]", b"null", b'{"name": 1}', b'{"name": {"a": 1}}', b"\xff", b"[" * 100_000, b'"x"'):
        answer = console.client.post("/api/new-topic", content=body, headers=token)
        assert (body[:20], answer.status_code) == (body[:20], 400)
        assert answer.json()["error"]
    for declared in ACTIONS:
        form = {name: HOSTILE if isinstance(value, str) else value for name, value in form_of(declared).items()}
        answer = console.client.post(declared.path.replace("{", "").replace("}", ""), data=form, headers=token)
        assert answer.status_code < 500, (declared.path, answer.text)
        assert "<script>alert" not in answer.text, declared.path
        assert "planted" not in console.client.cookies
