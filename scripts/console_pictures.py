"""Make the pictures of docs/console.md: a broker with the traffic of a small shop, and Chromium on its console.

`python -m scripts.console_pictures` writes docs/console/*.png. It needs Chromium, chromedriver, selenium and
confluent-kafka, as the tests of the console do. The broker, its data and the clients end with it.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from selenium import webdriver
from selenium.webdriver.chrome.options import Options

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[1] / "docs" / "console"
LISTEN, CONSOLE = "127.0.0.1:9092", "127.0.0.1:8080"
TRAFFIC_S = 40.0
"""How long clients work before the pictures are taken, seconds: charts need some samples."""
WIDTH, HEIGHT = 1280, 800
PICTURES = {
    "overview": "/overview",
    "topics": "/topics",
    "topic": "/topics/orders",
    "messages": "/messages/orders?filter=value.amount+%3E+100",
    "groups": "/groups",
    "group": "/groups/billing",
    "transactions": "/transactions",
    "cluster": "/cluster",
    "configs": "/configs",
    "users": "/users",
    "acls": "/acls",
    "quotas": "/quotas",
    "tokens": "/tokens",
    "requests": "/requests",
    "lab": "/lab",
    "pipelines": "/pipelines",
    "api": "/api",
}
"""The pictures by name, with the path of the page."""


def main() -> None:
    """Make all pictures."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, _broker(Path(directory)), _traffic():
        options = Options()
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
            options.add_argument(argument)
        driver = webdriver.Chrome(options=options)
        try:
            _take(driver)
        finally:
            driver.quit()


def _take(driver: webdriver.Chrome) -> None:
    metrics = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.get(f"http://{CONSOLE}/overview")
    time.sleep(TRAFFIC_S)  # the console samples while somebody looks
    for name, path in PICTURES.items():
        driver.get(f"http://{CONSOLE}{path}")
        time.sleep(5.0)  # live figures and requests come meanwhile
        driver.save_screenshot(str(FOLDER / f"{name}.png"))
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get(f"http://{CONSOLE}/messages/orders")
    time.sleep(3.0)
    driver.save_screenshot(str(FOLDER / "messages-dark.png"))


@contextmanager
def _broker(directory: Path) -> Iterator[None]:
    """A broker with its console and test lab, until the end."""
    command = [sys.executable, "-m", "barnabas", "serve", "--listen", LISTEN, "--data-dir", str(directory / "data")]
    ready = directory / "ready"
    with subprocess.Popen(
        [*command, "--console", CONSOLE, "--control", "127.0.0.1:0", "--ready-file", str(ready)],
        stdout=subprocess.DEVNULL,
    ) as process:
        try:
            while not ready.exists():
                if process.poll() is not None:
                    sys.exit("The broker did not start: are its ports free?")
                time.sleep(0.05)
            yield
        finally:
            process.terminate()


@contextmanager
def _traffic() -> Iterator[None]:
    """Topics, producers, consumers and an open transaction, until the end."""
    admin = AdminClient({"bootstrap.servers": LISTEN})
    topics = [NewTopic(name, 3) for name in ("orders", "payments", "customers", "clicks")]
    for future in admin.create_topics(topics).values():
        future.result(30)
    ended = threading.Event()
    threads = [threading.Thread(target=_produce, args=(ended,)), threading.Thread(target=_transact, args=(ended,))]
    for group, topic, slow in (
        ("billing", "orders", True),
        ("search", "customers", False),
        ("fraud", "payments", False),
    ):
        threads.append(threading.Thread(target=_consume, args=(ended, group, topic, slow)))
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _order(chance: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": number,
        "customer": f"c-{chance.randrange(500):03}",
        "amount": round(chance.expovariate(1 / 60), 2),
        "items": [{"sku": f"sku-{chance.randrange(90)}", "count": chance.randint(1, 4)}],
    }


def _produce(ended: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": LISTEN, "client.id": "shop", "compression.type": "zstd"})
    chance = random.Random(7)
    number = 0
    while not ended.wait(0.02):
        number += 1
        order = _order(chance, number)
        headers = [("source", chance.choice(["web", "app"]).encode())]
        producer.produce("orders", json.dumps(order), key=order["customer"], headers=headers)
        producer.produce("clicks", json.dumps({"page": f"/p/{chance.randrange(50)}"}))
        if number % 3 == 0:
            producer.produce("payments", json.dumps({"order": number, "paid": order["amount"]}))
        if number % 10 == 0:
            producer.produce("customers", json.dumps({"name": f"Customer {number}"}), key=order["customer"])
        producer.poll(0)
    producer.flush(10)


def _transact(ended: threading.Event) -> None:
    producer = Producer(
        {"bootstrap.servers": LISTEN, "transactional.id": "ledger-1", "transaction.timeout.ms": 600_000}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("payments", json.dumps({"order": 0, "paid": 12.5}))
    producer.flush(10)
    ended.wait()
    producer.abort_transaction(30)


def _consume(ended: threading.Event, group: str, topic: str, slow: bool) -> None:
    settings = {"bootstrap.servers": LISTEN, "group.id": group, "client.id": group, "auto.offset.reset": "earliest"}
    with closing(Consumer({**settings, "auto.commit.interval.ms": 1000})) as consumer:
        consumer.subscribe([topic])
        while not ended.is_set():
            consumer.consume(1 if slow else 100, 0.2)
            if slow:
                ended.wait(0.05)


if __name__ == "__main__":
    main()
