"""The image's own listeners on their real ports, in network namespaces as a container engine makes them.

One namespace is the container, another is its host; a pair of virtual interfaces connects them, and a forwarder in the
host's publishes port 9092 on its loopback interface. Skipped where a user may not make namespaces.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.serve.image import Image
from tests.support.processes.commands import COMMAND, clean_environment
from tests.support.processes.server import ROOT

CONTAINER, HOST = "10.231.7.2", "10.231.7.1"
UNSHARE = ["unshare", "--user", "--map-root-user", "--net"]
PUBLISH = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
from tests.support.processes.forwarder import Forwarder
with Forwarder(({CONTAINER!r}, 9092), 9092):
    print("published", flush=True)
    sys.stdin.read()
"""


def _can_make_namespaces() -> bool:
    if shutil.which("unshare") is None or shutil.which("ip") is None or shutil.which("nsenter") is None:
        return False
    inner = [*UNSHARE, "sh", "-c", "ip link add name out0 type veth peer name in0 && unshare --net true"]
    return subprocess.run(inner, capture_output=True, timeout=60, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not _can_make_namespaces(), reason="no network namespaces here")


class Network:
    """Two namespaces, each held by a process that waits."""

    def __init__(self) -> None:
        self.host = self._hold(UNSHARE)
        enter = ["nsenter", "--preserve-credentials", f"--user=/proc/{self.host.pid}/ns/user"]
        self._enter_host = [*enter, f"--net=/proc/{self.host.pid}/ns/net"]
        self.container = self._hold([*self._enter_host, "unshare", "--net"])
        self._enter_container = [*enter, f"--net=/proc/{self.container.pid}/ns/net"]
        setup = f"ip link add name out0 type veth peer name in0 netns {self.container.pid}"
        self.run_on_host(
            "sh", "-ec", f"{setup}; ip address add {HOST}/24 dev out0; ip link set out0 up; ip link set lo up"
        )
        inside = f"ip address add {CONTAINER}/24 dev in0; ip link set in0 up; ip link set lo up"
        subprocess.run([*self._enter_container, "sh", "-ec", inside], check=True, timeout=60)

    @staticmethod
    def _hold(command: list[str]) -> subprocess.Popen[bytes]:
        holder = subprocess.Popen(
            [*command, "sh", "-c", "echo ready; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        return holder

    def run_on_host(self, *command: str, stdin: str = "") -> str:
        """Run a command in the host's namespace; its stdout."""
        done = subprocess.run(
            [*self._enter_host, *command],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=100,
            env=clean_environment() | {"PYTHONPATH": str(ROOT)},
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start_in_container(self, command: list[str], **environment: str) -> subprocess.Popen[str]:
        """Start a process in the container's namespace."""
        return self._start(self._enter_container, command, environment)

    def start_on_host(self, command: list[str]) -> subprocess.Popen[str]:
        """Start a process in the host's namespace."""
        return self._start(self._enter_host, command, {})

    @staticmethod
    def _start(enter: list[str], command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*enter, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=clean_environment() | {"PYTHONPATH": str(ROOT)} | environment,
        )

    def close(self) -> None:
        """End the processes that hold the namespaces."""
        for holder in (self.container, self.host):
            holder.communicate(timeout=30)


@pytest.fixture
def network() -> Iterator[Network]:
    network = Network()
    yield network
    network.close()


def test_docker_run_with_a_published_port(network: Network, tmp_path: Path) -> None:
    """`docker run -p 9092:9092 barnabas`: the host by localhost:9092, other containers by the container's address."""
    image = Image()
    environment = image.environment | {"KAFKA_LOG_DIRS": str(tmp_path / "data")}
    assert image.entry_point[:2] == ["barnabas", "serve"]
    assert image.health_check[0] == "barnabas"
    broker = network.start_in_container([*COMMAND, *image.entry_point[1:]], **environment)
    published = None
    try:
        assert broker.stdout is not None
        assert "PLAINTEXT://0.0.0.0:9092,INTERNAL://0.0.0.0:19092" in broker.stdout.readline()
        threading.Thread(target=broker.stdout.read, daemon=True).start()
        health = network.start_in_container([*COMMAND, *image.health_check[1:]], **environment)
        health.communicate(timeout=60)
        assert health.returncode == 0
        published = network.start_on_host([sys.executable, "-c", PUBLISH])
        assert published.stdout is not None
        assert published.stdout.readline() == "published\n"
        for address, advertised in (("localhost:9092", "localhost:9092"), (f"{CONTAINER}:19092", f"{CONTAINER}:19092")):
            network.run_on_host(*COMMAND, "produce", "t", "-b", address, stdin="hello\n")
            checks = json.loads(network.run_on_host(*COMMAND, "doctor", "-b", address, "-o", "json"))
            assert f"broker 1 advertises {advertised}: it answers there" in [check["text"] for check in checks]
        read = network.run_on_host(
            *COMMAND, "consume", "t", "-b", "localhost:9092", "-o", "beginning", "-e", "-f", "%v"
        )
        assert read == "hellohello"
    finally:
        if published is not None:
            published.communicate(timeout=30)
        broker.terminate()
        _, log = broker.communicate(timeout=30)
    assert broker.returncode == 0, log
