"""Clusters on this machine as one server each: `barnabas serve --brokers N`, and Kafka 4.4.0 in the same shape."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterable
from pathlib import Path

import psutil

from barnabas.supervise import kafka_controllers
from barnabas.supervise.members import new_cluster_id
from barnabas.supervise.plan import OUR_CONTROLLER, Controller, broker_keys, controller_keys
from tests.support.jvm.jars import fetch
from tests.support.processes.kafka import HEAP
from tests.support.processes.ports import free_port
from tests.support.processes.server import ROOT, BarnabasServer, Server


class BarnabasCluster(BarnabasServer):
    """A supervisor with its brokers and controller; figures are sums over all processes."""

    name = "barnabas-cluster"

    def __init__(
        self,
        data_dir: Path,
        *,
        brokers: int = 3,
        config: dict[str, str] | None = None,
        port: int = 0,
        checkout: Path = ROOT,
        options: tuple[str, ...] = (),
    ) -> None:
        super().__init__(data_dir, config=config, port=port, checkout=checkout)
        self.brokers = brokers
        self._options = options
        self._addresses: list[str] = []

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(self._addresses) or super().bootstrap

    def _command(self) -> tuple[list[str], dict[str, str]]:
        self.port = self.port or _following_ports(self.brokers)
        command, environment = super()._command()
        return [*command, "--brokers", str(self.brokers), *self._options], environment

    def _is_ready(self) -> bool:
        try:
            text = self._ready_file.read_text().strip()
        except FileNotFoundError:
            return False
        self._addresses = text.split(",") if text else []
        return len(self._addresses) == self.brokers

    def pid_of(self, broker: int) -> int:
        """The process id of a broker."""
        from barnabas.supervise.state import read

        return read(str(self.data_dir)).node(broker).pid or 0

    def kill9(self) -> None:
        """Kill the supervisor and all nodes at once."""
        for process in reversed(self.processes()):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        super().kill9()

    def log(self) -> str:
        """The ends of the outputs of all nodes."""
        nodes = "".join(f"--- {path.name}\n{path.read_text()[-3000:]}\n" for path in self.data_dir.glob("*.log"))
        return super().log() + nodes


def _following_ports(count: int) -> int:
    """The first of so many free ports in a row; the others are not reserved."""
    from barnabas.supervise.members import is_free

    while True:
        first = free_port()
        if all(is_free("127.0.0.1", port) for port in range(first, first + count)):
            return first


class KafkaCluster(Server):
    """Three brokers and one controller of Kafka, each a JVM with Kafka's defaults for its heap."""

    name = "kafka-cluster"

    def __init__(self, data_dir: Path, *, brokers: int = 3, config: dict[str, str] | None = None) -> None:
        super().__init__(data_dir, config=config)
        self.brokers = brokers
        self._ports = {broker: free_port() for broker in range(1, brokers + 1)}
        self.port = self._ports[1]
        self._members: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(f"{self.host}:{port}" for port in self._ports.values())

    def prepare(self) -> None:
        """Format all directories."""
        controllers = [Controller(OUR_CONTROLLER, self.host, free_port())]
        keys = {OUR_CONTROLLER: controller_keys(OUR_CONTROLLER, "", controllers, self.config)}
        for broker, port in self._ports.items():
            keys[broker] = broker_keys(broker, self.host, port, "", controllers, self.config)
        nodes = {self.data_dir / str(node): own for node, own in keys.items()}
        kafka_controllers.prepare(self._jars(), nodes, new_cluster_id())

    @staticmethod
    def _jars() -> Path:
        return fetch(ROOT / "compat" / "kafka" / "pom.xml")

    def _command(self) -> tuple[list[str], dict[str, str]]:
        raise NotImplementedError("a cluster has a command for each node")

    def spawn(self) -> None:
        """Start all nodes at once."""
        with self.log_path.open("ab") as log:
            for node in (OUR_CONTROLLER, *self._ports):
                folder = self.data_dir / str(node)
                java = kafka_controllers.java(self._jars(), folder, *HEAP)
                command = [*java, "kafka.Kafka", str(folder / "server.properties")]
                self._members[node] = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(os.environ)
                )
        self.process = self._members[1]

    def _is_ready(self) -> bool:
        try:
            for port in self._ports.values():
                socket.create_connection((self.host, port), timeout=2).close()
        except OSError:
            return False
        return True

    def pid_of(self, broker: int) -> int:
        """The process id of a broker."""
        return self._members[broker].pid

    def processes(self) -> list[psutil.Process]:
        """All JVMs."""
        return [psutil.Process(member.pid) for member in self._members.values() if member.poll() is None]

    def stop(self, timeout_s: float = 30.0) -> int | None:
        """Stop the brokers, then the controller; JVMs that take too long are killed."""
        for node in (*self._ports, OUR_CONTROLLER):
            if node in self._members:
                self._members[node].terminate()
                if node == max(self._ports):
                    self._wait(self._ports, timeout_s)
        self._wait(self._members, timeout_s)
        return 0

    def _wait(self, nodes: Iterable[int], limit_s: float) -> None:
        for node in nodes:
            process = self._members.get(node)
            if process is None:
                continue
            try:
                process.wait(limit_s)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def kill9(self) -> None:
        """Kill all JVMs."""
        for process in self._members.values():
            process.kill()
            process.wait()
