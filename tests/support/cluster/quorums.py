"""The kinds of controllers for the cluster tests: ours, a process or in this one, and Apache Kafka's, three JVMs."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

from barnabas.supervise import kafka_controllers
from barnabas.supervise.plan import KAFKA_CONTROLLERS, OUR_CONTROLLER, Controller, controller_keys
from tests.support.cluster.asking import quorum_leader
from tests.support.cluster.in_process import Host, LocalNode
from tests.support.jvm.jars import fetch
from tests.support.processes.ports import free_port
from tests.support.processes.server import Server
from tests.support.processes.warm_server import WarmServer

HOST = "127.0.0.1"
IN_PROCESS = "in-process"
"""The kind of a cluster whose nodes are in the process of the tests."""
KAFKA_POM = Path(__file__).resolve().parents[3] / "compat" / "kafka" / "pom.xml"


def new_cluster_id() -> str:
    """A random cluster id."""
    return base64.urlsafe_b64encode(b"\1" + os.urandom(15)).decode().rstrip("=")


class OurController(WarmServer):
    """A process with the role of the controller."""

    name = "controller"

    def __init__(self, data_dir: Path, keys: Mapping[str, str], cluster_id: str, port: int) -> None:
        super().__init__(data_dir, config=dict(keys), port=port)
        self._cluster_id = cluster_id

    def _command(self) -> tuple[list[str], dict[str, str]]:
        return node_command(self, super()._command(), self._cluster_id)


class KafkaController(Server):
    """A JVM with one of Kafka's controllers; `prepare_kafka` has formatted its directory."""

    name = "kafka-controller"

    def __init__(self, data_dir: Path, port: int) -> None:
        super().__init__(data_dir, port=port)

    def _command(self) -> tuple[list[str], dict[str, str]]:
        return kafka_controllers.command(fetch(KAFKA_POM), self.data_dir), dict(os.environ)

    def _is_ready(self) -> bool:
        try:
            with socket.create_connection((self.host, self.port), timeout=1):
                return True
        except OSError:
            return False


def node_command(
    server: Server, launch: tuple[list[str], dict[str, str]], cluster_id: str
) -> tuple[list[str], dict[str, str]]:
    """`barnabas serve` of a node: its listeners are keys, so `--listen` is left out."""
    command, environment = launch
    at = command.index("--listen")
    return [*command[:at], *command[at + 2 :]], environment | {"CLUSTER_ID": cluster_id}


class Quorum:
    """The controllers of a cluster."""

    def __init__(
        self,
        kind: str,
        folder: Path,
        keys: Mapping[str, str],
        *,
        host: Host,
        default_format: bool = False,
        is_small: bool = False,
    ) -> None:
        """`kind` is `ours`, `kafka` or `in-process`; `keys` are for each controller; `host` has those in this process.

        One of Kafka's that `is_small` has one controller in place of three.

        With `default_format` Kafka's controllers finalize the features that Kafka finalizes by default.
        """
        self.kind = kind
        self.cluster_id = new_cluster_id()
        ids = KAFKA_CONTROLLERS[: 1 if is_small else None] if kind == "kafka" else (OUR_CONTROLLER,)
        self.controllers = [Controller(node_id, HOST, free_port()) for node_id in ids]
        self.servers: dict[int, Server] = {}
        directories = {
            controller.node_id: folder / f"controller-{controller.node_id}" for controller in self.controllers
        }
        all_keys = {
            node_id: controller_keys(node_id, str(directory), self.controllers, keys)
            for node_id, directory in directories.items()
        }
        if kind == "kafka":
            nodes = {directories[node_id]: own for node_id, own in all_keys.items()}
            features = {} if default_format else kafka_controllers.FEATURES
            kafka_controllers.prepare(fetch(KAFKA_POM), nodes, self.cluster_id, features)
        for controller in self.controllers:
            directory = directories[controller.node_id]
            if kind == "kafka":
                self.servers[controller.node_id] = KafkaController(directory, controller.port)
            else:
                own = {key: value for key, value in all_keys[controller.node_id].items() if key != "log.dirs"}
                self.servers[controller.node_id] = (
                    LocalNode(directory, own, self.cluster_id, controller.port, host)
                    if kind == IN_PROCESS
                    else OurController(directory, own, self.cluster_id, controller.port)
                )

    def start(self) -> None:
        """Start all at once."""
        for server in self.servers.values():
            server.spawn()

    def wait_ready(self) -> None:
        """Wait until each serves."""
        for server in self.servers.values():
            server.wait_ready()

    def stop(self) -> None:
        """Stop all."""
        for server in self.servers.values():
            server.terminate()
        for server in self.servers.values():
            try:
                server.stop()
            except subprocess.TimeoutExpired:
                server.kill9()

    @property
    def active(self) -> Server:
        """The active controller: ours, or the one of Kafka's that leads the quorum."""
        if self.kind != "kafka":
            return self.servers[OUR_CONTROLLER]
        running = [controller for controller in self.controllers if self.servers[controller.node_id].is_running]
        return self.servers[quorum_leader([controller.address for controller in running])]
