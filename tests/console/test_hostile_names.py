"""Names, values, errors and queries full of markup, control characters and right-to-left text are text everywhere."""

from __future__ import annotations

import base64
import re
from urllib.parse import quote

import pytest

from tests.support.console.browser import Browser
from tests.support.console.running import RunningConsole

HOSTILE = (
    "<script>document.title='taken'</script>\"'><img src=x onerror=alert(1)>\u202edrawkcab\x1b[31m/{{7*7}}/../%2e%2e"
)
SHOWN = "\\u202edrawkcab\\x1b[31m/{{7*7}}/../%2e%2e"


def pages() -> list[str]:
    """Pages that show a part of the request."""
    name = quote(HOSTILE, safe="")
    return [
        f"/topics?search={name}",
        f"/topics/{name}",
        f"/topics?sort={name}",
        f"/configs/group/{name}?search={name}",
        f"/configs/group/{name}?edit={name}",
        f"/cluster/partitions?topic={name}",
        f"/cluster/partitions?search={name}&state=offline",
        f"/new-topic?like={name}",
        f"/{name}",
    ]


def test_what_is_asked_for_is_shown_as_text(console: RunningConsole) -> None:
    for path in pages():
        html = console.client.get(path).text
        assert "<script>document" not in html, path
        assert "<img" not in html, path
        assert "\u202e" not in re.sub(r' value="[^"]*"', "", html), path  # a field is sent back as it is
        assert "49" not in html.partition("<main")[2].partition("</main>")[0], path
    assert SHOWN in console.text(pages()[1], status=400)


def test_a_name_with_slashes_and_markup_can_be_changed(console: RunningConsole) -> None:
    path = f"/configs/group/{quote(HOSTILE, safe='')}"
    done = console.act(f"{path}/set", key="consumer.session.timeout.ms", value="51000")
    assert HOSTILE in done["text"]
    assert HOSTILE in console.json("/configs")["groups"]
    page = console.html(f"{path}?only_set=true")
    assert "51000" in page
    assert SHOWN in console.text("/configs")
    assert quote(HOSTILE, safe="") in console.html("/configs")


def test_a_forged_sentence_of_the_last_action_is_text(console: RunningConsole) -> None:
    for value in (base64.urlsafe_b64encode(HOSTILE.encode()).decode(), "%%%", "AA", "\u00e9"):
        headers = {"cookie": f"barnabas-done={value}".encode("latin-1")}
        response = console.client.get("/topics", headers=headers)
        assert response.status_code == 200
        assert "<script>document" not in response.text


def test_requests_are_bounded_and_wrong_ones_are_refused(console: RunningConsole) -> None:
    token = {"x-csrf-token": console.csrf_token}
    too_large = console.client.post("/api/new-topic", content=b"x" * (17 << 20), headers=token)
    assert too_large.status_code == 413
    for body in (b"[]", b"\xff", b'{"name": {"a": 1}}', b'{"name": "x", "partitions": 1e400}', b"[" * 100_000):
        response = console.client.post("/api/new-topic", content=body, headers=token)
        assert response.status_code == 400, response.text
        assert response.json()["error"]
    assert console.client.get(f"/topics?search={'x' * 600}").status_code == 400
    assert console.client.get("/static/../app.py").status_code == 404
    assert console.client.get("/static/%2e%2e/app.py").status_code == 404


@pytest.mark.browser
def test_nothing_hostile_runs_in_the_browser(browser: Browser) -> None:
    for path in pages():
        browser.open(path)
        browser.one("main")
        assert browser.driver.title != "taken"
        assert browser.all("main img, main script") == []
