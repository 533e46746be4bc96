"""Client telemetry (KIP-714) with real clients: what librdkafka and the Java client push is shown at /metrics."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.wire.messages import configs as c
from compat.java import program
from tests.support.processes.ports import free_port
from tests.support.processes.server import Server
from tests.support.requests.raw_client import RawClient

WAIT_S = 60.0


class Watched:
    """A broker with a listener of metrics, and subscriptions for all clients."""

    def __init__(self, server: Server, port: int) -> None:
        self.server = server
        self._url = f"http://127.0.0.1:{port}/metrics"
        raw = RawClient(server.bootstrap)
        configs = [
            c.IncrementalAlterConfigsRequestAlterableConfig(name=name, config_operation=0, value=value)
            for name, value in (("metrics", "*"), ("interval.ms", "200"))
        ]
        resource = c.IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=16, resource_name="all", configs=configs
        )
        (result,) = raw(c.IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
        assert result.error_code == 0, result
        raw.close()

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(f"{self._url.removesuffix('metrics')}{path}", timeout=WAIT_S) as response:
            assert response.status == 200
            content: bytes = response.read()
            return content

    def lines(self) -> list[str]:
        with urllib.request.urlopen(self._url, timeout=WAIT_S) as response:
            assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            return response.read().decode().splitlines()

    def wait_for(self, *parts: str, work: Callable[[], object]) -> str:
        """Do work until a line has all parts; returns it."""
        deadline = time.monotonic() + WAIT_S
        while True:
            work()
            lines = self.lines()
            for line in lines:
                if all(part in line for part in parts):
                    return line
            assert time.monotonic() < deadline, (parts, lines)


@pytest.fixture
def watched(start_broker: Callable[..., Server]) -> Watched:
    port = free_port()
    return Watched(start_broker(config={"barnabas.metrics.listener": f"127.0.0.1:{port}"}), port)


def test_librdkafka_pushes_its_metrics(watched: Watched) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    common = {"bootstrap.servers": watched.server.bootstrap}
    producer = confluent_kafka.Producer({**common, "client.id": "lib-producer"})
    consumer = confluent_kafka.Consumer({**common, "client.id": "lib-consumer", "group.id": "g"})
    consumer.subscribe(["words"])

    def work() -> None:
        producer.produce("words", b"x")
        producer.flush()
        consumer.poll(0.1)

    line = watched.wait_for(
        "org_apache_kafka_producer_node_request_latency_avg{", 'client_id="lib-producer"', work=work
    )
    assert 'client_software_name="confluent-kafka-python"' in line
    assert 'node_id="' in line
    watched.wait_for("org_apache_kafka_consumer_", 'client_id="lib-consumer"', work=work)
    consumer.close()
    assert any('client_id="lib-consumer"' in line for line in watched.lines()), "kept after the last push"


@pytest.mark.jvm
@pytest.mark.timeout(program.RUN_TIMEOUT_S)
def test_the_java_client_pushes_its_metrics(watched: Watched) -> None:
    scenario = "transaction_across_topics"  # its clients live long enough to learn what to push, and to push it

    def run() -> None:
        done = program.run_scenarios(watched.server.bootstrap, scenario)
        assert f"PASS {scenario}" in done.out, done.out + done.errors

    java = ('client_software_name="apache-kafka-java"', 'client_software_version="4.4.0"')
    for kind in ("producer", "consumer"):
        created = f"org_apache_kafka_{kind}_connection_creation_total{{"
        line = watched.wait_for(created, *java, work=run)
        assert float(line.rpartition(" ")[2]) >= 1, line
    assert "# TYPE org_apache_kafka_producer_connection_creation_total counter" in watched.lines()


def test_the_figures_of_the_broker_are_shown(watched: Watched) -> None:
    lines = watched.lines()
    figures = {line.split()[0]: line.split()[1] for line in lines if line.startswith("barnabas_")}
    assert float(figures["barnabas_uptime_seconds"]) > 0
    assert float(figures["barnabas_memory_bytes"]) > 1_000_000
    assert figures["barnabas_client_metrics_dropped_total"] == "0"


def test_the_broker_counts_its_requests_and_answers_probes(watched: Watched) -> None:
    """Over HTTP, as Prometheus and Kubernetes ask; the values of each metric are tested in tests/broker/metrics."""
    raw = RawClient(watched.server.bootstrap)
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families("\n".join(watched.lines()) + "\n")
        for sample in family.samples
    }
    assert samples["barnabas_requests_total", "IncrementalAlterConfigs"] == 1
    assert samples["barnabas_request_seconds_count", "IncrementalAlterConfigs"] == 1
    assert samples["kafka_server_socket_server_metrics_connection_count", "PLAINTEXT", "0"] >= 1
    assert samples["barnabas_turn_seconds_count",] > 0
    assert samples["kafka_brokers",] == 1
    for path in ("health", "ready"):
        assert watched.get(path) == b"OK\n"
    raw.close()
