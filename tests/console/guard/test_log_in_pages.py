"""A console of a secured broker: people log in with their own users, and it acts as they."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psutil
import pytest

from barnabas.client.admin.topics import create_topic
from barnabas.client.admin.users import delete_credentials, set_credential
from barnabas.client.cluster import Cluster
from barnabas.client.security.scram import credential
from barnabas.client.security.settings import security_from
from tests.support.console.browser import Browser
from tests.support.console.running import RunningConsole, running_console, words
from tests.support.processes.secured import HARNESS_PASSWORD, HARNESS_USER, Secured


@pytest.fixture(scope="module")
def harness(secured: Secured) -> Iterator[Cluster]:
    """The tests' own client, which may do everything."""
    login = {"sasl_username": HARNESS_USER, "sasl_password": HARNESS_PASSWORD}
    own = secured.properties("SASL_PLAINTEXT", sasl_mechanism="PLAIN", **login)
    with Cluster(secured.harness, security=security_from(own)) as cluster:
        for name in ("erin", "frank", "admin"):
            set_credential(cluster, name, credential("SCRAM-SHA-512", f"{name}-secret", 4096))
        create_topic(cluster, "of-admin", partitions=1)
        yield cluster


@pytest.fixture
def secured_console(secured: Secured, harness: Cluster) -> Iterator[RunningConsole]:
    """A console of the listener with SASL, with a client that does not follow redirects."""
    with running_console(secured.address("SASL_PLAINTEXT")) as running:
        running.client.follow_redirects = False
        yield running


def _log_in(console: RunningConsole, user: str, password: str, there: str = "/topics") -> int:
    answer = console.client.post("/login", data={"user": user, "password": password, "next": there})
    return answer.status_code


def _searching() -> set[psutil.Process]:
    """The processes that search for consoles of this process."""
    return {child for child in psutil.Process().children() if "reading_process" in " ".join(child.cmdline())}


def test_a_person_logs_in_acts_as_its_user_and_logs_out(secured_console: RunningConsole) -> None:
    client = secured_console.client
    sent = client.get("/topics?search=of")
    assert (sent.status_code, sent.headers["location"]) == (303, "/login?next=%2Ftopics%3Fsearch%3Dof")
    form = client.get(sent.headers["location"]).text
    assert 'value="/topics?search=of"' in form
    answer = client.post("/login", data={"user": 'admin"><script>', "password": "wrong", "next": "//evil.example"})
    assert answer.status_code == 401
    assert "<script>" not in answer.text.replace('<script src="/static/', "")
    assert "does not accept this user and password" in words(answer.text)
    assert 'value="/"' in answer.text
    answer = client.post("/login", data={"user": "admin", "password": "admin-secret", "next": "/topics?search=of"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/topics?search=of")
    assert {"httponly", "samesite=strict"} <= {part.strip().lower() for part in answer.headers["set-cookie"].split(";")}
    page = client.get("/topics").text
    assert "of-admin" in page
    assert "admin-secret" not in page
    others = _searching()
    assert secured_console.json("/messages/of-admin?filter=value.a")["ended_by"] == "end"
    (mine,) = _searching() - others
    assert "admin-secret" not in str(mine.cmdline())
    token = re.search(r'name="csrf-token" content="([^"]*)"', page)
    assert token is not None
    assert client.get("/api/session").json()["user"] == "admin"
    assert client.post("/logout", data={}).status_code == 403
    stolen = dict(client.cookies)
    assert client.post("/logout", data={"csrf": token[1]}).headers["location"] == "/login"
    client.cookies.update(stolen)
    assert client.get("/topics").status_code == 303  # the id is worth nothing after the log-out
    assert not mine.is_running(), "nothing stays connected as this user"


def test_who_may_not_gets_a_sentence(secured_console: RunningConsole) -> None:
    """The console has no rights of its own: a user without ACLs sees no topic and changes nothing."""
    assert _log_in(secured_console, "erin", "erin-secret") == 303
    assert "of-admin" not in secured_console.text("/topics")
    assert "of-admin" not in str(secured_console.json("/topics"))
    sentence = secured_console.json("/topics/of-admin", status=403)["error"]
    assert "TOPIC_AUTHORIZATION_FAILED" in sentence
    for path in ("/messages/of-admin", "/messages/of-admin?filter=value.a", "/messages/of-admin/export"):
        assert "TOPIC_AUTHORIZATION_FAILED" in secured_console.json(path, status=403)["error"]
    assert "TOPIC_AUTHORIZATION_FAILED" in secured_console.text("/topics/of-admin", status=403)


def test_the_session_id_is_new_at_each_log_in_and_the_old_session_ends(secured_console: RunningConsole) -> None:
    """Session fixation: an id that was planted, or that somebody else knows."""
    client = secured_console.client
    cookie = secured_console.console.access.cookie
    client.cookies.set(cookie, "planted-by-mallory", domain="127.0.0.1", path="/")
    assert _log_in(secured_console, "erin", "erin-secret") == 303
    first = client.cookies[cookie]
    assert first != "planted-by-mallory"
    assert _log_in(secured_console, "admin", "admin-secret") == 303
    assert client.cookies[cookie] != first
    assert len(secured_console.console.sessions) == 1


def test_a_script_logs_in_by_the_api(secured_console: RunningConsole) -> None:
    client = secured_console.client
    assert client.post("/api/login", json={"user": "admin"}).status_code == 400
    assert client.post("/api/login", json=[]).status_code == 400
    assert client.post("/api/login", json={"user": "admin", "password": "x"}).status_code == 401
    token = client.post("/api/login", json={"user": "admin", "password": "admin-secret"}).json()["token"]
    headers = {"authorization": f"Bearer {token}"}
    assert client.get("/api/topics", headers=headers).status_code == 200
    assert client.get("/api/topics").status_code == 401
    assert client.post("/api/logout", headers=headers).status_code == 200
    assert client.get("/api/topics", headers=headers).status_code == 401


def test_a_user_whose_password_is_gone_must_log_in_again(secured_console: RunningConsole, harness: Cluster) -> None:
    assert _log_in(secured_console, "frank", "frank-secret") == 303
    assert secured_console.client.get("/topics").status_code == 200
    delete_credentials(harness, "frank", ["SCRAM-SHA-512"])
    secured_console.console.clusters.close()  # a connection that is open stays logged in, as any client's
    answer = secured_console.client.get("/topics")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=%2Ftopics")
    assert len(secured_console.console.sessions) == 0


@pytest.mark.browser
def test_the_log_in_in_the_browser(secured_console: RunningConsole, chromium: Browser) -> None:
    chromium.at(secured_console.url)
    chromium.looks("/login?next=/users", "login", "#user")
    chromium.size(1280)
    chromium.fill("#user", "admin")
    chromium.fill("#password", "wrong")
    chromium.click(".login .primary")
    chromium.shows("The broker does not accept this user and password.")
    chromium.fill("#password", "admin-secret")
    chromium.click(".login .primary")
    chromium.shows("Users")
    assert chromium.driver.current_url == f"{secured_console.url}/users"
    chromium.check()
    chromium.click(".bar form button")
    chromium.one("#password")
    chromium.open("/users")
    chromium.one("#password")
    chromium.driver.delete_all_cookies()
