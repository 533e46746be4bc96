"""The overview, the frame of every page, and the page and document of the JSON API."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections import defaultdict

import pytest
from starlette.routing import Route

from barnabas.client.admin.topics import create_topic
from barnabas.client.cluster import Cluster
from barnabas.console.app import create_app, declarations
from barnabas.console.openapi import _dataclasses
from barnabas.console.pages import STATIC
from barnabas.console.screens import SCREENS
from barnabas.console.screens.clients import client_texts
from tests.support.console.browser import Browser
from tests.support.console.running import RunningConsole, running_console
from tests.support.processes.commands import call_command
from tests.support.waiting import wait_for


def test_the_overview_has_brokers_rates_and_clients(console: RunningConsole, broker, topic: str) -> None:
    with Cluster(broker.bootstrap) as cluster:
        create_topic(cluster, topic)
    call_command("produce", topic, stdin="1\n2\n", bootstrap=broker.bootstrap).ok()

    def known() -> dict:
        figures = console.json("/overview")["figures"]
        return figures if figures["topics"] and figures["brokers"][0]["version"] else {}

    (row,) = wait_for(known, "the collector has sampled the broker")["brokers"]
    assert row["version"].startswith("Barnabas ")
    assert row["version"].endswith("Kafka 4.4")
    assert row["uptime_s"] > 0
    clients = console.json("/overview")["clients"]
    assert [client["name"] for client in clients] == [
        *("Java", "confluent-kafka", "kafka-python", "franz-go", "KafkaJS", "kcat"),
    ]
    assert all(broker.bootstrap in client["text"] for client in clients)


def test_warnings_are_of_what_is_wrong_only(start_broker, topic: str) -> None:
    own = start_broker()  # other tests leave groups that lag and open transactions on the session's broker
    with running_console(own.bootstrap) as console, Cluster(own.bootstrap) as cluster:
        create_topic(cluster, topic)
        call_command("produce", topic, stdin="1\n2\n", bootstrap=own.bootstrap).ok()
        wait_for(lambda: console.json("/overview")["figures"]["topics"], "the collector has sampled the broker")
        assert console.json("/overview")["figures"]["warnings"] == []
        assert "Nothing is wrong: every partition has its leader and all its replicas, and every" in console.text("/")


def test_configurations_of_clients_have_tls_and_sasl_and_no_secret() -> None:
    properties = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.password": "hidden"}
    texts = {client.name: client.text for client in client_texts("a:1,b:2", properties)}
    assert not [name for name, text in texts.items() if "hidden" in text]
    assert not [name for name, text in texts.items() if "PASSWORD" not in text]
    for name, words in {
        "Java": ("security.protocol=SASL_SSL", "ScramLoginModule", "ssl.truststore.location=ca.pem"),
        "confluent-kafka": ('"ssl.ca.location": "ca.pem"', '"bootstrap.servers": "a:1,b:2"'),
        "kafka-python": ('security_protocol="SASL_SSL"', 'ssl_cafile="ca.pem"'),
        "franz-go": ('kgo.SeedBrokers("a:1", "b:2")', "AsSha512Mechanism"),
        "KafkaJS": ('brokers: ["a:1", "b:2"]', 'mechanism: "scram-sha-512"'),
        "kcat": ("-X security.protocol=SASL_SSL",),
    }.items():
        for word in words:
            assert word in texts[name]
    for name in ("confluent-kafka", "kafka-python"):
        compile(texts[name], name, "exec")


def test_the_api_is_documented_from_the_declarations(console: RunningConsole) -> None:
    document = console.client.get("/api/openapi.json").json()
    for declared in declarations():
        method = "post" if declared.kind == "action" else "get"
        assert document["paths"]["/api" + declared.path][method]["summary"] == declared.summary
    routes = {
        (route.path, method.lower())
        for route in create_app(console.settings).routes
        if isinstance(route, Route) and route.path.startswith("/api/") and route.path != "/api/openapi.json"
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert routes == {(path, method) for path, methods in document["paths"].items() for method in methods}
    identifiers = [each["operationId"] for methods in document["paths"].values() for each in methods.values()]
    assert len(set(identifiers)) == len(identifiers)
    assert document["paths"]["/api/login"]["post"]["security"] == []
    names = {parameter["name"] for parameter in document["paths"]["/api/topics"]["get"]["parameters"]}
    assert {"sort", "search", "page", "internal"} <= names
    body = document["components"]["schemas"]["CreateTopic"]
    assert body["required"] == ["name"]
    assert body["properties"]["partitions"]["description"] == "None: as the broker's num.partitions."
    references = set(json.dumps(document).split('"#/components/schemas/')[1:])
    assert {reference.partition('"')[0] for reference in references} <= document["components"]["schemas"].keys()
    page = console.text("/api")
    assert "/api/topics/{topic}/empty" in page
    assert "curl" in page


def test_names_of_dataclasses_are_unique_since_the_document_has_them() -> None:
    types = [kind for each in declarations() for kind in (each.input_type, each.view_type) if kind is not None]
    kinds = defaultdict(set)
    for name, kind in _dataclasses(types):
        kinds[name].add(kind)
    assert {name: same for name, same in kinds.items() if len(same) > 1} == {}


def test_vendored_files_are_what_the_list_says() -> None:
    vendor = STATIC / "vendor"
    listed = tomllib.loads((vendor / "vendor.toml").read_text())["file"]
    for file in listed:
        assert hashlib.sha256((vendor / file["name"]).read_bytes()).hexdigest() == file["sha256"]
        assert (vendor / file["license"]).exists()
        assert file["version"] in file["name"]
    licences = {file["license"] for file in listed}
    assert {path.name for path in vendor.iterdir()} == {file["name"] for file in listed} | licences | {"vendor.toml"}


def test_a_page_is_small(console: RunningConsole) -> None:
    html = console.html("/overview")
    names = [part.partition('"')[0] for part in html.replace('src="', 'href="').split('href="/static/')[1:]]
    received = sum(
        int(response.headers["content-length"])
        for name in dict.fromkeys(names)
        if (response := console.client.get(f"/static/{name}"))
    )
    assert received + len(html) <= 120_000


def test_read_only_and_csrf(console: RunningConsole) -> None:
    response = console.client.post("/api/new-topic", json={"name": "x"})
    assert response.status_code == 403
    assert "CSRF" in response.json()["error"]
    assert console.client.post("/new-topic", data={"name": "x", "csrf": "wrong"}).status_code == 403


@pytest.mark.browser
def test_every_screen_of_the_navigation_opens_by_keyboard(browser: Browser, broker, topic: str) -> None:
    with Cluster(broker.bootstrap) as cluster:
        create_topic(cluster, topic)
    browser.open("/")
    browser.shows("Overview")
    paths = {screen.key: screen.path for screen in SCREENS} | {"j": "/api"}
    assert len(paths) == len(SCREENS) + 1, "each screen has a letter of its own"
    for key, path in paths.items():
        browser.keys(f"g{key}")
        wait_for(lambda path=path: browser.driver.current_url == browser.url + path, path)
    browser.open(f"/messages/{topic}")
    browser.keys("?")
    browser.shows("Keyboard shortcuts")
    browser.check()
    listed = browser.one("#shortcuts").text
    assert [screen.title for screen in SCREENS if screen.title not in listed] == []
    browser.click("#shortcuts button")
    browser.keys("gl")  # the second letter is no shortcut of the screen of messages
    wait_for(lambda: browser.driver.current_url == browser.url + "/lab", "the lab")
    browser.size(360)
    browser.open("/topics")
    browser.click("button.menu")
    browser.click("#navigation a[href='/overview']")
    browser.shows("Overview")


@pytest.mark.browser
def test_the_overview_is_live_and_looks_well(browser: Browser, broker, topic: str) -> None:
    with Cluster(broker.bootstrap) as cluster:
        create_topic(cluster, topic)
    browser.open("/overview")
    browser.one("[data-chart=messages] canvas")
    call_command("produce", topic, stdin="1\n" * 500, bootstrap=broker.bootstrap).ok()
    samples = "[data-live][data-samples='2']"
    browser.one(samples)
    browser.looks("/overview", "overview", ready="[data-chart=messages] canvas")
    browser.looks("/api", "api")
    browser.size(1280)
    browser.open("/overview")
    theme = "return getComputedStyle(document.documentElement).colorScheme"
    before = browser.driver.execute_script(theme)
    browser.keys("t")
    assert browser.driver.execute_script(theme) != before
    browser.keys("t")
    assert browser.driver.execute_script(theme) == before
