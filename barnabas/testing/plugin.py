"""The pytest plugin: fixtures, ini keys, options, the marker `kafka`. Nothing is started until a fixture is used.

One broker serves the whole run, with pytest-xdist all workers; each test gets a cluster of its own in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.testing.fixtures.settings import Settings, declare, settings_of

if TYPE_CHECKING:
    from barnabas.testing.access import Access
    from barnabas.testing.broker import Broker
    from barnabas.testing.cluster import AsyncCluster, Cluster
    from barnabas.testing.finding import Finding
    from barnabas.testing.fixtures.cassettes import CassetteOfTest
    from barnabas.testing.fixtures.clients import AiokafkaClients, ConfluentClients, KafkaPythonClients
    from barnabas.testing.fixtures.sharing import Sharing
    from barnabas.testing.seed_files import Seed

_SHARING: pytest.StashKey[Sharing] = pytest.StashKey()
_BROKER: pytest.StashKey[Broker] = pytest.StashKey()
_PASSED: pytest.StashKey[bool] = pytest.StashKey()
_SETTINGS: pytest.StashKey[Settings] = pytest.StashKey()
_CLUSTER: pytest.StashKey[Cluster] = pytest.StashKey()
_SEEDS: pytest.StashKey[list[Seed]] = pytest.StashKey()

MARKER = "@pytest.mark.kafka"
MARKED = (
    *("topics", "config", "brokers", "auth", "tls", "as_version"),
    *("seed", "cassette", "cassette_timing", "ignore_lint"),
)
"""The names that the marker takes."""

pytest_addoption = declare


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings, and register the marker."""
    config.stash[_SETTINGS] = settings_of(config)
    config.addinivalue_line(
        "markers",
        "kafka(topics=None, config=None, auth=None, tls=False, ignore_lint=(), cassette=None, **more): topics and "
        "config keys of the test's cluster, how clients log in there, what is not to be reported of them, the name of "
        "a recording of their session, or True",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Of pytest-xdist, in its controller: invite a worker to the broker of the run."""
    from barnabas.testing.fixtures.sharing import Sharing

    config: pytest.Config = node.config
    if _SHARING not in config.stash:
        config.stash[_SHARING] = Sharing(lambda: _started(config))
    node.workerinput["barnabas_invitation"] = config.stash[_SHARING].invitation


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the broker with the run if its port is given: the tests expect it there, and may use no fixture."""
    config = session.config
    if config.stash[_SETTINGS].port is None or hasattr(config, "workerinput"):
        return
    from barnabas.testing.errors import BrokerError

    try:
        _run_broker(config)
    except BrokerError as error:
        raise pytest.UsageError(f"barnabas_port: {error}") from None


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the broker of the run."""
    if (sharing := config.stash.get(_SHARING, None)) is not None:
        sharing.close()
    if (broker := config.stash.get(_BROKER, None)) is not None:
        broker.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Remember that a test has passed, for its fixtures; the report of a failed one shows its clients' requests."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    if report.when != "teardown" and report.failed:
        kafka = item.stash.get(_CLUSTER, None)
        if kafka is None:
            return report  # type: ignore[return-value]
        report.sections += [(f"Barnabas: {title}", text) for title, text in kafka.report().items()]
        if (folder := item.config.stash[_SETTINGS].keep_on_failure) is not None:
            from barnabas.testing.cluster import keep

            report.sections.append(("Barnabas: the cluster", keep(kafka, item.config.rootpath / folder, item.nodeid)))
    return report  # type: ignore[return-value]


def _make_broker(config: pytest.Config) -> Broker:
    from barnabas.testing.broker import LOOPBACK, Broker
    from barnabas.testing.link import TIMEOUT_S

    settings = config.stash[_SETTINGS]
    timeout = TIMEOUT_S if settings.timeout is None else settings.timeout
    return Broker(settings.config, port=settings.port or 0, host=settings.host or LOOPBACK, timeout=timeout)


def _run_broker(config: pytest.Config) -> Broker:
    """The broker of this run, started when it is first asked for."""
    if _BROKER not in config.stash:
        broker = _make_broker(config)
        broker.start()
        config.stash[_BROKER] = broker
    return config.stash[_BROKER]


def _started(config: pytest.Config) -> dict[str, Any]:
    """Start the broker of a run with several workers; return the values with which they use it."""
    broker = _run_broker(config)
    return {"url": broker.channel.url, "token": broker.channel.token}


@pytest.fixture(scope="session")
def barnabas_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """The broker of the run. Its own cluster is not isolated; `kafka` is."""
    invitation = getattr(request.config, "workerinput", {}).get("barnabas_invitation")
    with _in_one_sentence():
        broker = _run_broker(request.config) if invitation is None else _shared_broker(request.config, invitation)
    yield broker
    if invitation is not None:
        broker.stop()


def _shared_broker(config: pytest.Config, invitation: Sequence[Any]) -> Broker:
    """The broker of a run with several workers. BrokerError if it could not be started."""
    from barnabas.testing.errors import BrokerError
    from barnabas.testing.fixtures.sharing import ask

    shared = ask(tuple(invitation))
    if "error" in shared:
        raise BrokerError(shared["error"])
    broker = _make_broker(config)
    broker.use(shared["url"], shared["token"])
    return broker


@contextmanager
def _in_one_sentence(about: str = "") -> Iterator[None]:
    """Have a test fail with the sentence of an error of the kit; a traceback would be of the plugin."""
    from barnabas.testing.errors import BrokerError, RefusedError

    try:
        yield
    except (BrokerError, RefusedError) as error:
        raise pytest.fail.Exception(f"{about}{error}", pytrace=False) from None


@pytest.fixture
def kafka(request: pytest.FixtureRequest, barnabas_broker: Broker) -> Iterator[Cluster]:
    """A cluster for this test alone, gone after it. `@pytest.mark.kafka(topics={"orders": 3}, config={...})`."""
    arguments = _marked(request.node)
    topics = arguments.pop("topics", None) or {}
    ignored = arguments.pop("ignore_lint", ())
    settings = request.config.stash[_SETTINGS]
    for name in ("as_version", "brokers"):
        if (value := getattr(settings, name)) is not None:
            arguments.setdefault(name, value)
    cassette = _cassette(request, arguments.pop("cassette", None), arguments.pop("cassette_timing", "fast"))
    with _in_one_sentence(f"{MARKER}: " if arguments else ""):
        cluster = barnabas_broker.open(**arguments) if cassette is None else cassette.open(barnabas_broker, arguments)
    try:
        if cassette is None or cassette.is_recorded:
            request.node.stash[_CLUSTER] = cluster
            with _in_one_sentence(f"{MARKER}: "):
                for name, partitions in topics.items():
                    cluster.topic(name).create(partitions)
            for seed in _seeds(request.config):
                cluster.load(seed)
        yield cluster
    finally:
        with _in_one_sentence():
            end = cluster.end(None if settings.lint == "off" else ignored)
        if cassette is not None:
            cassette.finish(end, passed=request.node.stash.get(_PASSED, False))
        _report_lint(request.node, end.findings, settings.lint)


def _cassette(request: pytest.FixtureRequest, name: str | bool | None, timing: str) -> CassetteOfTest | None:
    if name is None or name is False:
        return None
    from barnabas.testing.fixtures.cassettes import CassetteOfTest, name_of_test

    text = name_of_test(request.path, request.node.nodeid.partition("::")[2]) if name is True else name
    return CassetteOfTest(request.path, text, request.config.stash[_SETTINGS].record_mode, timing)


def _marked(item: pytest.Item) -> dict[str, Any]:
    """The arguments of a test's marker. The test fails with a sentence if they have another form."""
    marker = item.get_closest_marker("kafka")
    if marker is None:
        return {}
    if marker.args:
        pytest.fail(f'{MARKER} takes names, as topics={{"orders": 3}}, not {marker.args[0]!r}', pytrace=False)
    if unknown := [name for name in marker.kwargs if name not in MARKED]:
        pytest.fail(f"{MARKER}: Unknown: {', '.join(unknown)}; known are {', '.join(MARKED)}", pytrace=False)
    for name, form in (("topics", '{"orders": 3}'), ("config", '{"num.partitions": 3}')):
        if not isinstance(marker.kwargs.get(name) or {}, dict):
            pytest.fail(f"{MARKER}: {name} must be as {form}, not {marker.kwargs[name]!r}", pytrace=False)
    return dict(marker.kwargs)


def _needs(module: str, package: str) -> None:
    """Skip the test if the library of its fixture is not installed."""
    pytest.importorskip(module, reason=f"this fixture needs {module}: pip install {package}")


def _seeds(config: pytest.Config) -> list[Seed]:
    """The records of barnabas_load, read once."""
    if _SEEDS not in config.stash:
        from barnabas.testing.seed_files import read_seed

        config.stash[_SEEDS] = [read_seed(config.rootpath / name) for name in config.stash[_SETTINGS].load]
    return config.stash[_SEEDS]


def _report_lint(item: pytest.Item, findings: list[Finding], mode: str) -> None:
    """Warn of the mistakes of a test's clients, at the place of the test; with `error` the test fails."""
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
    _needs("pyspark", "'barnabas[spark]'")
    from barnabas.spark.session.spark import session

    spark = session("tests")
    yield spark
    spark.stop()


@pytest.fixture
def confluent(kafka_access: Access) -> Iterator[ConfluentClients]:
    """Clients of confluent-kafka for the test's cluster, closed after the test."""
    _needs("confluent_kafka", "confluent-kafka")
    from barnabas.testing.fixtures.clients import ConfluentClients

    with ConfluentClients(kafka_access) as clients:
        yield clients


@pytest.fixture
def kafka_python(kafka_access: Access) -> Iterator[KafkaPythonClients]:
    """Clients of kafka-python for the test's cluster, closed after the test."""
    _needs("kafka", "kafka-python")
    from barnabas.testing.fixtures.clients import KafkaPythonClients

    with KafkaPythonClients(kafka_access) as clients:
        yield clients


@pytest.fixture
def aio(kafka_access: Access) -> AiokafkaClients:
    """Clients of aiokafka for the test's cluster; each is started and closed by `async with`."""
    _needs("aiokafka", "aiokafka")
    from barnabas.testing.fixtures.clients import AiokafkaClients

    return AiokafkaClients(kafka_access)
