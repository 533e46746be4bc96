"""A cluster that a test kills, stops, pauses and starts again, node by node: of processes, or in the test's process."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from barnabas.supervise.plan import OUR_CONTROLLER, broker_keys, replication_defaults
from tests.support.cluster.in_process import Host, LocalNode
from tests.support.cluster.kafka_node import KafkaNode
from tests.support.cluster.links import Links
from tests.support.cluster.quorums import HOST, IN_PROCESS, Quorum, node_command
from tests.support.processes.ports import free_port
from tests.support.processes.server import Server
from tests.support.processes.warm_server import WarmServer

T = TypeVar("T")
FAST = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "3000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
}
"""Keys of all nodes: quick failover, small internal topics."""
PATIENT = {"broker.session.timeout.ms": "60000"}
"""Keys of nodes in this process: a killed broker is fenced by `fence`, and none because the machine is busy."""
PATIENCE_S = 60.0


class BrokerNode(WarmServer):
    """A process with the role of a broker."""

    name = "broker"

    def __init__(self, data_dir: Path, keys: Mapping[str, str], cluster_id: str, port: int) -> None:
        super().__init__(data_dir, config=dict(keys), port=port)
        self._cluster_id = cluster_id

    def _command(self) -> tuple[list[str], dict[str, str]]:
        return node_command(self, super()._command(), self._cluster_id)


class Cluster:
    """Brokers 1 to N, ours or Apache Kafka's, under one of the kinds of controllers."""

    def __init__(
        self,
        folder: Path,
        *,
        kind: str = "ours",
        brokers: int = 3,
        config: Mapping[str, str] | None = None,
        own: Mapping[int, Mapping[str, str]] | None = None,
        links: Links | None = None,
        software: Mapping[int, str] | None = None,
        default_format: bool = False,
        is_small: bool = False,
        broker_node: type[BrokerNode] = BrokerNode,
    ) -> None:
        """`kind` is `ours` (a process each), `kafka` (under Kafka's controllers) or `in-process` (no processes).

        One of Kafka's that is small has a single controller, and its brokers are in this process.

        `config` is for all nodes, `own` for single brokers; with `links` nodes reach each other through them.

        `software` says which brokers are `kafka`; all others are `barnabas`. With `default_format` Kafka's controllers
        format the cluster by their defaults, not prepared for Barnabas.
        """
        self.folder = folder
        self.kind = kind
        self.data_dir = folder
        keys = FAST | (PATIENT if kind == IN_PROCESS else {}) | replication_defaults(brokers) | dict(config or {})
        self._host = Host()
        self._is_local = kind == IN_PROCESS or is_small
        self._broker_node = broker_node
        self.quorum = Quorum(kind, folder, keys, default_format=default_format, host=self._host, is_small=is_small)
        self.brokers: dict[int, Server] = {}
        for broker in range(1, brokers + 1):
            port, directory = free_port(), folder / f"broker-{broker}"
            keys_of_node = broker_keys(broker, HOST, port, str(directory), self.quorum.controllers, keys)
            if links is not None:
                keys_of_node |= self._through(links, broker, keys_of_node)
            keys_of_node |= (own or {}).get(broker, {})
            del keys_of_node["log.dirs"]  # --data-dir
            self.brokers[broker] = self._node((software or {}).get(broker, "barnabas"), directory, keys_of_node, port)
            if kind == IN_PROCESS:
                controller = self.quorum.servers[OUR_CONTROLLER]
                self.brokers[broker].when_killed = partial(controller.fence, broker)  # type: ignore[attr-defined]

    def _node(self, software: str, directory: Path, keys: Mapping[str, str], port: int) -> Server:
        if self._is_local:
            return LocalNode(directory, keys, self.quorum.cluster_id, port, self._host)
        kind = KafkaNode if software == "kafka" else self._broker_node
        return kind(directory, keys, self.quorum.cluster_id, port)

    def replace(self, broker: int, software: str) -> Server:
        """Stop a broker in a controlled way and start the other software on its directory and port; the new node."""
        before = self.brokers[broker]
        if (code := before.stop()) != 0:
            raise AssertionError(f"{before.name} {broker} ended with {code}:\n{before.log()[-3000:]}")
        after = self.brokers[broker] = self._node(software, before.data_dir, before.config, before.port)
        return after.start()

    def _through(self, links: Links, broker: int, keys: Mapping[str, str]) -> dict[str, str]:
        """A listener for other brokers, advertised as a proxy, and controllers behind proxies."""
        port = free_port()
        proxy = links.before(broker, (HOST, port))
        controllers = [
            (controller.node_id, links.before(controller.node_id, (HOST, controller.port)))
            for controller in self.quorum.controllers
        ]
        return {
            "listeners": f"{keys['listeners']},INTERNAL://{HOST}:{port}",
            "advertised.listeners": f"{keys['listeners']},INTERNAL://{HOST}:{proxy}",
            "inter.broker.listener.name": "INTERNAL",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
            "controller.quorum.voters": ",".join(f"{node}@{HOST}:{at}" for node, at in controllers),
            "controller.quorum.bootstrap.servers": ",".join(f"{HOST}:{at}" for _, at in controllers),
        }

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(node.bootstrap for node in self.brokers.values())

    @property
    def nodes(self) -> list[Server]:
        """All processes."""
        return [*self.quorum.servers.values(), *self.brokers.values()]

    def start(self) -> Cluster:
        """Start all nodes, and wait until they serve."""
        self.quorum.start()
        for node in self.brokers.values():
            node.spawn()
        self.quorum.wait_ready()
        for node in self.brokers.values():
            node.wait_ready()
        return self

    def stop(self) -> None:
        """Stop the brokers, then the controllers."""
        for node in self.brokers.values():
            node.terminate()
        for node in self.brokers.values():
            node.stop()
        self.quorum.stop()
        self._host.close()

    def kill_all(self) -> None:
        """Kill every process at once, as a power failure of the machine does."""
        for node in self.nodes:
            if node.process is not None:
                with contextlib.suppress(ProcessLookupError):
                    node.process.kill()
        for node in self.nodes:
            if node.process is not None:
                node.process.wait()

    def log(self) -> str:
        """The ends of the nodes' logs."""
        return "".join(f"--- {node.data_dir.name}\n{node.log()[-3000:]}\n" for node in self.nodes)

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def cluster_of(kind: str, folder: Path, config: Mapping[str, str] | None = None) -> Cluster:
    """Three brokers of a kind of `Cluster`, or `mixed`: Kafka's controllers, one broker of Kafka's and two of ours.

    It is not started. The mixed one is formatted as by default.
    """
    if kind == "mixed":
        return Cluster(folder, kind="kafka", software={1: "kafka"}, default_format=True, config=config)
    return Cluster(folder, kind=kind, config=config)
