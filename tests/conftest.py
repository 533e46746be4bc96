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
from typing import TYPE_CHECKING

import pytest

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.support.processes.kafka import KafkaServer  # noqa: E402 - needs the path above
from tests.support.processes.killer import SETTINGS as KILLED_SETTINGS  # noqa: E402
from tests.support.processes.killer import Killer  # noqa: E402
from tests.support.processes.rotator import Rotator  # noqa: E402
from tests.support.processes.security import Combination, combination  # noqa: E402
from tests.support.processes.served_cluster import BarnabasCluster  # noqa: E402 - needs the path above
from tests.support.processes.server import BarnabasServer, Server  # noqa: E402

if TYPE_CHECKING:
    from tests.support.processes.secured_broker import SecuredBroker

pytest_plugins = [
    "tests.parallel", "tests.marks",
    "tests.support.measuring.bytecode", "tests.support.measuring.costs", "tests.support.measuring.garbage",
    "tests.support.failures", "tests.support.volume",
]  # fmt: skip

_live: dict[str, Server] = {}
_counter = itertools.count(1)

StartBroker = Callable[..., Server]


def pytest_configure() -> None:
    """Restore SIGINT, so that commands under test can be interrupted even if the test run is a background job.

    A shell without job control starts background jobs with SIGINT ignored, and child processes inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _killer(config: pytest.Config) -> Killer | None:
    """What kills brokers during this run (`compat/run NAME --brokers 3 --kill-every 20`), or None."""
    return next((one for one in config.pluginmanager.get_plugins() if isinstance(one, Killer)), None)


def _rotator(config: pytest.Config) -> Rotator | None:
    """What replaces certificates during this run (`compat/run NAME --secure SSL --rotate 2`), or None."""
    return next((one for one in config.pluginmanager.get_plugins() if isinstance(one, Rotator)), None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the tests that this run cannot have."""
    if (mark := item.get_closest_marker("plaintext")) and item.config.getoption("--secure") is not None:
        pytest.skip(f"needs a listener without security: {mark.args[0]}")
    if (mark := item.get_closest_marker("uninterrupted")) and _killer(item.config) is not None:
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
    return _killer(request.config) is not None


class Brokers:
    """Starts the brokers of this run: of one kind, single or clusters, which brokers may be killed of."""

    def __init__(self, config: pytest.Config) -> None:
        self.kind = str(config.getoption("--against"))
        self._count = int(config.getoption("--brokers"))
        self._controllers = str(config.getoption("--controllers"))
        self._killer = _killer(config)
        self._rotator = _rotator(config)
        self._secure: Combination | None = config.getoption("--secure")
        self._secured: dict[Server, SecuredBroker] = {}
        if self._secure is not None and self._count > 1:
            raise pytest.UsageError("--secure is for one broker")

    def start(self, data_dir: Path, keys: Mapping[str, str]) -> Server:
        """A started broker, or cluster."""
        server: Server
        if self._secure is not None:
            return self._start_secured(self._secure, data_dir, keys)
        if self.kind == "kafka":
            server = KafkaServer(data_dir, config=dict(keys))
        elif self._count > 1:
            own = {**KILLED_SETTINGS, **keys} if self._killer is not None else dict(keys)
            options = ("--controllers", self._controllers)
            server = BarnabasCluster(data_dir, brokers=self._count, config=own, options=options)
        else:
            server = BarnabasServer(data_dir, config=dict(keys))
        _live[self._name(data_dir)] = server
        server.start()
        if self._killer is not None and isinstance(server, BarnabasCluster):
            self._killer.take(server)
        return server

    def _start_secured(self, secure: Combination, data_dir: Path, keys: Mapping[str, str]) -> Server:
        from tests.support.processes.secured_broker import SecuredBroker

        secured = SecuredBroker(self.kind, data_dir, keys, secure)
        _live[self._name(data_dir)] = secured.server
        secured.start()
        if self._rotator is not None and secure.has_tls:
            self._rotator.take(secured)
            self._secured[secured.server] = secured
        return secured.server

    def stop(self, server: Server) -> None:
        """Stop it. AssertionError if one of its brokers was killed and has not come back."""
        try:
            if self._rotator is not None and server in self._secured:
                self._rotator.leave(self._secured.pop(server))
            if self._killer is not None and isinstance(server, BarnabasCluster):
                self._killer.leave(server)
        finally:
            server.stop()
            _live.pop(self._name(server.data_dir), None)

    def _name(self, data_dir: Path) -> str:
        return f"{self.kind} in {data_dir}"


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Server]:
    """One broker for all tests of this process: a test uses its own topics (`topic_name`) and never stops it."""
    # Some tests write records with old timestamps: retention must not delete them while a slow test run goes on.
    brokers = Brokers(request.config)
    server = brokers.start(tmp_path_factory.mktemp("broker"), {"log.retention.check.interval.ms": "86400000"})
    yield server
    brokers.stop(server)


@pytest.fixture
def start_broker(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[StartBroker]:
    """A factory `start_broker(data_dir=None, config=None) -> Server`: brokers that a test may kill and restart."""
    with ExitStack() as stack:
        brokers = Brokers(request.config)

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
        for name, server in _live.items():
            report.sections.append((f"log of {name}", server.log()[-8000:]))
