"""`barnabas record`: real clients through the proxy, several brokers, what is written and shown."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from barnabas.cli.app import run
from barnabas.testing import Broker, Cluster


@contextmanager
def recording(upstream: str, file: Path) -> Iterator[str]:
    """A proxy that records; its address."""
    command = [sys.executable, "-m", "barnabas", "record", "--upstream", upstream, "--file", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as proxy:
        assert proxy.stdout is not None
        try:
            yield proxy.stdout.readline().strip()
        finally:
            proxy.send_signal(signal.SIGINT)
            assert proxy.wait(20) == 0


def produce(address: str, topic: str, partitions: int) -> dict[int, str]:
    """Send a record to each partition; the brokers that the client knows."""
    producer = Producer({"bootstrap.servers": address, "client.id": "shop"})
    for index in range(partitions):
        producer.produce(topic, b"x", partition=index)
    assert producer.flush(20) == 0
    brokers = producer.list_topics(timeout=10).brokers
    return {number: f"{one.host}:{one.port}" for number, one in brokers.items()}


def test_what_is_recorded_is_shown(kafka: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kafka.topic("orders").create()
    file = tmp_path / "orders.cassette"
    with recording(kafka.bootstrap_servers, file) as address:
        assert set(produce(address, "orders", 1).values()) == {address}
    assert [record.text for record in kafka.topic("orders").records()] == ["x"]
    assert run(["record", "--show", str(file), "-o", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    (sent,) = [one for one in shown if one["api"] == "Produce"]
    assert sent["client_id"] == "shop"
    assert sent["request"]["acks"] == -1
    assert sent["response"]["responses"][0]["partitionResponses"][0]["baseOffset"] == 0
    assert run(["record", "--show", str(file)]) == 0
    assert "Produce" in capsys.readouterr().out


def test_clients_stay_with_the_proxy_of_several_brokers(barnabas_broker: Broker, tmp_path: Path) -> None:
    cluster = barnabas_broker.open(brokers=3)
    try:
        cluster.topic("orders").create(6)
        with recording(cluster.bootstrap_servers.split(",")[0], tmp_path / "it.cassette") as address:
            known = produce(address, "orders", 6)
        assert len(set(known.values())) == 3
        assert not set(known.values()) & set(cluster.bootstrap_servers.split(","))
        assert len(cluster.topic("orders").records()) == 6
    finally:
        cluster.close()


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([], 2, "give --upstream and --file, or --show"),
        (["--upstream", "nowhere", "--file", "{}/a"], 2, "--upstream must be HOST:PORT, not 'nowhere'"),
        (["--upstream", "127.0.0.1:1", "--file", "{}/there"], 1, "there: File exists"),
        (["--upstream", "127.0.0.1:1", "--file", "{}/a", "--listen", "192.0.2.1:1"], 1, "cannot listen on 192.0.2.1:1"),
        (["--show", "{}/none"], 1, "none: No such file or directory"),
        (["--show", "{}/there"], 1, "it is no cassette"),
    ],
)
def test_mistakes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, sentence: str
) -> None:
    (tmp_path / "there").write_text("{}\n")
    assert run(["record", *[one.replace("{}", str(tmp_path)) for one in arguments]]) == code
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
