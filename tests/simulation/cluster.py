"""Runs of a whole cluster: brokers, controller and clients in simulated time, with crashes, lost disks, cuts, delays.

Everything is real but the network, the disks and the clock: `open_member`, `open_controller`, the handlers, the clients
between the nodes. After each turn the partitions of the node are checked (`cluster_checks`). At the end everything
heals: within `HEALED_S` every partition has a leader and a full ISR, and all producers are done. Then the whole cluster
loses power, or is killed, and must come back with everything that was acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.topic_image import PartitionImage
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import topics as tp
from tests.crash.faulty_disk import Fault
from tests.simulation.cluster_checks import ClusterChecks, DataLost, check_images
from tests.simulation.cluster_clients import CLIENTS_ID, Clients, ClusterProducer
from tests.simulation.cluster_consumer import ClusterConsumer
from tests.simulation.cluster_network import ClusterNetwork
from tests.simulation.cluster_node import CONTROLLER_ID, RESTART_S, ClusterNode
from tests.simulation.environment import Environment
from tests.simulation.faults import Faults
from tests.simulation.node import Errors

if TYPE_CHECKING:
    from barnabas.broker.replicas.partition import Partition
    from barnabas.wire.schema import Message

HEALED_S = 60.0
SLICE_S = 0.5
FAULTY_S = 25.0
REPLICAS, MIN_IN_SYNC = 3, 2
TOPICS = {"a": 2, "b": 1}
SEGMENT_BYTES = 1500


class ClusterWorld(Environment):
    """A run's nodes, network and time."""

    def __init__(self, name: str, *, is_verbose: bool = False) -> None:
        super().__init__(name, Faults(), is_verbose=is_verbose)
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
                node.on_start.append(_use_small_segments)
        self.clients = Clients(self, self.network)
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
        }

    # ---- time

    def run(self, seconds: float, is_over: Callable[[], bool] = lambda: False) -> None:
        """Advance time by `seconds`, or until `is_over`."""
        clock = self.clock
        end = clock.now + seconds
        turning: list[ClusterNode | Clients] = [*self.nodes.values(), self.clients]
        while not is_over():
            due, node = min(((one.next_deadline(), at) for at, one in enumerate(turning)), default=(inf, 0))
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

    def find(self, topic: str, index: int) -> tuple[bytes, PartitionImage] | None:
        """What the controller, or a broker that may not have heard of everything, says of a partition."""
        sources = [node for node in self.nodes.values() if node.broker is not None and node.is_listening]
        if not sources:
            return None
        broker = self.random.choice(sources).broker
        assert broker is not None
        found = broker.image.topics.get(topic)
        if found is None or index not in found.partitions:
            return None
        return found.topic_id, found.partitions[index]


def _use_small_segments(node: ClusterNode) -> None:
    """A few records make a segment; Kafka's smallest one has a megabyte."""

    def shrink(partition: Partition) -> None:
        if not partition.is_internal:
            partition.log.config.segment_bytes = SEGMENT_BYTES

    assert node.broker is not None
    node.broker.partitions.on_role_change.append(shrink)


class Cluster:
    """One run."""

    def __init__(self, name: str, *, is_verbose: bool = False) -> None:
        self.world = ClusterWorld(name, is_verbose=is_verbose)
        self._producers: list[ClusterProducer] = []
        self._consumers: list[ClusterConsumer] = []

    def start(self) -> None:
        """Start all nodes and create the topics."""
        world = self.world
        for node in world.nodes.values():
            node.start()
        world.run(20.0, self.all_unfenced)
        assert self.all_unfenced(), "the brokers are not unfenced"
        self._create_topics()

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
        self._plan_faults()
        world.run(FAULTY_S)
        self._settle()
        self._crash_all()
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

    def all_unfenced(self) -> bool:
        """Whether the controller runs and no broker is fenced."""
        image = self.world.image
        return image is not None and all(
            node_id in image.brokers and not image.brokers[node_id].fenced for node_id in self.world.brokers
        )

    def _create_topics(self) -> None:
        world = self.world
        answers: list[object] = []
        topics = [
            tp.CreatableTopic(name=name, num_partitions=partitions, replication_factor=REPLICAS)
            for name, partitions in TOPICS.items()
        ]
        request = tp.CreateTopicsRequest(topics=topics, timeout_ms=10_000)
        client = world.clients.brokers.client(world.brokers[0], "admin")
        client.send(request, answers.append, timeout_s=20.0)
        world.run(20.0, lambda: bool(answers))
        assert answers
        response = answers[0]
        assert isinstance(response, tp.CreateTopicsResponse), response
        for topic in response.topics:
            assert topic.error_code == ErrorCode.NONE, topic

    # ---- faults

    def _plan_faults(self) -> None:
        world, random = self.world, self.world.random
        kinds: list[Callable[[], None]] = [
            self._kill_a_broker,
            self._kill_a_broker,
            self._stop_a_broker,
            self._reassign,
            self._reassign,
            self._elect,
            self._pause_a_node,
            self._cut,
            self._cut,
            self._slow,
            self._kill_the_controller,
            self._lose_a_disk,
            self._slow_a_disk,
            self._kill_two_brokers,
            self._cut_off_a_starting_broker,
        ]
        for _ in range(world.disk_errors):
            world.clock.after(random.uniform(0.5, FAULTY_S - 2), self._unless_healed(self._fail_a_disk))
        chosen = [kind for kind in kinds if random.random() < 0.6]
        for kind in chosen:
            for _ in range(random.choice((1, 1, 2, 4))):
                world.clock.after(random.uniform(0.5, FAULTY_S - 2), self._unless_healed(kind))

    def _unless_healed(self, fault: Callable[[], None]) -> Callable[[], None]:
        return lambda: None if self.world.is_healed else fault()

    def _kill(self, node: ClusterNode, then: Callable[[], None] = lambda: None) -> None:
        """Kill a node, and start it later; `then` is called at its start."""
        world, random = self.world, self.world.random
        if node.broker is None:
            return
        node.kill(power_fails=world.is_synced and not node.is_controller and random.random() < 0.7)
        world.restarts += 1

        def restart() -> None:
            world.restarts -= 1
            node.start()
            then()

        world.clock.after(random.choice(RESTART_S), restart)

    def _kill_a_broker(self) -> None:
        self._kill(self.world.nodes[self.world.random.choice(self.world.brokers)])

    def _kill_two_brokers(self) -> None:
        for broker_id in self.world.random.sample(self.world.brokers, 2):
            self._kill(self.world.nodes[broker_id])

    def _cut_off_a_starting_broker(self) -> None:
        random = self.world.random
        node = self.world.nodes[random.choice(self.world.brokers)]
        later = random.choice((0.0, 0.05, 1.0))
        self._kill(node, lambda: self.world.clock.after(later, self._unless_healed(lambda: self._cut(node.node_id))))

    def _slow_a_disk(self) -> None:
        random = self.world.random
        self.world.nodes[random.choice((*self.world.brokers, CONTROLLER_ID))].slow_disk(random.choice((0.5, 3.0, 8.0)))

    def _lose_a_disk(self) -> None:
        """A broker comes back without its disk, after its death or a clean stop; the others have what is committed."""
        world, random = self.world, self.world.random
        node = world.nodes[random.choice(world.brokers)]
        if node.broker is None or not world.is_synced or world.disk_errors:
            return

        def lose() -> None:
            image = world.image
            if image is not None and world.checks.may_lose(node.node_id, image):
                world.checks.disk_is_lost(node.node_id, image)
                node.lose_disk(keeps_name=random.random() < 0.5)

        if random.random() < 0.5:
            self._stop(node, lose)
        else:
            self._kill(node)
            lose()

    def _kill_the_controller(self) -> None:
        self._kill(self.world.nodes[CONTROLLER_ID])

    def _stop_a_broker(self) -> None:
        self._stop(self.world.nodes[self.world.random.choice(self.world.brokers)], lambda: None)

    def _stop(self, node: ClusterNode, then: Callable[[], None]) -> None:
        world, random = self.world, self.world.random

        def stopped() -> None:
            then()
            world.restarts += 1
            world.clock.after(random.choice(RESTART_S), restart)

        def restart() -> None:
            world.restarts -= 1
            node.start()

        node.stop(stopped)

    def _reassign(self) -> None:
        """Move a partition to other brokers, or give up a move."""
        random = self.world.random
        topic = random.choice(list(TOPICS))
        replicas = random.sample(self.world.brokers, REPLICAS) if random.random() < 0.8 else None
        wanted = tp.ReassignablePartition(partition_index=random.randrange(TOPICS[topic]), replicas=replicas)
        self.reassign(topic, wanted)

    def reassign(self, topic: str, wanted: tp.ReassignablePartition) -> None:
        """Ask for other replicas of a partition."""
        self.world.trace.note("reassign", topic, wanted.partition_index, wanted.replicas)
        topics = [tp.ReassignableTopic(name=topic, partitions=[wanted])]
        self._administer(tp.AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=5000))

    def _elect(self) -> None:
        """Give the leadership back to the preferred replicas."""
        self._administer(tp.ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=5000))

    def _administer(self, request: Message) -> None:
        """Send a request of an administrator, whatever becomes of it."""
        world = self.world
        client = world.clients.brokers.client(world.random.choice(world.brokers), "admin")
        world.clients.turn_with(lambda: client.send(request, lambda _: None, timeout_s=10.0))

    def _fail_a_disk(self) -> None:
        random = self.world.random
        error = random.choice(("EMFILE", "ENOSPC", "short", "EIO"))
        self.world.nodes[random.choice(self.world.brokers)].fail_disk(Fault(random.randint(1, 8), error))

    def _pause_a_node(self) -> None:
        random = self.world.random
        node_id = random.choice((*self.world.brokers, *self.world.brokers, CONTROLLER_ID))
        self.world.nodes[node_id].pause(random.choice((0.3, 2.0, 8.0)))

    def _pair(self, first: int | None = None) -> tuple[int, int]:
        random = self.world.random
        first = first or random.choice(self.world.brokers)
        others = [one for one in (*self.world.brokers, CONTROLLER_ID, CLIENTS_ID) if one != first]
        return first, random.choice(others)

    def _cut(self, first: int | None = None) -> None:
        """Cut one or both directions between two nodes, or a node off from all."""
        world, random = self.world, self.world.random
        first, second = self._pair(first)
        others = [second]
        if random.random() < 0.3:
            others = [one for one in (*world.brokers, CONTROLLER_ID) if one != first]
        cuts = [(first, other) for other in others]
        if random.random() < 0.6:
            cuts += [(other, first) for other in others]
        elif random.random() < 0.5:
            cuts = [(other, first) for other in others]
        world.trace.note("cut", cuts)
        for cut in cuts:
            world.network.cut(*cut)

        def mend() -> None:
            for cut in cuts:
                world.network.mend(*cut)

        world.clock.after(random.choice((0.5, 3.0, 8.0)), mend)

    def _slow(self) -> None:
        world, random = self.world, self.world.random
        pair = self._pair()
        world.network.slow[pair] = random.choice((0.05, 0.3))
        world.clock.after(random.choice((1.0, 5.0)), lambda: world.network.slow.pop(pair, None))

    # ---- the end

    def _settle(self) -> None:
        """Heal, and wait until everything is as it should be."""
        world = self.world
        world.is_healed = True
        world.network.cuts.clear()
        world.network.slow.clear()
        for node in world.nodes.values():
            node.heal_disk()
        world.trace.note("healed")
        end = world.clock.now + HEALED_S
        failure: AssertionError | None = None
        while world.clock.now < end:
            world.run(SLICE_S)
            try:
                self._check_end()
            except AssertionError as error:
                failure = error
            else:
                world.checks.check_values()
                return
        assert failure is not None
        raise failure

    def _check_end(self) -> None:
        world = self.world
        assert not world.restarts
        assert all(producer.is_done for producer in self._producers), "a producer is not done"
        assert all(consumer.is_done for consumer in self._consumers), "a consumer is not done"
        image = world.image
        assert image is not None
        for topic in TOPICS:
            for index, partition in image.topics[topic].partitions.items():
                assert partition.leader >= 0, f"{topic}-{index} has no leader"
                assert not partition.adding_replicas, f"{topic}-{index} is being moved: {partition}"
                assert not partition.removing_replicas, f"{topic}-{index} is being moved: {partition}"
                assert set(partition.isr) == set(partition.replicas), f"{topic}-{index}: ISR {partition.isr}"
        world.checks.check_equal(image)
        check_images(image, [node.broker.image for node in world.nodes.values() if node.broker is not None])

    def _crash_all(self) -> None:
        """All brokers fail at the same time."""
        world, random = self.world, self.world.random
        power_fails = world.is_synced
        for node in world.nodes.values():
            if not node.is_controller or random.random() < 0.5:
                node.kill(power_fails=power_fails and not node.is_controller)
        for node in world.nodes.values():
            world.clock.after(random.choice(RESTART_S), node.start)
