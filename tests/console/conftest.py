"""One console, and one browser, for all tests of this process, on the session's broker."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.console.browser import Browser, open_browser
from tests.support.console.running import RunningConsole, running_console
from tests.support.console.serving import Serving
from tests.support.processes.kafka import KafkaServer
from tests.support.processes.secured import Secured


@pytest.fixture(scope="session")
def console(broker) -> Iterator[RunningConsole]:
    """A console of the session's broker: a test uses topics of its own."""
    with running_console(broker.bootstrap) as running:
        yield running


@pytest.fixture(scope="session")
def controlled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningConsole]:
    """A console of a broker with a control channel."""
    file = tmp_path_factory.mktemp("controlled") / "control.json"
    with Serving("--listen", "127.0.0.1:0", "--control", "--control-file", str(file)):
        told = json.loads(file.read_text())
        with running_console(told["bootstrap"], control=(told["control"], told["token"])) as running:
            yield running


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker with a listener of each security protocol, users and ACLs."""
    secured_broker = Secured(tmp_path_factory.mktemp("secured"), "barnabas")
    with secured_broker.server:
        yield secured_broker


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser, on no console."""
    with open_browser() as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser, console: RunningConsole) -> Browser:
    """The browser, on the session's console, at a usual size."""
    return chromium.at(console.url)


@pytest.fixture(scope="session")
def kafka_console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningConsole]:
    """A console of Apache Kafka 4.4.0, for tests marked `jvm`."""
    server = KafkaServer(tmp_path_factory.mktemp("console-kafka") / "kafka")
    server.start()
    try:
        with running_console(server.bootstrap) as running:
            yield running
    finally:
        server.stop()
