"""The two brokers: Apache Kafka 4.4.0 and Barnabas with `--profile kafka`, with the same keys, on new directories."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.support.jvm.command import KAFKA_NODE
from tests.support.processes.kafka import SINGLE_NODE, KafkaServer
from tests.support.processes.server import BarnabasServer, Server

SIDES = ("kafka", "barnabas")
KEYS = {
    **{key: value for key, value in SINGLE_NODE.items() if key.endswith((".factor", ".isr", ".delay.ms"))},
    "node.id": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "log.retention.check.interval.ms": "86400000",
    "log.cleaner.backoff.ms": "86400000",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
}
"""Few partitions of the internal topics, and no retention or compaction while sequences run."""


class TwinBarnabas(BarnabasServer):
    """Barnabas with Kafka's defaults."""

    def _command(self) -> tuple[list[str], dict[str, str]]:
        command, environment = super()._command()
        return [*command, "--profile", "kafka"], environment


class NodePair:
    """Both brokers. They can be replaced by new ones."""

    def __init__(self, keys: Mapping[str, str] | None = None) -> None:
        self.keys = {**KEYS, **(keys or {})}
        self.servers: dict[str, Server] = {}
        self._folder: Path | None = None

    def start(self) -> NodePair:
        """Start both on new directories."""
        self._folder = Path(tempfile.mkdtemp(prefix="twin-"))
        config = dict(self.keys)
        self.servers = {
            "kafka": KafkaServer(self._folder / "kafka", config=config, jvm_options=KAFKA_NODE),
            "barnabas": TwinBarnabas(self._folder / "barnabas", config=config),
        }
        for server in self.servers.values():
            server.spawn()
        for server in self.servers.values():
            server.wait_ready()
        return self

    def stop(self) -> None:
        """Stop both and remove their directories."""
        for server in self.servers.values():
            server.terminate()
        for server in self.servers.values():
            server.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def address(self, side: str) -> tuple[str, int]:
        """Host and port."""
        return self.servers[side].host, self.servers[side].port

    def log_dir(self, side: str) -> Path:
        """The directory of the partitions."""
        return self.servers[side].log_dir

    def __enter__(self) -> NodePair:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
