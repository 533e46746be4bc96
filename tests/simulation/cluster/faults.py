"""What happens to the nodes of a simulated cluster, by the seed: kills, stops, pauses, cuts, disks, moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from barnabas.wire.messages import topics as tp
from tests.simulation.cluster.clients import CLIENTS_ID
from tests.simulation.cluster.node import CONTROLLER_ID, RESTART_S, ClusterNode
from tests.simulation.cluster.world import REPLICAS, ClusterWorld
from tests.support.disks.faulty_disk import Fault

if TYPE_CHECKING:
    from barnabas.wire.schema import Message

FAULTY_S = 25.0


class ClusterFaults:
    """The faults of one run."""

    def __init__(self, world: ClusterWorld, topics: Mapping[str, int]) -> None:
        """`topics` are those whose partitions are moved, with how many they have."""
        self._world = world
        self._topics = topics

    def plan(self) -> None:
        """Schedule some of them."""
        world, random = self._world, self._world.random
        for _ in range(world.disk_errors):
            world.clock.after(random.uniform(0.5, FAULTY_S - 2), self._unless_healed(self._fail_a_disk))
        chosen = [kind for kind in self._kinds() if random.random() < 0.6]
        for kind in chosen:
            for _ in range(random.choice((1, 1, 2, 4))):
                world.clock.after(random.uniform(0.5, FAULTY_S - 2), self._unless_healed(kind))

    def _kinds(self) -> list[Callable[[], None]]:
        """What may happen; twice what happens more often."""
        return [
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

    def _unless_healed(self, fault: Callable[[], None]) -> Callable[[], None]:
        return lambda: None if self._world.is_healed else fault()

    def _kill(self, node: ClusterNode, then: Callable[[], None] = lambda: None) -> None:
        """Kill a node, and start it later; `then` is called at its start."""
        world, random = self._world, self._world.random
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
        self._kill(self._world.nodes[self._world.random.choice(self._world.brokers)])

    def _kill_two_brokers(self) -> None:
        for broker_id in self._world.random.sample(self._world.brokers, 2):
            self._kill(self._world.nodes[broker_id])

    def _cut_off_a_starting_broker(self) -> None:
        random = self._world.random
        node = self._world.nodes[random.choice(self._world.brokers)]
        later = random.choice((0.0, 0.05, 1.0))
        self._kill(node, lambda: self._world.clock.after(later, self._unless_healed(lambda: self._cut(node.node_id))))

    def _slow_a_disk(self) -> None:
        random = self._world.random
        self._world.nodes[random.choice((*self._world.brokers, CONTROLLER_ID))].slow_disk(
            random.choice((0.5, 3.0, 8.0))
        )

    def _lose_a_disk(self) -> None:
        """A broker restarts with an empty disk, after a kill or a clean stop; the others have all committed records."""
        world, random = self._world, self._world.random
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
        self._kill(self._world.nodes[CONTROLLER_ID])

    def _stop_a_broker(self) -> None:
        self._stop(self._world.nodes[self._world.random.choice(self._world.brokers)], lambda: None)

    def _stop(self, node: ClusterNode, then: Callable[[], None]) -> None:
        world, random = self._world, self._world.random

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
        random = self._world.random
        topic = random.choice(list(self._topics))
        replicas = random.sample(self._world.brokers, REPLICAS) if random.random() < 0.8 else None
        reassignment = tp.ReassignablePartition(
            partition_index=random.randrange(self._topics[topic]), replicas=replicas
        )
        self.reassign(topic, reassignment)

    def reassign(self, topic: str, reassignment: tp.ReassignablePartition) -> None:
        """Ask for other replicas of a partition."""
        self._world.trace.note("reassign", topic, reassignment.partition_index, reassignment.replicas)
        topics = [tp.ReassignableTopic(name=topic, partitions=[reassignment])]
        self._administer(tp.AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=5000))

    def _elect(self) -> None:
        """Give the leadership back to the preferred replicas."""
        self._administer(tp.ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=5000))

    def _administer(self, request: Message) -> None:
        """Send a request of an administrator, whatever becomes of it."""
        world = self._world
        client = world.clients.brokers.client(world.random.choice(world.brokers), "admin")
        world.clients.turn_with(lambda: client.send(request, lambda _: None, timeout_s=10.0))

    def _fail_a_disk(self) -> None:
        random = self._world.random
        error = random.choice(("EMFILE", "ENOSPC", "short", "EIO"))
        self._world.nodes[random.choice(self._world.brokers)].fail_disk(Fault(random.randint(1, 8), error))

    def _pause_a_node(self) -> None:
        random = self._world.random
        node_id = random.choice((*self._world.brokers, *self._world.brokers, CONTROLLER_ID))
        self._world.nodes[node_id].pause(random.choice((0.3, 2.0, 8.0)))

    def _pair(self, first: int | None = None) -> tuple[int, int]:
        random = self._world.random
        first = first or random.choice(self._world.brokers)
        others = [node_id for node_id in (*self._world.brokers, CONTROLLER_ID, CLIENTS_ID) if node_id != first]
        return first, random.choice(others)

    def _cut(self, first: int | None = None) -> None:
        """Cut one or both directions between two nodes, or a node off from all."""
        world, random = self._world, self._world.random
        first, second = self._pair(first)
        others = [second]
        if random.random() < 0.3:
            others = [node_id for node_id in (*world.brokers, CONTROLLER_ID) if node_id != first]
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
        world, random = self._world, self._world.random
        pair = self._pair()
        world.network.slow[pair] = random.choice((0.05, 0.3))
        world.clock.after(random.choice((1.0, 5.0)), lambda: world.network.slow.pop(pair, None))
