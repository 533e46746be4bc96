"""The nodes, the network and the time of a simulated cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import TYPE_CHECKING

from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.topic_image import PartitionImage
from barnabas.coord.topic_names import GROUP_METADATA_TOPIC
from tests.simulation.clients.processes import Processes
from tests.simulation.cluster.checks import ClusterChecks
from tests.simulation.cluster.clients import Clients
from tests.simulation.cluster.links import ClusterLinks, Coordinator, Leader
from tests.simulation.cluster.network import ClusterNetwork
from tests.simulation.cluster.node import CONTROLLER_ID, ClusterNode
from tests.simulation.faults import Faults
from tests.simulation.node import Errors

if TYPE_CHECKING:
    from barnabas.broker.replicas.partition import Partition

REPLICAS, MIN_IN_SYNC = 3, 2
SEGMENT_BYTES = 1500


class ClusterWorld(Processes):
    """A run's nodes, network and time."""

    def __init__(self, name: str, settings: Mapping[str, str] | None = None, *, is_verbose: bool = False) -> None:
        """`settings` are further ones of the brokers."""
        super().__init__(name, Faults(), is_verbose=is_verbose)
        self._broker_settings = settings or {}
        self.segment_bytes = SEGMENT_BYTES
        random = self.random
        self.errors = Errors()
        self.node = self  # `tests.simulation.kinds` catches the errors of `world.node`
        self.disk_errors = 0
        self.is_synced = random.random() < 0.7
        self.network = ClusterNetwork(self)
        self.network.mean_delay_s = random.choice((0.0005, 0.002, 0.02))
        self.brokers = list(range(1, random.choice((3, 4, 4)) + 1))
        self.checks = ClusterChecks(self.trace, MIN_IN_SYNC, is_synced=self.is_synced)
        self.nodes = {
            node_id: ClusterNode(self, self.network, node_id, self._settings(node_id), self.errors)
            for node_id in (CONTROLLER_ID, *self.brokers)
        }
        self.checks.nodes = self.nodes
        for node in self.nodes.values():
            if node.is_controller:
                node.after_turn.append(self.checks.after_controller_turn)
            else:
                node.after_turn.append(self.checks.after_turn)
                node.on_start.append(self._use_small_segments)
        self.clients = Clients(self, self.network)
        self.links = ClusterLinks(self.clients, self.network, self.brokers)
        self.links.leadership = self._leadership
        self.restarts = 0

    def _settings(self, node_id: int) -> dict[str, str]:
        common = {
            "node.id": str(node_id),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"node{CONTROLLER_ID}:9093",
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
        }
        if node_id == CONTROLLER_ID:
            return {
                **common,
                "process.roles": "controller",
                "listeners": f"CONTROLLER://node{node_id}:9093",
                "default.replication.factor": str(REPLICAS),
                "min.insync.replicas": str(MIN_IN_SYNC),
            }
        return {
            **common,
            "process.roles": "broker",
            "listeners": f"PLAINTEXT://node{node_id}:9092",
            "barnabas.log.sync": "always" if self.is_synced else "os",
            "replica.lag.time.max.ms": "3000",
            "min.insync.replicas": str(MIN_IN_SYNC),
            **self._broker_settings,
        }

    # ---- time

    def run(self, seconds: float, is_over: Callable[[], bool] = lambda: False) -> None:
        """Advance time by `seconds`, or until `is_over`."""
        clock = self.clock
        end = clock.now + seconds
        turning: list[ClusterNode | Clients] = [*self.nodes.values(), self.clients]
        while not is_over():
            due, node = min(
                ((node_or_clients.next_deadline(), at) for at, node_or_clients in enumerate(turning)), default=(inf, 0)
            )
            moment = clock.next_moment()
            if min(due, moment) > end:
                clock.now = end
                return
            if due <= moment:
                clock.now = max(clock.now, due)
                turning[node].fire_timers()
            else:
                clock.step()

    # ---- metadata

    @property
    def image(self) -> ClusterImage | None:
        """The controller's image, None while it is down."""
        broker = self.nodes[CONTROLLER_ID].broker
        return None if broker is None else broker.image

    def _leadership(self, target: Coordinator | Leader | None, node_id: int) -> object:
        """A node's leadership over what a request is for; None unless it leads, and knows it."""
        if target is None or self.image is None:
            return None
        topic, index = target if isinstance(target, Leader) else (GROUP_METADATA_TOPIC, 0)
        known = self.image.topics[topic].partitions[index] if topic in self.image.topics else None
        node = self.nodes[node_id]
        if known is None or known.leader != node_id or node.broker is None or not node.is_listening:
            return None
        partition = next(
            (candidate for candidate in node.broker.partitions if (candidate.topic, candidate.index) == (topic, index)),
            None,
        )
        if partition is None or not partition.is_leader or partition.leader_epoch != known.leader_epoch:
            return None
        return node_id, node.incarnation, known.leader_epoch

    def find(self, topic: str, index: int) -> tuple[bytes, PartitionImage] | None:
        """What the controller, or a broker that may not have heard of everything, says of a partition."""
        sources = [node for node in self.nodes.values() if node.broker is not None and node.is_listening]
        if not sources:
            return None
        broker = self.random.choice(sources).broker
        assert broker is not None
        topic_image = broker.image.topics.get(topic)
        if topic_image is None or index not in topic_image.partitions:
            return None
        return topic_image.topic_id, topic_image.partitions[index]

    def _use_small_segments(self, node: ClusterNode) -> None:
        """A few records make a segment; Kafka's smallest one has a megabyte."""

        def shrink(partition: Partition) -> None:
            if not partition.is_internal:
                partition.log.config.segment_bytes = self.segment_bytes

        assert node.broker is not None
        node.broker.partitions.on_role_change.append(shrink)
