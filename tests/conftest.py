"""Brokers for tests: one per test process, private ones that a test may kill; all may be Apache Kafka instead.

Every broker is a process on a reserved loopback port with its own data directory; it is ready when `barnabas serve` has
written its ready file. The report of a failed test contains the end of the log of every running broker.
With `--against kafka` the same fixtures give Apache Kafka 4.4.0, which shows that a suite does not depend on Barnabas.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from bench.clusters import BarnabasCluster  # noqa: E402 - needs the path above
from bench.real_kafka import KafkaServer  # noqa: E402 - needs the path above
from bench.servers import BarnabasServer, Server  # noqa: E402

pytest_plugins = ["tests.parallel"]

# No test depends on time: neither an example nor its generation may fail for being slow on a busy machine.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

_live: dict[str, Server] = {}
_counter = itertools.count(1)

StartBroker = Callable[..., Server]


def pytest_configure() -> None:
    """Restore SIGINT, so that commands under test can be interrupted even if the test run is a background job.

    A shell without job control starts background jobs with SIGINT ignored, and child processes inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the tests that need Java and Maven where these are not installed."""
    if item.get_closest_marker("java") or item.get_closest_marker("spark"):
        missing = [tool for tool in ("java", "mvn") if shutil.which(tool) is None]
        if missing:
            pytest.skip(f"{' and '.join(missing)} is not installed")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register `--against`."""
    parser.addoption(
        "--against",
        choices=("barnabas", "kafka"),
        default="barnabas",
        help="the broker that tests with real clients use: Barnabas, or Apache Kafka 4.4.0 to check the tests",
    )

    parser.addoption("--brokers", type=int, default=1, help="how many brokers of Barnabas: a cluster if more than one")


@pytest.fixture(scope="session")
def brokers(request: pytest.FixtureRequest) -> int:
    """How many brokers `broker` has."""
    return int(request.config.getoption("--brokers"))


@pytest.fixture(scope="session")
def against(request: pytest.FixtureRequest) -> str:
    """`barnabas` or `kafka`: the broker under test."""
    return str(request.config.getoption("--against"))


def _serve(kind: str, data_dir: Path, config: Mapping[str, str] | None, brokers: int = 1) -> Server:
    keys = dict(config or {})
    server: Server
    if kind == "kafka":
        server = KafkaServer(data_dir, config=keys)
    elif brokers > 1:
        server = BarnabasCluster(data_dir, brokers=brokers, config=keys)
    else:
        server = BarnabasServer(data_dir, config=keys)
    _live[f"{kind} in {data_dir}"] = server
    server.start()
    return server


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory, against: str, brokers: int) -> Iterator[Server]:
    """One broker for all tests of this process: a test uses its own topics (`topic_name`) and never stops it."""
    # Some tests write records with old timestamps: retention must not delete them while a slow test run goes on.
    server = _serve(
        against, tmp_path_factory.mktemp("broker"), {"log.retention.check.interval.ms": "86400000"}, brokers
    )
    yield server
    server.stop()
    _live.pop(f"{against} in {server.data_dir}", None)


@pytest.fixture
def start_broker(tmp_path_factory: pytest.TempPathFactory, against: str, brokers: int) -> Iterator[StartBroker]:
    """A factory `start_broker(data_dir=None, config=None) -> Server`: brokers that a test may kill and restart."""
    with ExitStack() as stack:

        def start(data_dir: Path | None = None, config: Mapping[str, str] | None = None) -> Server:
            where = data_dir or tmp_path_factory.mktemp("broker")
            server = _serve(against, where, config, brokers)
            stack.callback(_live.pop, f"{against} in {where}", None)
            stack.callback(server.stop)
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
        for name, server in _live.items():
            report.sections.append((f"log of {name}", server.log()[-8000:]))
