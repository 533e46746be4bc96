"""Users, ACLs, quotas and tokens on a secured broker, as its super user; what is said where there is no security."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.client.cluster import Cluster
from barnabas.client.errors import AuthenticationFailed
from barnabas.client.security.jaas import login_line
from barnabas.client.security.settings import security_from
from tests.support.console.browser import Browser
from tests.support.console.running import RunningConsole, running_console
from tests.support.processes.secured import HARNESS_PASSWORD, HARNESS_USER, Secured


@pytest.fixture(scope="module")
def admin(secured: Secured) -> Iterator[RunningConsole]:
    """A console that acts as a super user of its configuration."""
    login = {"sasl_username": HARNESS_USER, "sasl_password": HARNESS_PASSWORD}
    properties = secured.properties("SASL_PLAINTEXT", sasl_mechanism="PLAIN", **login)
    with running_console(secured.harness, properties=properties, security=security_from(properties)) as console:
        yield console


def _can_log_in(secured: Secured, user: str, password: str, *, is_token: bool = False) -> bool:
    properties = secured.properties(
        "SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_jaas_config=login_line("SCRAM-SHA-512", user, password, is_token=is_token),
    )
    try:
        with Cluster(secured.address("SASL_PLAINTEXT"), security=security_from(properties)) as cluster:
            cluster.retry(cluster.any_node)
    except AuthenticationFailed:
        return False
    return True


def test_a_user_is_added_changed_and_deleted(
    admin: RunningConsole, secured: Secured, caplog: pytest.LogCaptureFixture
) -> None:
    name = "<b>grace</b> & co"
    with caplog.at_level("INFO", "barnabas.console.audit"):
        done = admin.act("/set-user", user=name, password="first-secret")
        assert done["text"] == f"added user {name!r} (SCRAM-SHA-512)"
        assert _can_log_in(secured, name, "first-secret")
        page = admin.submit("/set-user", {"user": name, "password": "second-secret"})
        assert f"changed the password of user {name!r}" in page
    assert not [text for text in caplog.messages if "first-secret" in text or "second-secret" in text]
    assert [text for text in caplog.messages if '"action": "/api/set-user"' in text]
    assert not _can_log_in(secured, name, "first-secret")
    assert "<b>grace</b>" not in admin.html("/users?search=grace")
    rows = admin.json("/users?search=grace")["users"]["rows"]
    assert rows == [{"user": name, "mechanisms": ["SCRAM-SHA-512"], "iterations": [4096]}]
    assert admin.json("/users/%3Cb%3Egrace%3C%2Fb%3E%20%26%20co")["credentials"] is not None
    assert "names it" in admin.text("/users/%3Cb%3Egrace%3C%2Fb%3E%20%26%20co")
    admin.act("/users/%3Cb%3Egrace%3C%2Fb%3E%20%26%20co/delete")
    assert not _can_log_in(secured, name, "second-secret")
    assert "there is no user 'nobody'" in admin.act("/users/nobody/delete", status=404)["error"]
    assert admin.act("/set-user", user=name, password="", status=400)["error"].startswith("password: ")
    assert admin.act("/set-user", user=name, password="a", iterations=1, status=400)["error"].startswith("iterations: ")


def test_acls_are_created_decide_and_are_deleted(admin: RunningConsole) -> None:
    acl = {
        "principal": "User:henry",
        "operation": "READ",
        "resource_type": "TOPIC",
        "name": "acl-",
        "pattern": "PREFIXED",
    }
    done = admin.act("/create-acl", **(acl | {"principal": "henry"}))
    assert done["text"] == "created: User:henry may READ TOPIC names that begin with acl-, from every host"
    admin.act("/create-acl", **(acl | {"name": "acl-secret", "pattern": "LITERAL", "permission": "DENY"}))
    assert len(admin.json("/acls?principal=henry")["acls"]["rows"]) == 2
    assert [row["name"] for row in admin.json("/acls?principal=henry&name=acl-x")["acls"]["rows"]] == ["acl-"]
    question = "/may?user=henry&operation={}&resource_type=TOPIC&name={}"
    answer = admin.json(question.format("READ", "acl-orders"))
    assert (answer["allowed"], answer["acl"]["name"]) == (True, "acl-")
    assert admin.json(question.format("DESCRIBE", "acl-orders"))["allowed"]  # READ implies it
    denied = admin.json(question.format("READ", "acl-secret"))
    assert (denied["allowed"], denied["acl"]["permission"]) == (False, "DENY")
    assert "No an ACL denies it" in admin.text(question.format("READ", "acl-secret"))
    assert admin.json(question.format("WRITE", "other"))["why"] == "the resource has no ACL"
    assert (
        admin.json("/may?user=harness&operation=ALTER&resource_type=CLUSTER")["why"] == "User:harness is a super user"
    )
    assert (
        "operation: there is no ALTER on GROUP"
        in admin.json("/may?user=henry&operation=ALTER&resource_type=GROUP&name=a", status=400)["error"]
    )
    assert "acl-secret" in admin.text("/users/henry")
    admin.submit("/delete-acl", acl)
    assert "there is no such ACL" in admin.act("/delete-acl", status=404, **acl)["error"]
    assert admin.act("/create-acl", status=400, **(acl | {"name": ""}))["error"].startswith("name: ")
    assert admin.act("/create-acl", status=400, **(acl | {"operation": "FLY"}))["error"].startswith("operation: ")


def test_quotas_are_set_and_removed(admin: RunningConsole) -> None:
    admin.act("/set-quota", user="ida", client="shop", key="producer_byte_rate", value=1024)
    admin.act("/set-quota", client="<default>", key="request_percentage", value=50.5)
    rows = admin.json("/quotas")["quotas"]["rows"]
    assert {(row["entity"], row["key"], row["value"]) for row in rows} >= {
        ("user ida, client shop", "producer_byte_rate", 1024.0),
        ("default client", "request_percentage", 50.5),
    }
    assert "user ida, client shop" in admin.text("/quotas?search=ida")
    admin.submit("/set-quota", {"user": "ida", "client": "shop", "key": "producer_byte_rate"})
    admin.submit("/set-quota", {"client": "<default>", "key": "request_percentage"})
    assert admin.json("/quotas?search=ida")["quotas"]["rows"] == []
    for wrong, field in (
        ({}, "user"),
        ({"ip": "127.0.0.1", "user": "a"}, "ip"),
        ({"user": "a", "value": -1}, "value"),
    ):
        error = admin.act("/set-quota", status=400, **({"key": "producer_byte_rate", "value": 1} | wrong))["error"]
        assert error.startswith(f"{field}: ")


def test_tokens_are_created_used_renewed_and_expire(admin: RunningConsole, secured: Secured) -> None:
    done = admin.act("/create-token", renewers="ida", max_hours=1)
    path = done["location"]
    token = admin.json(path)
    assert token["token"]["owner"] == f"User:{HARNESS_USER}"
    assert token["token"]["renewers"] == ["User:ida"]
    assert token["hmac"] in token["jaas"]
    assert token["hmac"] not in str(admin.json("/tokens"))
    assert token["token"]["token_id"] in admin.text("/tokens")
    assert _can_log_in(secured, token["token"]["token_id"], token["hmac"], is_token=True)
    admin.act(f"{path}/renew", hours=0.5)
    renewed = admin.json(path)["token"]
    assert renewed["expiry_ms"] < renewed["max_ms"]
    admin.act(f"{path}/expire")
    assert "there is no token" in admin.json(path, status=404)["error"]


def test_without_security_each_screen_says_how_to_get_it(console: RunningConsole) -> None:
    for path in ("/users", "/acls", "/tokens"):
        assert "'barnabas serve --secure --data-dir DIR' starts a broker" in console.text(path)
    assert "has no authorizer" in console.text("/acls")
    assert "delegation.token.secret.key" in console.text("/tokens")


@pytest.mark.browser
def test_access_in_the_browser(admin: RunningConsole, chromium: Browser) -> None:
    chromium.at(admin.url)
    chromium.open("/users")
    chromium.click("[data-open=set-user]")
    chromium.fill("#set-user-name", "browser-user")
    chromium.fill("#set-user-password", "a-secret")
    chromium.click("dialog[open] .primary")
    chromium.shows("added user 'browser-user'")
    chromium.open("/acls")
    chromium.click("[data-open=create-acl]")
    chromium.fill("#acl-principal", "browser-user")
    chromium.fill("#acl-name", "browser-topic")
    chromium.click("dialog[open] .primary")
    chromium.shows("created: User:browser-user may ALL TOPIC browser-topic")
    chromium.open("/may?user=browser-user&operation=WRITE&resource_type=TOPIC&name=browser-topic")
    chromium.shows("an ACL allows it, and none denies it")
    chromium.looks("/may?user=browser-user&operation=READ&resource_type=TOPIC&name=other", "may")
    admin.act("/set-quota", user="browser-user", key="producer_byte_rate", value=1_000_000)
    token = admin.act("/create-token")["location"]
    for path, name in (
        ("/users", "users"), ("/users/browser-user", "user"), ("/acls", "acls"), ("/quotas", "quotas"),
        ("/tokens", "tokens"), (token, "token"),
    ):  # fmt: skip
        chromium.looks(path, name)
    chromium.open("/acls?principal=browser-user")
    chromium.click("[aria-label='Delete: User:browser-user ALL browser-topic']")
    chromium.shows("User:browser-user may ALL TOPIC browser-topic from every host.")
    chromium.check()
    chromium.click("dialog[open] [data-close]")
    assert admin.json("/acls?principal=browser-user")["acls"]["total"] == 1, "nothing is deleted without the answer"
    chromium.click("[aria-label='Delete: User:browser-user ALL browser-topic']")
    chromium.click("dialog[open] button.danger")
    chromium.shows("deleted: User:browser-user may ALL TOPIC browser-topic")
