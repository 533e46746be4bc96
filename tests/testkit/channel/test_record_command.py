"""`barnabas record` and `barnabas replay`: real clients, several brokers, the written file, mistakes, memory."""

from __future__ import annotations

import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.cli.app import run
from barnabas.kit.cassette.exchange import Exchange
from barnabas.kit.cassette.text import HEADER, read
from barnabas.testing import Broker, Cluster
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.messages.headers import RequestHeader
from barnabas.wire.messages.security.sasl import SaslHandshakeRequest
from tests.support.sockets import is_ended_by_peer
from tests.support.waiting import wait_for


class Command:
    """A command that serves until it is stopped."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        self.address = process.stdout.readline().strip()

    def stop(self) -> tuple[int, str]:
        """Its exit code and what it has said."""
        self.process.send_signal(signal.SIGINT)
        _, stderr = self.process.communicate(timeout=30)
        return self.process.returncode, stderr


@contextmanager
def serving(*arguments: str | Path) -> Iterator[Command]:
    """A command that serves."""
    command = [sys.executable, "-m", "barnabas", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield Command(process)
        finally:
            if process.returncode is None:
                process.kill()


def recording(upstream: str, file: Path) -> Any:
    """A proxy that records."""
    return serving("record", "--upstream", upstream, "--file", file)


def exchanges(file: Path) -> list[Exchange]:
    """The requests in a file."""
    with file.open(encoding="utf-8") as lines:
        return list(read(lines))


def produce(address: str, topic: str, partitions: int) -> dict[int, str]:
    """Send a record to each partition; the brokers that the client knows."""
    producer = Producer({"bootstrap.servers": address, "client.id": "shop"})
    for index in range(partitions):
        producer.produce(topic, b"x", partition=index)
    assert producer.flush(20) == 0
    brokers = producer.list_topics(timeout=10).brokers
    return {number: f"{broker.host}:{broker.port}" for number, broker in brokers.items()}


def test_a_session_is_recorded_and_replayed(kafka: Cluster, tmp_path: Path) -> None:
    kafka.topic("orders").create()
    file = tmp_path / "orders.cassette"
    with recording(kafka.bootstrap_servers, file) as proxy:
        assert set(produce(proxy.address, "orders", 1).values()) == {proxy.address}
        code, stderr = proxy.stop()
    assert code == 0
    assert [record.text for record in kafka.topic("orders").records()] == ["x"]
    recorded = exchanges(file)
    assert stderr == f"{len(recorded)} requests in {file}\n"
    (sent,) = [exchange for exchange in recorded if exchange.api == ApiKey.PRODUCE]
    assert sent.client_id == "shop"
    assert '"records": [{"offset": 0, ' in file.read_text()
    for timing in ("fast", "recorded"):
        with serving("replay", file, "--timing", timing) as player:
            assert set(produce(player.address, "orders", 1).values()) == {player.address}
            assert player.stop() == (0, "")


def test_what_a_replay_does_not_have(kafka: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "orders.cassette"
    with recording(kafka.bootstrap_servers, file) as proxy:
        create(proxy.address, "orders")
        assert proxy.stop()[0] == 0
    with serving("replay", file) as player:
        create(player.address, "orders")
        with pytest.raises(KafkaException, match=r"INVALID_REQUEST.*CreateTopics v.*'other'"):
            create(player.address, "other")
        code, stderr = player.stop()
    assert code == 1
    assert f"{file} has no answer to what was asked:\nCreateTopics v" in stderr
    assert "; no CreateTopics comes any more\n" in stderr


def create(address: str, topic: str) -> None:
    """Create a topic."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(30)


def test_clients_stay_with_the_proxy_of_several_brokers(barnabas_broker: Broker, tmp_path: Path) -> None:
    cluster = barnabas_broker.open(brokers=3)
    try:
        cluster.topic("orders").create(6)
        with recording(cluster.bootstrap_servers.split(",")[0], tmp_path / "it.cassette") as proxy:
            known = produce(proxy.address, "orders", 6)
            assert proxy.stop()[0] == 0
        assert len(set(known.values())) == 3
        assert not set(known.values()) & set(cluster.bootstrap_servers.split(","))
        assert len(cluster.topic("orders").records()) == 6
    finally:
        cluster.close()


def test_clients_are_told_the_address_that_they_have_reached(kafka: Cluster, tmp_path: Path) -> None:
    """Also where the command listens on all addresses."""
    file = tmp_path / "orders.cassette"
    with serving("record", "--upstream", kafka.bootstrap_servers, "--listen", "0.0.0.0:0", "--file", file) as proxy:
        port = proxy.address.removeprefix("0.0.0.0:")
        assert set(produce(f"127.0.0.1:{port}", "orders", 1).values()) == {f"127.0.0.1:{port}"}
        assert proxy.stop()[0] == 0
    with serving("replay", file, "--listen", "0.0.0.0:0") as player:
        port = player.address.removeprefix("0.0.0.0:")
        assert set(produce(f"127.0.0.1:{port}", "orders", 1).values()) == {f"127.0.0.1:{port}"}
        assert player.stop()[0] == 0


def test_a_recording_keeps_nothing_in_memory(kafka: Cluster, tmp_path: Path) -> None:
    """90 MB through the proxy after the first 18 MB take no memory that stays."""
    kafka.topic("orders").create()
    file = tmp_path / "long.cassette"
    with recording(kafka.bootstrap_servers, file) as proxy:
        memory = psutil.Process(proxy.process.pid)
        producer = Producer({"bootstrap.servers": proxy.address})

        def send(megabytes: int) -> int:
            for _ in range(megabytes):
                producer.produce("orders", b"x" * 900_000, partition=0)
                assert producer.flush(20) == 0
            return memory.memory_info().rss

        before = send(20)
        grown = send(100) - before
        assert proxy.stop()[0] == 0
    assert file.stat().st_size > 108_000_000
    assert grown < 30_000_000


def test_a_killed_recording_is_whole_up_to_its_last_request(kafka: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "orders.cassette"
    with recording(kafka.bootstrap_servers, file) as proxy:
        produce(proxy.address, "orders", 1)
        wait_for(lambda: '"Produce"' in file.read_text(encoding="utf-8"), "the request in the file")  # by a thread
        proxy.process.kill()
        proxy.process.wait()
    assert ApiKey.PRODUCE in {exchange.api for exchange in exchanges(file)}


def test_a_broker_that_is_gone(barnabas_broker: Broker, tmp_path: Path) -> None:
    """The connection is closed, and one line says why; the proxy goes on."""
    cluster = barnabas_broker.open()
    with recording(cluster.bootstrap_servers, tmp_path / "a") as proxy:
        create(proxy.address, "orders")
        cluster.close()
        with pytest.raises(KafkaException):
            AdminClient({"bootstrap.servers": proxy.address}).list_topics(timeout=1)
        code, stderr = proxy.stop()
    assert code == 0
    assert f"No connection to the broker at {cluster.bootstrap_servers}" in stderr
    assert "Traceback" not in stderr


def test_a_recording_without_descriptors_goes_on_when_there_are_some(kafka: Cluster, tmp_path: Path) -> None:
    with recording(kafka.bootstrap_servers, tmp_path / "a") as proxy:
        host, _, port = proxy.address.rpartition(":")
        before = psutil.Process(proxy.process.pid).num_fds()
        with socket.create_connection((host, int(port)), timeout=20):
            wait_for(lambda: psutil.Process(proxy.process.pid).num_fds() == before + 2, "a connection")
            limits = resource.prlimit(proxy.process.pid, resource.RLIMIT_NOFILE)
            used = {int(entry.name) for entry in Path(f"/proc/{proxy.process.pid}/fd").iterdir()}
            following = next(number for number in count() if number not in used)
            resource.prlimit(proxy.process.pid, resource.RLIMIT_NOFILE, (following, limits[1]))
            with socket.create_connection((host, int(port)), timeout=20):
                assert proxy.process.stderr is not None
                line = proxy.process.stderr.readline()
        assert "Cannot accept connections for now: Too many open files" in line
        resource.prlimit(proxy.process.pid, resource.RLIMIT_NOFILE, limits)
        create(proxy.address, "orders")
        code, rest = proxy.stop()
    assert code == 0
    assert "Traceback" not in rest


def test_passwords_that_are_sent_without_a_request(kafka: Cluster, tmp_path: Path) -> None:
    """After a SaslHandshake of version 0 they would be frames of their own: the connection is closed before."""
    file = tmp_path / "orders.cassette"
    header = RequestHeader(request_api_key=17, request_api_version=0, correlation_id=1, client_id="old").encode(1)
    handshake = header + SaslHandshakeRequest(mechanism="PLAIN").encode(0)
    with recording(kafka.bootstrap_servers, file) as proxy:
        host, _, port = proxy.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(len(handshake).to_bytes(4, "big") + handshake)
            assert is_ended_by_peer(connection)
        code, stderr = proxy.stop()
    assert code == 0
    assert "a client logs in with SaslHandshake of version 0, which is not recorded" in stderr
    assert file.read_text() == f"{HEADER}\n"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["record"], 2, "missing option '--upstream'"),
        (["record", "--upstream", "nowhere", "--file", "{}/a"], 2, "--upstream must be HOST:PORT"),
        (["record", "--upstream", "127.0.0.1:1", "--file", "{}/a"], 1, "there is no broker at 127.0.0.1:1"),
        (["record", "--upstream", "{broker}", "--file", "{}/there"], 1, "there: File exists"),
        (["record", "--upstream", "{broker}", "--file", "{}/no/a"], 1, "a: No such file or directory"),
        (
            ["record", "--upstream", "{broker}", "--file", "{}/a", "--listen", "192.0.2.1:1"],
            1,
            "cannot listen on 192.0.2.1:1",
        ),
        (["replay", "{}/none"], 1, "none: No such file or directory"),
        (["replay", "{}/there"], 1, "there: it is no cassette"),
        (["replay", "{}/cut"], 1, "cut: it is cut: the request that begins on line 2 has no end"),
        (["replay", "{}/later"], 1, "later: it is a cassette of version 2, and this Barnabas reads version 1"),
        (["replay", "{}/empty", "--listen", "192.0.2.1:1"], 1, "cannot listen on 192.0.2.1:1"),
        (["replay", "{}/empty", "--timing", "slow"], 2, "'slow' is not one of 'fast', 'recorded'"),
    ],
)
def test_mistakes(
    kafka: Cluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    sentence: str,
) -> None:
    for name, text in {
        "there": "{}\n",
        "cut": f"{HEADER}\n{{\n",
        "later": '{"cassette": 2}\n',
        "empty": f"{HEADER}\n",
    }.items():
        (tmp_path / name).write_text(text)
    argv = [
        argument.replace("{}", str(tmp_path)).replace("{broker}", kafka.bootstrap_servers) for argument in arguments
    ]
    assert run(argv) == code
    stderr = capsys.readouterr().err
    assert sentence in stderr
    assert "Traceback" not in stderr
    assert not (tmp_path / "a").exists()
