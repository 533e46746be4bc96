"""Runs of a whole cluster: brokers, controller and clients in simulated time, with crashes, lost disks, cuts, delays.

Everything is real but the network, the disks and the clock: `open_member`, `open_controller`, the handlers, the clients
between the nodes. After each turn the partitions of the node are checked (`checks`). At the end everything
heals: within `HEALED_S` every partition has a leader and a full ISR, and all producers are done. Then the whole cluster
loses power, or is killed, and must come back with everything that was acknowledged.
"""

from __future__ import annotations

from tests.simulation.cluster.checks import DataLost
from tests.simulation.cluster.clients import ClusterProducer
from tests.simulation.cluster.consumer import ClusterConsumer
from tests.simulation.cluster.faults import FAULTY_S, ClusterFaults
from tests.simulation.cluster.run import ClusterRun
from tests.simulation.cluster.world import ClusterWorld

TOPICS = {"a": 2, "b": 1}


class SimulatedCluster(ClusterRun):
    """One run."""

    def __init__(self, name: str, *, is_verbose: bool = False) -> None:
        super().__init__(ClusterWorld(name, is_verbose=is_verbose), TOPICS)
        self._producers: list[ClusterProducer] = []
        self._consumers: list[ClusterConsumer] = []
        self.faults = ClusterFaults(self.world, TOPICS)

    def run(self) -> None:
        """From the first start to the last check, or until a broker without its disk had to be elected."""
        try:
            self._run()
        except DataLost:
            return

    def _run(self) -> None:
        self.start()
        world = self.world
        producer_id = 100
        for topic, partitions in TOPICS.items():
            for index in range(partitions):
                self._consume(topic, index)
                for _ in range(2):
                    producer_id += 1
                    self.produce(producer_id, topic, index, world.random.randint(5, 25))
        self.faults.plan()
        world.run(FAULTY_S)
        self._settle()
        self.crash_all()
        for topic in TOPICS:
            producer_id += 1
            self.produce(producer_id, topic, 0, 3)
        self._settle()

    def produce(self, producer_id: int, topic: str, index: int, batches: int) -> ClusterProducer:
        """Start a producer."""
        world = self.world
        producer = ClusterProducer(
            world.clients, producer_id, topic, index, batches, world.find, world.checks.acknowledge
        )
        self._producers.append(producer)
        producer.start()
        return producer

    def _consume(self, topic: str, index: int) -> None:
        world = self.world
        consumer = ClusterConsumer(world.clients, len(self._consumers), topic, index, world.find, world.checks)
        self._consumers.append(consumer)
        consumer.start()

    def _settle(self) -> None:
        self.settle()
        self.world.checks.check_values()

    def check_end(self) -> None:
        """The clients are done, and the cluster is whole."""
        super().check_end()
        assert all(producer.is_done for producer in self._producers), "a producer is not done"
        assert all(consumer.is_done for consumer in self._consumers), "a consumer is not done"
