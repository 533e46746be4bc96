"""The broker's process: isolated from the user's directory, ended with the tests, found by environment variable."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from barnabas.testing import Broker, BrokerError, KafkaContainer, RefusedError


def test_a_config_that_no_broker_starts_with() -> None:
    with pytest.raises(BrokerError, match=r"The broker did not start: .*num\.partitions"):
        Broker({"num.partitions": "many"}).start()


def test_modules_of_the_users_directory_are_not_imported(tmp_path: Path) -> None:
    """With a directory that has a `trio.py` and a `queue.py`, and PYTHONPATH naming it."""
    for name in ("trio.py", "queue.py", "sitecustomize.py"):
        (tmp_path / name).write_text("raise SystemExit('a module of the user')\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    process = KafkaContainer()
    process.env |= environment
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        with process as container:
            assert container.get_bootstrap_server().startswith("127.0.0.1:")
    finally:
        os.chdir(here)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_broker_ends_with_the_tests_whatever_ends_them(tmp_path: Path, how: signal.Signals) -> None:
    """And nothing is left of it."""
    code = """
        import sys
        from barnabas.testing import Broker
        broker = Broker()
        broker.start().topic("orders").produce("x")
        broker.open()
        print(broker._process.pid, flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, env=environment, text=True) as tests:
        assert tests.stdout is not None
        broker = psutil.Process(int(tests.stdout.readline()))
        assert list(tmp_path.iterdir())
        tests.send_signal(how)
    broker.wait(20)
    assert list(tmp_path.iterdir()) == []
    assert not broker.is_running()
    assert list(tmp_path.iterdir()) == [], "no file of it is left"


def test_a_broker_that_is_running_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker() as running:
        running.topic("orders").produce("x")
        channel = running._link.channel
        monkeypatch.setenv("BARNABAS_CONTROL", f"http://{channel.token}@{channel.url.removeprefix('http://')}")
        used = Broker({"num.partitions": 3})
        with used as same:
            assert same.bootstrap_servers == running.bootstrap_servers
            assert len(same.topic("orders").records()) == 1
            assert used.open().topic("orders").produce("x", partition=2).partition == 2
        assert len(running.topic("orders").records()) == 1, "it was not ended with who used it"


@pytest.mark.parametrize("control", ["localhost:1234", "http://127.0.0.1:1", "http://token@"])
def test_no_address_of_a_running_broker(monkeypatch: pytest.MonkeyPatch, control: str) -> None:
    monkeypatch.setenv("BARNABAS_CONTROL", control)
    with pytest.raises(BrokerError, match="BARNABAS_CONTROL must be http://TOKEN@HOST:PORT"):
        Broker().start()


def test_a_running_broker_has_a_port_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BARNABAS_CONTROL", "http://token@127.0.0.1:1")
    with pytest.raises(BrokerError, match="names a broker that runs already, so none is started on port 9092"):
        Broker(port=9092).start()


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BARNABAS_CONTROL", "http://token@127.0.0.1:1")
    with pytest.raises(BrokerError, match=r"No answer from the broker at http://127\.0\.0\.1:1"):
        Broker().start()


def test_a_host_of_ipv6() -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    broker = Broker(host="::1")
    with broker as kafka, broker.open() as other:
        for cluster in (kafka, other):
            assert cluster.bootstrap_servers.startswith("[::1]:")
            cluster.topic("orders").produce("x")


def test_another_token(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker() as running:
        address = running._link.channel.url.removeprefix("http://")
        monkeypatch.setenv("BARNABAS_CONTROL", f"http://token@{address}")
        with pytest.raises(RefusedError, match=rf"The broker at http://{address} has another token"):
            Broker().start()


def test_a_broker_that_has_ended_by_itself() -> None:
    broker = Broker()
    with broker as kafka:
        assert broker._process is not None
        os.kill(broker._process.pid, signal.SIGKILL)
        broker._process._process.wait()
        with pytest.raises(BrokerError, match=r"Its process has ended with exit code -9; it said last: .*INFO"):
            kafka.topic("orders").records()


def test_a_broker_that_runs_is_not_started_again() -> None:
    broker = Broker()
    with pytest.raises(BrokerError, match=r"The broker does not run: use it in `with Broker\(\)"):
        broker.open()
    with broker, pytest.raises(BrokerError, match="The broker runs already"):
        broker.start()


def test_a_container_by_its_methods() -> None:
    from confluent_kafka.admin import AdminClient

    container = KafkaContainer("confluentinc/cp-kafka:7.6.0").with_kraft().with_env("KAFKA_NUM_PARTITIONS", "5")
    with container as kafka:
        host, port = kafka.get_container_host_ip(), kafka.get_exposed_port(kafka.port)
        assert kafka.get_bootstrap_server() == f"{host}:{port}"
        assert kafka.get_wrapped_container().status == "running"
        assert re.search(rb"\[KafkaServer id=\d+\] started", kafka.get_logs()[1]), "what testcontainers waits for"
        admin = AdminClient({"bootstrap.servers": kafka.get_bootstrap_server(), "log_level": 2})
        from confluent_kafka.admin import NewTopic

        admin.create_topics([NewTopic("orders")])["orders"].result(20)
        assert len(admin.list_topics("orders", timeout=20).topics["orders"].partitions) == 5
    container.stop()
