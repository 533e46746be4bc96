"""Brokers for tests: one per test process, private ones that a test may kill; all may be Apache Kafka instead.

Every broker is a process on a reserved loopback port with its own data directory; it is ready when `barnabas serve` has
written its ready file. The report of a failed test contains the end of the log of every running broker.
With `--against kafka` the same fixtures give Apache Kafka 4.4.0, which shows that a suite does not depend on Barnabas.
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

from tests.support.processes.brokers_of_run import LIVE, BrokersOfRun, StartBroker, killer_of  # noqa: E402
from tests.support.processes.security import combination  # noqa: E402
from tests.support.processes.server import Server  # noqa: E402

pytest_plugins = [
    "tests.parallel", "tests.marks",
    "tests.support.measuring.bytecode", "tests.support.measuring.costs", "tests.support.measuring.garbage",
    "tests.support.failures", "tests.support.volume",
]  # fmt: skip

_counter = itertools.count(1)


def pytest_configure() -> None:
    """Restore SIGINT, so that commands under test can be interrupted even if the test run is a background job.

    A shell without job control starts background jobs with SIGINT ignored, and child processes inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the tests that this run cannot have."""
    if (mark := item.get_closest_marker("plaintext")) and item.config.getoption("--secure") is not None:
        pytest.skip(f"needs a listener without security: {mark.args[0]}")
    if (mark := item.get_closest_marker("uninterrupted")) and killer_of(item.config) is not None:
        pytest.skip(f"needs an uninterrupted cluster: {mark.args[0]}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register `--against`."""
    parser.addoption(
        "--against",
        choices=("barnabas", "kafka"),
        default="barnabas",
        help="the broker that tests with real clients use: Barnabas, or Apache Kafka 4.4.0 to check the tests",
    )

    parser.addoption("--brokers", type=int, default=1, help="how many brokers of Barnabas: a cluster if more than one")
    parser.addoption("--controllers", choices=("ours", "kafka"), default="ours", help="the controllers of that cluster")
    parser.addoption(
        "--secure",
        type=combination,
        metavar="PROTOCOL[/MECHANISM]",
        help="clients use a listener of this security protocol, such as SASL_SSL/SCRAM-SHA-256",
    )


@pytest.fixture(scope="session")
def brokers(request: pytest.FixtureRequest) -> int:
    """How many brokers `broker` has."""
    return int(request.config.getoption("--brokers"))


@pytest.fixture(scope="session")
def against(request: pytest.FixtureRequest) -> str:
    """`barnabas` or `kafka`: the broker under test."""
    return str(request.config.getoption("--against"))


@pytest.fixture(scope="session")
def is_under_kills(request: pytest.FixtureRequest) -> bool:
    """Whether brokers are killed while the tests run (`compat/run NAME --brokers 3 --kill-every 20`)."""
    return killer_of(request.config) is not None


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Server]:
    """One broker for all tests of this process: a test uses its own topics (`topic_name`) and never stops it."""
    # Some tests write records with old timestamps: retention must not delete them while a slow test run goes on.
    brokers = BrokersOfRun(request.config)
    server = brokers.start(tmp_path_factory.mktemp("broker"), {"log.retention.check.interval.ms": "86400000"})
    yield server
    brokers.stop(server)


@pytest.fixture
def start_broker(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[StartBroker]:
    """A factory `start_broker(data_dir=None, config=None) -> Server`: brokers that a test may kill and restart."""
    with ExitStack() as stack:
        brokers = BrokersOfRun(request.config)

        def start(data_dir: Path | None = None, config: Mapping[str, str] | None = None) -> Server:
            server = brokers.start(data_dir or tmp_path_factory.mktemp("broker"), config or {})
            stack.callback(brokers.stop, server)
            return server

        yield start


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> Callable[..., str]:
    """A factory of unique topic names that contain the test's name: `topic_name()` or `topic_name("orders")`."""

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
        for name, server in LIVE.items():
            report.sections.append((f"log of {name}", server.log()[-8000:]))
