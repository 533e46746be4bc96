"""The pytest plugin: fixtures, ini keys, options, the marker `kafka`. Nothing is started until a fixture is used.

One broker serves the whole run, with pytest-xdist all workers; each test gets a cluster of its own in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from barnabas.testing.access import Access
    from barnabas.testing.broker import Broker
    from barnabas.testing.clients import AiokafkaClients, ConfluentClients, KafkaPythonClients
    from barnabas.testing.cluster import AsyncCluster, Cluster
    from barnabas.testing.finding import Finding
    from barnabas.testing.seed_files import Seed
    from barnabas.testing.sharing import Sharing

_SHARING: pytest.StashKey[Sharing] = pytest.StashKey()
_BROKER: pytest.StashKey[Broker] = pytest.StashKey()
_CLUSTER: pytest.StashKey[Cluster] = pytest.StashKey()
_SEEDS: pytest.StashKey[list[Seed]] = pytest.StashKey()
_KEYS = {
    "timeout": "how long assertions of the test kit wait, seconds",
    "port": "start the broker with the run, on this port of 127.0.0.1, for tests that expect one there",
    "host": "the address that clusters listen on, 127.0.0.1; 0.0.0.0 for clients in containers",
    "keep_on_failure": "save the cluster of each failed test in this directory, for `barnabas serve --data-dir`",
    "lint": "warn of what clients do wrong (the default), or error: fail the test, or off",
    "as_version": "answer as this release of Kafka: 2.8, 3.9, 4.0",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options and ini keys with the same names: --barnabas-timeout and barnabas_timeout."""
    group = parser.getgroup("barnabas", "Barnabas, a broker for tests")
    for key, text in _KEYS.items():
        parser.addini(f"barnabas_{key}", text)
        group.addoption(f"--barnabas-{key.replace('_', '-')}", dest=f"barnabas_{key}", metavar=key.upper(), help=text)
    text = "config keys of the broker and of every test's cluster, as num.partitions=3"
    parser.addini("barnabas_config", text, type="linelist")
    group.addoption("--barnabas-config", action="append", default=[], metavar="KEY=VALUE", help=text)
    text = "seed files: the records that every test's cluster begins with, as `barnabas consume --json` writes them"
    parser.addini("barnabas_load", text, type="linelist")
    group.addoption("--barnabas-load", action="append", default=[], metavar="FILE", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "kafka(topics=None, config=None, auth=None, tls=False, ignore_lint=(), **more): topics and config keys of the "
        "test's cluster, how clients log in there, and what is not to be reported of them",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Of pytest-xdist, in its controller: invite a worker to the broker of the run."""
    from barnabas.testing.sharing import Sharing

    config: pytest.Config = node.config
    if _SHARING not in config.stash:
        config.stash[_SHARING] = Sharing(lambda: _started(config))
    node.workerinput["barnabas_invitation"] = config.stash[_SHARING].invitation


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the broker with the run if its port is given: the tests expect it there, and may use no fixture."""
    config = session.config
    if _setting(config, "port") is not None and not hasattr(config, "workerinput"):
        _run_broker(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the broker of the run."""
    if (sharing := config.stash.get(_SHARING, None)) is not None:
        sharing.close()
    if (broker := config.stash.get(_BROKER, None)) is not None:
        broker.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show what the clients of a failed test did."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    if report.when != "teardown" and report.failed:
        kafka = item.stash.get(_CLUSTER, None)
        if kafka is None:
            return report  # type: ignore[return-value]
        report.sections += [(f"Barnabas: {title}", text) for title, text in kafka.report().items()]
        if (folder := _setting(item.config, "keep_on_failure")) is not None:
            from barnabas.testing.keeping import keep

            report.sections.append(("Barnabas: the cluster", keep(kafka, item.config.rootpath / folder, item.nodeid)))
    return report  # type: ignore[return-value]


def _setting(config: pytest.Config, key: str) -> str | None:
    given = config.getoption(f"barnabas_{key}") or config.getini(f"barnabas_{key}")
    return str(given) if given else None


def _number(config: pytest.Config, key: str, default: float) -> float:
    text = _setting(config, key)
    try:
        return default if text is None else float(text)
    except ValueError:
        raise pytest.UsageError(f"barnabas_{key} must be a number, not {text!r}") from None


def _config_keys(config: pytest.Config) -> dict[str, str]:
    keys = {}
    for line in [*config.getini("barnabas_config"), *config.getoption("barnabas_config")]:
        key, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"barnabas_config needs KEY=VALUE, as num.partitions=3, not {line!r}")
        keys[key.strip()] = value.strip()
    return keys


def _make_broker(config: pytest.Config) -> Broker:
    from barnabas.testing.broker import LOOPBACK, Broker
    from barnabas.testing.link import TIMEOUT_S

    timeout = _number(config, "timeout", TIMEOUT_S)
    port, host = int(_number(config, "port", 0)), _setting(config, "host")
    return Broker(_config_keys(config), port=port, host=host or LOOPBACK, timeout=timeout)


def _run_broker(config: pytest.Config) -> Broker:
    """The broker of this run, started when it is first asked for."""
    if _BROKER not in config.stash:
        broker = _make_broker(config)
        broker.start()
        config.stash[_BROKER] = broker
    return config.stash[_BROKER]


def _started(config: pytest.Config) -> dict[str, Any]:
    """Start the broker of a run with several workers; what they need to use it."""
    broker = _run_broker(config)
    return {"url": broker.channel.url, "token": broker.channel.token}


@pytest.fixture(scope="session")
def barnabas_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """The broker of the run. Its own cluster is not isolated; `kafka` is."""
    invitation = getattr(request.config, "workerinput", {}).get("barnabas_invitation")
    if invitation is None:
        yield _run_broker(request.config)
        return
    from barnabas.testing.errors import BrokerError
    from barnabas.testing.sharing import ask

    shared = ask(tuple(invitation))
    if "error" in shared:
        raise BrokerError(shared["error"])
    broker = _make_broker(request.config)
    broker.use(shared["url"], shared["token"])
    yield broker
    broker.stop()


@pytest.fixture
def kafka(request: pytest.FixtureRequest, barnabas_broker: Broker) -> Iterator[Cluster]:
    """A cluster for this test alone, gone after it. `@pytest.mark.kafka(topics={"orders": 3}, config={...})`."""
    marker = request.node.get_closest_marker("kafka")
    wanted = dict(marker.kwargs) if marker is not None else {}
    topics = wanted.pop("topics", None) or {}
    ignored = wanted.pop("ignore_lint", ())
    mode = _lint_mode(request.config)
    as_version = _setting(request.config, "as_version")
    if as_version is not None:
        wanted.setdefault("as_version", as_version)
    cluster = request.node.stash[_CLUSTER] = barnabas_broker.open(**wanted)
    try:
        for name, partitions in topics.items():
            cluster.topic(name).create(partitions)
        for seed in _seeds(request.config):
            cluster.load(seed)
        yield cluster
    finally:
        if not cluster.is_closed:  # by the test
            _close(request.node, cluster, ignored, mode)


def _close(item: pytest.Item, cluster: Cluster, ignored: Sequence[str], mode: str) -> None:
    if mode == "off":
        cluster.close()
    else:
        _report_lint(item, cluster.close_with_lint(ignored), mode)


def _seeds(config: pytest.Config) -> list[Seed]:
    """The records of barnabas_load, read once."""
    if _SEEDS not in config.stash:
        names = [*config.getini("barnabas_load"), *config.getoption("barnabas_load")]
        config.stash[_SEEDS] = [_read_seed(config.rootpath / name) for name in names]
    return config.stash[_SEEDS]


def _read_seed(path: Path) -> Seed:
    from barnabas.testing.seed_files import read_seed

    return read_seed(path)


def _lint_mode(config: pytest.Config) -> str:
    mode = _setting(config, "lint") or "warn"
    if mode not in {"off", "warn", "error"}:
        raise pytest.UsageError(f"barnabas_lint must be off, warn or error, not {mode!r}")
    return mode


def _report_lint(item: pytest.Item, findings: list[Finding], mode: str) -> None:
    """Warn of what the clients of a test did wrong, at the place of the test; with `error` the test fails."""
    if not findings:
        return
    if mode == "error":
        pytest.fail("\n".join(map(str, findings)), pytrace=False)
    from barnabas.testing.finding import BarnabasLintWarning

    for finding in findings:
        item.warn(BarnabasLintWarning(str(finding)))


@pytest.fixture
def async_kafka(kafka: Cluster) -> AsyncCluster:
    """The test's cluster with methods to await, in asyncio, trio and anyio."""
    return kafka.to_await()


@pytest.fixture
def kafka_access(request: pytest.FixtureRequest) -> Access:
    """What a client needs to reach the test's cluster, or the broker that BARNABAS_TEST_BOOTSTRAP_SERVERS names."""
    from barnabas.testing.access import Access
    from barnabas.testing.broker import running_broker

    if (bootstrap := running_broker()) is not None:
        return Access(bootstrap)
    kafka: Cluster = request.getfixturevalue("kafka")
    return kafka.access


@pytest.fixture
def kafka_bootstrap_servers(kafka_access: Access) -> str:
    """HOST:PORT of the test's cluster."""
    return kafka_access.bootstrap_servers


@pytest.fixture
def kafka_client_config(kafka_access: Access) -> dict[str, str]:
    """The configuration of a client of librdkafka for the test's cluster."""
    return kafka_access.confluent()


@pytest.fixture
def kafka_options(kafka_access: Access) -> dict[str, str]:
    """Options of Spark's `format("kafka")` for the test's cluster."""
    return kafka_access.spark()


@pytest.fixture(scope="session")
def kafka_spark() -> Iterator[Any]:
    """A SparkSession with the Kafka connector, one for the run. It needs Java, and `pip install 'barnabas[spark]'`."""
    pytest.importorskip("pyspark")
    from barnabas.pipeline.spark import session

    spark = session("tests")
    yield spark
    spark.stop()


@pytest.fixture
def confluent(kafka_access: Access) -> Iterator[ConfluentClients]:
    """Clients of confluent-kafka for the test's cluster, closed after the test."""
    pytest.importorskip("confluent_kafka")
    from barnabas.testing.clients import ConfluentClients

    with ConfluentClients(kafka_access) as clients:
        yield clients


@pytest.fixture
def kafka_python(kafka_access: Access) -> Iterator[KafkaPythonClients]:
    """Clients of kafka-python for the test's cluster, closed after the test."""
    pytest.importorskip("kafka")
    from barnabas.testing.clients import KafkaPythonClients

    with KafkaPythonClients(kafka_access) as clients:
        yield clients


@pytest.fixture
def aio(kafka_access: Access) -> AiokafkaClients:
    """Clients of aiokafka for the test's cluster; each is started and closed by `async with`."""
    pytest.importorskip("aiokafka")
    from barnabas.testing.clients import AiokafkaClients

    return AiokafkaClients(kafka_access)
