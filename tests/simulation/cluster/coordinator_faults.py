"""Faults that hit coordinators: their leaders are killed, cut off, paused and moved in the middle of a step.

A step is a request of one API on its way to a broker, from a client or from another broker: before the broker handles
it, right after (with everything written and nothing sent), or a moment later. The seed chooses API, number and fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from barnabas.coord.topic_names import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas.wire.messages import topics as tp
from tests.simulation.cluster.faults import FAULTY_S, ClusterFaults
from tests.simulation.cluster.node import ClusterNode
from tests.simulation.cluster.world import REPLICAS, ClusterWorld

INTERNAL = {GROUP_METADATA_TOPIC: 1, TRANSACTION_STATE_TOPIC: 2, SHARE_GROUP_STATE_TOPIC: 1}
"""The internal topics, with how many partitions they have."""
BEFORE, AFTER, LATER = "before", "after", "later"
MOMENTS = (BEFORE, AFTER, LATER)


@dataclass
class Step:
    """A fault in the middle of a step."""

    api_key: int
    left: int
    """How many requests of this API arrive before."""
    moment: str
    fault: Callable[[ClusterNode], None]


class CoordinatorFaults(ClusterFaults):
    """The faults of one run."""

    def __init__(self, world: ClusterWorld, topics: Mapping[str, int], apis: Sequence[int]) -> None:
        """`apis` are the requests of the protocols that the run is about."""
        super().__init__(world, {**topics, **INTERNAL})
        self._apis = apis
        self._steps: list[Step] = []

    def plan(self) -> None:
        """Schedule faults of nodes, of processes, and in the middle of steps."""
        world, random = self._world, self._world.random
        super().plan()
        for count, fault in (
            (random.choice((0, 0, 1, 2, 4)), world.kill_a_process),
            (random.choice((0, 0, 1, 2)), world.pause_a_process),
        ):
            for _ in range(count):
                world.clock.after(random.uniform(0.5, FAULTY_S - 2), self._unless_healed(fault))
        for _ in range(random.choice((1, 3, 6, 12))):
            fault = random.choice((self._kill, self._pause, self._cut_off, self._move, self._move, self._move))
            step = Step(random.choice(self._apis), random.randrange(20), random.choice(MOMENTS), fault)
            self._steps.append(step)
        world.network.on_request = self._request_arrives

    def _kinds(self) -> list[Callable[[], None]]:
        """What may happen: a disk is not lost, since the run would end with what was on it."""
        kinds = [kind for kind in super()._kinds() if kind != self._lose_a_disk]
        return [*kinds, self._elect, self._hit_a_coordinator, self._hit_a_coordinator]

    # ---- coordinators

    def _hit_a_coordinator(self) -> None:
        """Something happens to the leader of a partition of an internal topic."""
        random = self._world.random
        topic = random.choice(sorted(INTERNAL))
        known = self._world.find(topic, random.randrange(INTERNAL[topic]))
        if known is not None and known[1].leader >= 0:
            random.choice((self._kill, self._pause, self._cut_off, self._move))(self._world.nodes[known[1].leader])

    def _pause(self, node: ClusterNode) -> None:
        node.pause(self._world.random.choice((0.3, 2.0, 8.0)))

    def _cut_off(self, node: ClusterNode) -> None:
        self._cut(node.node_id)

    def _move(self, node: ClusterNode) -> None:
        """Another broker gets the leadership of a partition of an internal topic that a node leads."""
        random = self._world.random
        partitions = {
            (topic, index): self._world.find(topic, index) for topic in INTERNAL for index in range(INTERNAL[topic])
        }
        led = [key for key, located in partitions.items() if located is not None and located[1].leader == node.node_id]
        if not led:
            return
        topic, index = random.choice(led)
        others = [broker_id for broker_id in self._world.brokers if broker_id != node.node_id]
        random.shuffle(others)
        replicas = [*others, node.node_id][:REPLICAS]
        self.reassign(topic, tp.ReassignablePartition(partition_index=index, replicas=replicas))
        self._world.clock.after(random.choice((0.02, 0.3)), self._unless_healed(self._elect))

    # ---- steps

    def _request_arrives(self, node: ClusterNode, api_key: int) -> None:
        """A request is about to be handled by a node."""
        for step in [step for step in self._steps if step.api_key == api_key]:
            step.left -= 1
            if step.left < 0:
                self._steps.remove(step)
                self._begin(step, node)

    def _begin(self, step: Step, node: ClusterNode) -> None:
        world = self._world
        if world.is_healed or (step.moment == BEFORE and node.broker is None):
            return
        world.trace.note("in the middle of", step.api_key, step.moment, node.node_id)
        if step.moment == BEFORE:
            step.fault(node)
        else:
            seconds = 0.0 if step.moment == AFTER else world.random.choice((0.001, 0.005, 0.05))
            world.clock.after(seconds, self._unless_healed(lambda: step.fault(node)))
