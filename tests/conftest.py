"""Brokers for tests: a shared one, private ones that may be killed, and real Kafka behind the same handle.

Every broker is a process of its own on a free loopback port with its own data directory; readiness is the ready file
that `barnabas serve` writes, never a sleep. A failing test shows the tail of the logs of every broker that was alive.
With `--against kafka` the same fixtures give Apache Kafka 4.4.0, so that a suite can be proved not to lean on us.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from bench.real_kafka import KafkaServer  # noqa: E402 - needs the path above
from bench.servers import BarnabasServer, Server  # noqa: E402

pytest_plugins = ["tests.parallel"]

_live: dict[str, Server] = {}
_counter = itertools.count(1)

StartBroker = Callable[..., Server]


def pytest_configure() -> None:
    """Let the commands under test be interrupted even where the run itself is a background job.

    A shell without job control starts those with SIGINT ignored, and a process hands that on to all it starts.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register `--against`."""
    parser.addoption(
        "--against",
        choices=("barnabas", "kafka"),
        default="barnabas",
        help="which broker the tests with real clients use: ours, or Apache Kafka 4.4.0 to prove the tests themselves",
    )


@pytest.fixture(scope="session")
def against(request: pytest.FixtureRequest) -> str:
    """`barnabas` or `kafka`: the broker this run is about."""
    return str(request.config.getoption("--against"))


def _serve(kind: str, data_dir: Path, config: Mapping[str, str] | None) -> Server:
    server_class = KafkaServer if kind == "kafka" else BarnabasServer
    server = server_class(data_dir, config=dict(config or {}))
    _live[f"{kind} in {data_dir}"] = server
    server.start()
    return server


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory, against: str) -> Iterator[Server]:
    """One broker for the whole session: use topics of your own (`topic_name`), and do not kill it."""
    server = _serve(against, tmp_path_factory.mktemp("broker"), None)
    yield server
    server.stop()
    _live.pop(f"{against} in {server.data_dir}", None)


@pytest.fixture
def start_broker(tmp_path_factory: pytest.TempPathFactory, against: str) -> Iterator[StartBroker]:
    """A factory `start_broker(data_dir=None, config=None) -> Server`: brokers that a test may kill and start again."""
    with ExitStack() as stack:

        def start(data_dir: Path | None = None, config: Mapping[str, str] | None = None) -> Server:
            where = data_dir or tmp_path_factory.mktemp("broker")
            server = _serve(against, where, config)
            stack.callback(_live.pop, f"{against} in {where}", None)
            stack.callback(server.stop)
            return server

        yield start


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> Callable[..., str]:
    """A factory of topic names that nobody else uses, readable in a log: `topic_name()` or `topic_name("orders")`."""

    def name(stem: str | None = None) -> str:
        base = stem or request.node.originalname or request.node.name
        return f"{base[:80]}-{os.getpid()}-{next(_counter)}"

    return name


@pytest.fixture
def topic(topic_name: Callable[..., str]) -> str:
    """One unused topic name."""
    return topic_name()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Attach the brokers' logs to the report of a failure."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed:
        for name, server in _live.items():
            report.sections.append((f"log of {name}", server.log()[-8000:]))
