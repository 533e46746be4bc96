"""Apache Kafka 4.4.0 for the benchmark and the tests: a single KRaft node with Kafka's defaults.

Only settings that a single node requires are set: the replication factors of the internal topics and the listeners.
`python -m tests.support.processes.kafka [PORT]` runs it until it is interrupted.
"""

from __future__ import annotations

import base64
import os
import signal
import socket
import struct
import sys
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path

from tests.support.jvm import host
from tests.support.jvm.jars import classpath, jars
from tests.support.processes.ports import free_port
from tests.support.processes.server import ROOT, Server

VERSION = "4.4.0"
POM = ROOT / "compat" / "kafka" / "pom.xml"
HEAP = ["-Xms1g", "-Xmx1g", "-XX:+UseG1GC"]
SINGLE_NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
LOG4J = """
<Configuration status="WARN">
  <Appenders><Console name="out"><PatternLayout pattern="[%d] %p %m (%c)%n"/></Console></Appenders>
  <Loggers><Root level="INFO"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"""
API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, 1, -1)


class KafkaServer(Server):
    """Kafka on a loopback port.

    `data_dir` has `server.properties`, which is written once, and the log directory `logs`, which is formatted once.
    With `dynamic_quorum` the voters are records of the metadata log (KIP-853).
    """

    name = "kafka"

    def __init__(
        self,
        data_dir: Path,
        *,
        config: dict[str, str] | None = None,
        port: int = 0,
        jvm_options: Sequence[str] = HEAP,
        dynamic_quorum: bool = False,
        cluster_id: str | None = None,
    ) -> None:
        super().__init__(data_dir, config=config, port=port)
        self.jvm_options = jvm_options
        self.dynamic_quorum = dynamic_quorum
        self.cluster_id = cluster_id or base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self.properties = self.data_dir / "server.properties"
        self.log_dir = self.data_dir / "logs"

    def _command(self) -> tuple[list[str], dict[str, str]]:
        if not self.properties.exists():
            self.write_properties()
        if not (self.log_dir / "meta.properties").exists():
            self._format()
        java = ["java", *self.jvm_options, f"-Dlog4j2.configurationFile={self.data_dir / 'log4j2.xml'}"]
        return [*java, "-cp", classpath(POM), "kafka.Kafka", str(self.properties)], dict(os.environ)

    def write_properties(self) -> None:
        """Reserve the ports and write the configuration."""
        self.port = self.port or free_port()
        controller = f"{self.host}:{free_port()}"
        settings = SINGLE_NODE | {
            "listeners": f"{self._listeners()},CONTROLLER://{controller}",
            "log.dirs": str(self.log_dir),
        }
        if self.dynamic_quorum:
            settings["controller.quorum.bootstrap.servers"] = controller
        else:
            settings["controller.quorum.voters"] = f"1@{controller}"
        settings["listener.security.protocol.map"] += "".join(f",{name}:{name}" for name in self.ports)
        settings |= self.config
        (self.data_dir / "log4j2.xml").write_text(LOG4J)
        self.properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    def _format(self) -> None:
        arguments = [f"--cluster-id={self.cluster_id}", "-c", str(self.properties)]
        if self.dynamic_quorum:
            arguments.append("--standalone")
        done = host.run(jars(POM), "kafka.tools.StorageTool", "format", *arguments)
        if done.code != 0:
            self.properties.unlink()
            raise RuntimeError(f"Kafka could not format its data directory:\n{done.out}{done.errors}")

    def _is_ready(self) -> bool:
        """Kafka opens its ports one after the other, and before it is ready: it is, when it answers ApiVersions."""
        if not all(map(_accepts, self._addresses_of_listeners())):
            return False
        host, _, port = self.administration.bootstrap.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=2) as probe:
                probe.sendall(API_VERSIONS_V0)
                return len(probe.recv(8)) > 0
        except OSError:
            return False

    def _addresses_of_listeners(self) -> list[tuple[str, int]]:
        """Host and port of each of its listeners."""
        lines = self.properties.read_text().splitlines()
        listeners = next(line for line in lines if line.startswith("listeners=")).removeprefix("listeners=")
        addresses = [listener.partition("://")[2].rpartition(":") for listener in listeners.split(",")]
        return [(host or self.host, int(port)) for host, _, port in addresses]


def _accepts(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address, timeout=2):
            return True
    except OSError:
        return False


def main() -> int:
    """Serve until SIGINT or SIGTERM."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    with (
        tempfile.TemporaryDirectory(prefix="kafka-") as folder,
        KafkaServer(Path(folder) / "kafka", port=port) as server,
    ):
        print(server.bootstrap, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    return 0


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    sys.exit(main())
