"""A broker of Apache Kafka 4.4.0 as a node of a test's cluster, on the same directory and port as one of ours.

Kafka's own tool formats a directory that is new. One that a Barnabas broker has used is taken as it is, and vice versa:
both read `meta.properties`, and both keep partitions in the directory itself.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Mapping
from pathlib import Path

from barnabas.supervise import kafka_controllers
from tests.support.cluster.quorums import KAFKA_POM
from tests.support.jvm import host
from tests.support.jvm.command import KAFKA_NODE
from tests.support.jvm.jars import fetch, jars
from tests.support.processes.kafka import API_VERSIONS_V0
from tests.support.processes.server import STOP_TIMEOUT_S, Server

JVM_TERMINATED = 128 + signal.SIGTERM


class KafkaNode(Server):
    """A JVM with the role of a broker."""

    name = "kafka-broker"

    def __init__(self, data_dir: Path, keys: Mapping[str, str], cluster_id: str, port: int) -> None:
        """`keys` are configuration keys, without `log.dirs`."""
        super().__init__(data_dir, config=dict(keys), port=port)
        self._cluster_id = cluster_id
        self._settings = data_dir.with_name(data_dir.name + "-kafka")

    def _command(self) -> tuple[list[str], dict[str, str]]:
        self._settings.mkdir(exist_ok=True)
        (self._settings / "log4j2.xml").write_text(kafka_controllers.LOG4J)
        settings = {**self.config, "log.dirs": str(self.data_dir)}
        properties = self._settings / "server.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        if not (self.data_dir / "meta.properties").exists():
            self._format(properties)
        return [*self._java(*KAFKA_NODE), "kafka.Kafka", str(properties)], dict(os.environ)

    def _java(self, *options: str) -> list[str]:
        return kafka_controllers.java(fetch(KAFKA_POM), self._settings, *options)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> int | None:
        """SIGTERM: a JVM that has handled it ends with its number, which is 0 here."""
        code = super().stop(timeout_s)
        return 0 if code == JVM_TERMINATED else code

    def _format(self, properties: Path) -> None:
        arguments = ("format", f"--cluster-id={self._cluster_id}", "-c", str(properties))
        done = host.run(jars(KAFKA_POM), "kafka.tools.StorageTool", *arguments)
        if done.code != 0:
            raise RuntimeError(f"Kafka could not format {self.data_dir}:\n{done.out}{done.errors}")

    def _is_ready(self) -> bool:
        """Kafka opens its port before it is ready; it is ready when it answers ApiVersions."""
        try:
            with socket.create_connection((self.host, self.port), timeout=2) as probe:
                probe.sendall(API_VERSIONS_V0)
                return len(probe.recv(8)) > 0
        except OSError:
            return False
