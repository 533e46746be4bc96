"""The pytest plugin, in runs of pytest of its own: fixtures, marker, keys, workers, what a failure shows."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.testkit.plugin.inner_pytest import run, run_anew

TESTS = """
import pytest

def test_one(kafka):
    kafka.topic("orders").produce("x")
    assert len(kafka.topic("orders").records()) == 1

def test_another_has_none_of_it(kafka):
    assert kafka.topic("orders").records() == []

@pytest.mark.kafka(topics={"orders": 3}, config={"num.partitions": 2})
def test_marked(kafka, kafka_bootstrap_servers, kafka_client_config, kafka_options):
    assert kafka_client_config == {"bootstrap.servers": kafka.bootstrap_servers}
    assert kafka_options == {"kafka.bootstrap.servers": kafka_bootstrap_servers}
    kafka.topic("orders").produce("x", partition=2)
    kafka.topic("other").produce("x", partition=1)

def test_confluent(kafka, confluent):
    producer, consumer = confluent.producer(), confluent.consumer("orders")
    producer.produce("orders", "x"); producer.flush(10)
    while (message := consumer.poll(1)) is None or message.error(): pass
    assert message.value() == b"x" and confluent.admin().list_topics(timeout=10).topics

def test_kafka_python(kafka, kafka_python):
    kafka_python.producer().send("orders", b"x").get(10)
    assert next(iter(kafka_python.consumer("orders"))).value == b"x"
    assert "orders" in kafka_python.admin().list_topics()

def test_aiokafka(kafka, aio):
    import asyncio
    async def main():
        async with aio.producer() as producer:
            await producer.send_and_wait("orders", b"x")
        async with aio.consumer("orders") as consumer:
            assert (await consumer.getone()).value == b"x"
    asyncio.run(main())
"""


def test_fixtures(tmp_path: Path) -> None:
    assert "6 passed" in run_anew(tmp_path, TESTS)


def test_one_broker_for_all_workers(tmp_path: Path) -> None:
    text = """
import os, pytest
@pytest.mark.parametrize("n", range(8))
def test_it(n, barnabas_broker, kafka):
    with open(os.environ["SEEN"], "a") as seen:
        seen.write(barnabas_broker.channel.url + " " + os.environ["PYTEST_XDIST_WORKER"] + "\\n")
    kafka.topic("t").produce("x")
    assert len(kafka.topic("t").records()) == 1
"""
    seen = tmp_path / "seen"
    (tmp_path / "conftest.py").write_text(f"import os\nos.environ['SEEN'] = {str(seen)!r}\n")
    assert "8 passed" in run(tmp_path, text, "-n", "2")
    lines = {tuple(line.split()) for line in seen.read_text().splitlines()}
    assert len({url for url, _ in lines}) == 1
    assert {worker for _, worker in lines} == {"gw0", "gw1"}


def test_a_failure_is_shown_where_the_test_made_it(tmp_path: Path) -> None:
    text = "def test_it(kafka):\n    kafka.topic('t').produce('x')\n    kafka.topic('t').wait_for(2)\n"
    shown = run(tmp_path, text, "--barnabas-timeout", "0.1", code=1)
    assert "E       AssertionError: 2 records of t expected within 0.1 s, 1 found. It has 1 in all." in shown
    assert "t-0@0 key=null value='x'" in shown
    assert "barnabas/testing" not in shown


def test_keys_of_the_ini_file(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nbarnabas_timeout = 0.2\nbarnabas_config =\n  num.partitions=3\n")
    text = "def test_it(kafka):\n    kafka.topic('t').produce('x', partition=2)\n    kafka.topic('t').wait_for(2)\n"
    assert "expected within 0.2 s" in run(tmp_path, text, code=1)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--barnabas-timeout", "soon"], "barnabas_timeout must be a number of seconds, not 'soon'"),
        (["--barnabas-timeout", "-1"], "barnabas_timeout must be a number of seconds, not '-1'"),
        (["--barnabas-port", "kafka"], "barnabas_port must be a port, as 9092, not 'kafka'"),
        (["--barnabas-port", "99999"], "barnabas_port must be a port, as 9092, not '99999'"),
        (["--barnabas-config", "num.partitions"], "barnabas_config needs KEY=VALUE"),
        (["--barnabas-lint", "on"], "barnabas_lint must be off, warn or error, not 'on'"),
    ],
)
def test_a_wrong_setting_is_one_line_of_the_run(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    shown = run(tmp_path, "def test_it(kafka): pass\n", *arguments, code=4)
    assert shown.splitlines()[0].startswith(f"ERROR: {sentence}")


def test_a_port_that_is_in_use_is_one_line_of_the_run(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        shown = run(tmp_path, "def test_it(): pass\n", "--barnabas-port", str(port), code=4)
    assert shown.startswith(
        f"ERROR: barnabas_port: The broker did not start: barnabas serve: Cannot listen on 127.0.0.1:{port}"
    )
    assert "INTERNALERROR" not in shown


WRONG_MARKERS = {
    'topic={"orders": 1}': "@pytest.mark.kafka: Unknown: topic; known are topics, config, brokers, auth, ",
    "record=True": "@pytest.mark.kafka: Unknown: record; known are topics, ",
    'topics=["orders"]': """@pytest.mark.kafka: topics must be as {"orders": 3}, not ['orders']""",
    'topics={"a b": 1}': "@pytest.mark.kafka: INVALID_TOPIC_EXCEPTION: Topic name is invalid: 'a b'",
    "config=3": """@pytest.mark.kafka: config must be as {"num.partitions": 3}, not 3""",
    'config={"num.partition": 1}': "@pytest.mark.kafka: Unknown config key num.partition",
    '{"orders": 1}': """@pytest.mark.kafka takes names, as topics={"orders": 3}, not {'orders': 1}""",
    'as_version="1.0"': "@pytest.mark.kafka: as_version is one of 2.0, 2.1",
    'ignore_lint=["tiny"]': "There is no rule tiny; the rules are tiny-batches",
}


def test_a_wrong_marker_is_a_sentence(tmp_path: Path) -> None:
    tests = [f"@pytest.mark.kafka({marker})\ndef test_{n}(kafka): pass\n" for n, marker in enumerate(WRONG_MARKERS)]
    shown = run(tmp_path, "import pytest\n" + "".join(tests), code=1)
    assert [sentence for sentence in WRONG_MARKERS.values() if f"\n{sentence}" not in shown] == []
    assert f"{len(WRONG_MARKERS)} errors" in shown
    assert "plugin.py" not in shown


def test_a_broker_that_does_not_start_is_a_sentence_of_each_test(tmp_path: Path) -> None:
    text = "def test_it(kafka): pass\ndef test_other(kafka): pass\n"
    for workers in ([], ["-n", "2"]):
        shown = run(tmp_path, text, "--barnabas-config", "num.partitions=many", *workers, code=1)
        assert shown.count("\nThe broker did not start: barnabas serve: Invalid value many") == 2
        assert "plugin.py" not in shown


def test_what_the_broker_refuses_is_shown_where_the_test_asked_for_it(tmp_path: Path) -> None:
    shown = run(tmp_path, "def test_it(kafka):\n    kafka.topic('a b').create()\n", code=1)
    assert "test_it.py:2: RefusedError" in shown
    assert "barnabas/testing" not in shown


def test_what_ends_before_the_test_does_not_spoil_its_end(tmp_path: Path) -> None:
    """A cluster that the test itself closes; then a broker that is killed: a line for each test that needs it."""
    text = """
import os, signal
def test_it(kafka): kafka.close()
def test_killed(kafka, barnabas_broker): os.kill(barnabas_broker._process.pid, signal.SIGKILL)
def test_after(kafka): pass
"""
    shown = run(tmp_path, text, code=1)
    assert "2 passed, 2 errors" in shown
    assert shown.count("\nNo answer from the broker at http://127.0.0.1:") == 2
    assert "plugin.py" not in shown


def test_variables_for_another_broker_are_not_for_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_ADVERTISED_LISTENERS", "PLAINTEXT://kafka:9092")
    monkeypatch.setenv("KAFKA_NUM_PARTITIONS", "many")
    text = """
def test_it(kafka, confluent):
    producer = confluent.producer()
    producer.produce("orders", "x")
    assert producer.flush(20) == 0
"""
    assert "1 passed" in run(tmp_path, text)


@pytest.mark.parametrize("module", ["testcontainers.kafka", "testcontainers.community.kafka"])
def test_suites_of_testcontainers_run_as_they_are(tmp_path: Path, module: str) -> None:
    text = """
import pytest
from MODULE import KafkaContainer
@pytest.fixture(scope="session")
def kafka_server():
    with KafkaContainer("confluentinc/cp-kafka:7.6.0") as container:
        yield container.get_bootstrap_server()
def test_it(kafka_server):
    from kafka import KafkaProducer
    KafkaProducer(bootstrap_servers=[kafka_server]).send("t", b"x").get(10)
"""
    text = text.replace("MODULE", module)
    assert "1 passed" in run(tmp_path, text, "-p", "barnabas.testing.testcontainers")


def test_the_plugin_brings_nothing_before_a_fixture_is_used() -> None:
    code = """
import sys, pytest
before = set(sys.modules)
import barnabas.testing.plugin
print(sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.strip() == "['barnabas']"


def test_a_run_that_uses_no_fixture_imports_only_the_plugin(tmp_path: Path) -> None:
    """With a test that fails, whose report the plugin sees."""
    (tmp_path / "conftest.py").write_text("""
import sys
def pytest_sessionfinish():
    print([sorted(name for name in sys.modules if name.partition(".")[0] in ("barnabas", "trio", "h11", "click"))])
""")
    shown = run_anew(tmp_path, "def test_it(): assert False\n", "-p", "no:anyio", "-p", "no:trio", code=1)
    modules = ["", ".fixtures", ".fixtures.settings", ".plugin"]
    assert str([["barnabas", *[f"barnabas.testing{module}" for module in modules]]]) in shown


UNKEYED = """
import pytest

def unkeyed(kafka, confluent):
    kafka.topic("state").create(config={"cleanup.policy": "compact"})
    producer = confluent.producer()
    producer.produce("state", "a")
    producer.flush(10)

def test_mistake(kafka, confluent):
    unkeyed(kafka, confluent)

@pytest.mark.kafka(ignore_lint="unkeyed-into-compacted")
def test_ignored(kafka, confluent):
    unkeyed(kafka, confluent)
"""


def run_with_warnings(folder: Path, *arguments: str, code: int = 0) -> str:
    """A run of two tests whose clients make the same mistake, which one ignores."""
    return run(folder, UNKEYED, "-W", "default", *arguments, code=code)


def test_findings_of_lint_are_warnings_of_the_test(tmp_path: Path) -> None:
    shown = run_with_warnings(tmp_path)
    assert "2 passed, 1 warning" in shown
    assert "test_it.py::test_mistake" in shown
    assert "BarnabasLintWarning: unkeyed-into-compacted by " in shown
    assert "The topic is compacted, so every record needs a key" in shown


def test_lint_is_silenced_by_pytests_own_filters(tmp_path: Path) -> None:
    assert "2 passed in" in run_with_warnings(tmp_path, "-W", "ignore::barnabas.testing.BarnabasLintWarning")


@pytest.mark.parametrize(("mode", "code", "shown"), [("off", 0, "2 passed in"), ("error", 1, "2 passed, 1 error")])
def test_lint_of_the_whole_run(tmp_path: Path, mode: str, code: int, shown: str) -> None:
    output = run_with_warnings(tmp_path, "--barnabas-lint", mode, code=code)
    assert shown in output
    assert ("unkeyed-into-compacted by" in output) == (mode == "error")


def test_a_failure_shows_what_clients_did(tmp_path: Path) -> None:
    text = """
def test_it(kafka, confluent):
    producer = confluent.producer(**{"client.id": "shop"})
    producer.produce("orders", "a"); producer.flush(10)
    assert False
"""
    shown = run(tmp_path, text, code=1)
    assert "- Barnabas: what clients did -" in shown
    section = shown.partition("- Barnabas: what clients did -")[2]
    assert "shop" in section
    assert "Produce" in section


SEVERAL = """
import pytest

@pytest.mark.kafka(brokers=3, topics={"orders": 3})
def test_three(kafka, confluent):
    assert len(kafka.bootstrap_servers.split(",")) == 3
    kafka.kill(3)
    producer = confluent.producer()
    for index in range(3):
        producer.produce("orders", "x", partition=index)
    assert producer.flush(30) == 0
    assert len(kafka.topic("orders").records()) == 3

def test_as_many_as_the_run_says(kafka):
    assert len(kafka.bootstrap_servers.split(",")) == BROKERS
"""


def test_clusters_of_several_brokers(tmp_path: Path) -> None:
    assert "2 passed" in run(tmp_path, SEVERAL.replace("BROKERS", "1"))
    (tmp_path / "pytest.ini").write_text("[pytest]\nbarnabas_brokers = 2\n")
    assert "2 passed" in run(tmp_path, SEVERAL.replace("BROKERS", "2"))
    assert "2 passed" in run(tmp_path, SEVERAL.replace("BROKERS", "1"), "--barnabas-brokers", "1")
    assert "brokers must be 1 to 9, not 10" in run(
        tmp_path, "def test_it(kafka): pass\n", "--barnabas-brokers", "10", code=1
    )
    assert "barnabas_brokers must be a number" in run(
        tmp_path, "def test_it(kafka): pass\n", "--barnabas-brokers", "x", code=4
    )
