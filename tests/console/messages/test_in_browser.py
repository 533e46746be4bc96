"""The screens of messages in a browser, as a person uses them, and with a hostile topic."""

from __future__ import annotations

import json

import pytest
from selenium.webdriver.common.keys import Keys

from barnabas.client.admin.topics import create_topic
from barnabas.client.cluster import Cluster
from barnabas.client.producer import Producer
from barnabas.wire.clients.partitioners import RoundRobin
from tests.support.console.browser import Browser
from tests.support.waiting import wait_for

pytestmark = pytest.mark.browser

T0 = 1_763_000_000_000


def order(number: int) -> bytes:
    return json.dumps(
        {
            "id": number,
            "customer": {"name": f"Ada {number % 7}", "vip": number % 5 == 0},
            "amount": number * 1.5,
            "items": [{"sku": f"sku-{number % 9}", "count": number % 3 + 1}],
            "note": None,
        }
    ).encode()


def send(
    bootstrap: str, topic: str, records: list[tuple[bytes | None, bytes | None, list]], partitions: int = 2
) -> None:
    with Cluster(bootstrap) as cluster:
        create_topic(cluster, topic, partitions=partitions, configs={"retention.ms": "-1"})
        producer = Producer(cluster, RoundRobin)
        for number, (key, value, headers) in enumerate(records):
            producer.send(topic, value, key, headers, partition=number % partitions, timestamp_ms=T0 + number * 1000)
        producer.flush()


def press(browser: Browser, keys: str) -> None:
    browser.driver.switch_to.active_element.send_keys(keys)


def test_a_person_finds_a_message(browser: Browser, broker, topic: str) -> None:
    sources = ("web", "app", "shop")
    send(
        broker.bootstrap,
        topic,
        [
            (f"customer-{number % 7}".encode(), order(number), [("source", sources[number % 3].encode())])
            for number in range(120)
        ],
    )
    browser.open("/messages")
    browser.fill("[data-search]", topic)
    browser.shows(topic)
    browser.click(f"a[href='/messages/{topic}']")
    browser.shows("50 records, newest first")
    browser.check_without_axe()
    press(browser, "f")
    browser.fill("#filter", 'value.amount > 100 and headers.source == "web"' + Keys.ENTER)
    browser.shows("17 records, newest first")
    browser.shows("120 of 120 looked at")

    _opens_and_compares(browser)
    _saves_the_filter(browser, topic)
    _follows(browser, broker.bootstrap, topic)
    _writes(browser)

    browser.open(f"/messages/{topic}?filter=value.amount%3E170")
    browser.click("#open-export")
    browser.click("[name=range][value=all]")
    browser.click("#export-begin")
    browser.shows("8 records")
    browser.shows(": done")

    browser.looks(f"/messages/{topic}?limit=10", "messages", "#records tr")
    browser.looks(f"/messages/{topic}/0/30", "message", "#record")
    browser.looks(f"/messages/{topic}/compare?left=0:30&right=0:31", "messages-compare", ".comparison")
    browser.looks(f"/messages/{topic}/new-record?copy=0:30", "messages-new", "#value")
    browser.open("/schemas")
    browser.check()


def _opens_and_compares(browser: Browser) -> None:
    """A record opened by the keyboard, its forms and snippets, two records marked and compared."""
    browser.one("main").click()
    press(browser, "j")
    press(browser, Keys.ENTER)
    browser.shows("CRC-32C")
    browser.shows('"name": "Ada')
    browser.check()
    browser.click(".details [data-side=value][data-form=hex]")
    browser.shows("00000000  7b 22 69 64")
    browser.click(".details .snippets summary")
    browser.shows("from confluent_kafka import Consumer")

    browser.click("tr.record:nth-of-type(1) [data-mark]")
    wait_for(lambda: len(browser.all("tr.record")) == 17, "all rows")
    browser.all("tr.record [data-mark]")[2].click()
    browser.click("#compare")
    browser.shows("Two records")
    browser.shows("differ")
    browser.check()
    browser.driver.back()


def _saves_the_filter(browser: Browser, topic: str) -> None:
    """By a name, found again on the page without a filter."""
    browser.shows("Saved filters") if browser.all("details[open] summary") else browser.click(".criteria summary")
    browser.click("#save")
    browser.fill("#save-name", "large web orders")
    browser.click("#save-form .primary")
    browser.open(f"/messages/{topic}")
    browser.click(".criteria summary")
    browser.one("#saved").send_keys("large web orders")
    browser.shows("17 records, newest first")


def _follows(browser: Browser, bootstrap: str, topic: str) -> None:
    """What arrives and fits the filter is shown; paused."""
    browser.click("#live")
    browser.shows("Live: 0 records arrived")
    with Cluster(bootstrap) as cluster:
        producer = Producer(cluster, RoundRobin)
        producer.send(topic, b'{"amount": 1}', partition=0)
        producer.send(topic, b'{"amount": 777}', b"k", [("source", b"web")], partition=0)
        producer.flush()
    browser.shows("Live: 1 record arrived")
    browser.shows('"amount":777')
    browser.click("#live")
    browser.shows("Paused: 1 record arrived")
    browser.check()


def _writes(browser: Browser) -> None:
    """A new record, and one made of it that is wrong."""
    browser.click("#write")
    browser.fill("#key", "customer-9")
    browser.fill("#value", '{"amount": 900}')
    browser.fill("#headers", "source: web")
    browser.click(".new-record button.primary")
    browser.shows("Produced a record: partition")
    browser.shows('"amount": 900')
    browser.click("a[href*='new-record?copy=']")
    browser.fill("#value", '{"amount": 901')
    browser.click(".new-record button.primary")
    browser.shows("value: it is not JSON")
    browser.check()


MARKUP = '<script>document.title = "owned"</script><img src=x onerror=alert(1)>{{ 7*7 }}'
HOSTILE = [
    MARKUP.encode(),
    ("\u202egnp.exe" + "\u200bזהו טקסט مرحبا").encode(),
    b"\x00\x01\x1b[31mred\x1b[0m\r\n\x7f",
    b"x" * 1_000_000,
    json.dumps({MARKUP: [MARKUP, "\u202e", "\x00", "</pre></textarea>"]}).encode(),
    b"\xff\xfe" * 200_000,
    b"[" * 20_000,
    json.dumps({"line": "y" * 900_000}).encode(),
    b"",
    None,
]


def test_a_hostile_topic_is_text_everywhere(browser: Browser, broker, topic: str) -> None:
    records = [(value[:2000] if value else value, value, [(MARKUP, value and value[:2000])]) for value in HOSTILE]
    send(broker.bootstrap, topic, records, partitions=1)
    browser.open(f"/messages/{topic}")
    browser.shows("10 records")
    browser.shows("\\u202egnp.exe")
    browser.shows("<img src=x onerror=alert(1)>{{ 7*7 }}")
    assert len(browser.driver.page_source) < 120_000
    for anchor in browser.all("a.open"):
        anchor.click()
    wait_for(lambda: len(browser.all(".details .one-record")) == len(HOSTILE), "all records are open")
    browser.check()
    for offset in range(len(HOSTILE)):
        browser.open(f"/messages/{topic}/0/{offset}")
        browser.one("#record")
        for form in browser.all("[data-side=value][data-form=text]"):
            form.click()
        assert "owned" not in browser.driver.title
    for path in (f"/messages/{topic}/compare?left=0:0&right=0:4", f"/messages/{topic}/new-record?copy=0:4"):
        browser.open(path)
        browser.one("main")
        assert not browser.all("img[src=x]")
        browser.check()
