"""Runs about coordinators that move: a cluster whose clients use groups, transactions and share groups.

The client processes are the same as in the runs with one broker; their requests go to the current leader
(`cluster.links`). The faults hit the leaders of the internal topics, which have three replicas. After each turn the
partitions of all topics, internal ones included, are checked (`cluster.checks`), and the states of transactions in
the logs (`transactions.log`). When all faults are over, every client makes progress and comes to its end; then
everything fails at once, and no response that was sent may become untrue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tests.simulation.cluster.coordinator_faults import CoordinatorFaults
from tests.simulation.cluster.faults import FAULTY_S
from tests.simulation.cluster.run import ClusterRun
from tests.simulation.cluster.world import MIN_IN_SYNC, REPLICAS, ClusterWorld
from tests.simulation.transactions.log import TransactionChecks

if TYPE_CHECKING:
    from barnabas.broker.context import Broker

HEALED_S = 120.0
"""The longest: a pause of a process, then a transaction that times out, or sessions that expire one after the other."""

SEGMENT_BYTES = 8000
"""Everything that a member reads at once fits into one batch of what it writes."""

COMMON = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": str(REPLICAS),
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": str(REPLICAS),
    "share.coordinator.state.topic.min.isr": str(MIN_IN_SYNC),
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": str(REPLICAS),
    "transaction.state.log.min.isr": str(MIN_IN_SYNC),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
}


def coordinator_world(name: str, settings: Mapping[str, str], *, is_verbose: bool) -> ClusterWorld:
    """A cluster whose internal topics are replicated; `settings` are further ones of the brokers."""
    world = ClusterWorld(name, {**COMMON, **settings}, is_verbose=is_verbose)
    world.segment_bytes = SEGMENT_BYTES
    return world


class CoordinatorRun(ClusterRun):
    """One run."""

    apis: tuple[int, ...] = ()
    """The requests in whose middle faults happen."""

    def __init__(self, world: ClusterWorld, topics: Mapping[str, int]) -> None:
        super().__init__(world, topics)
        self.world.checks.includes_internal = True
        TransactionChecks(self.world.checks)
        self.faults = CoordinatorFaults(self.world, topics, self.apis)

    def start_clients(self) -> None:
        """Start the client processes."""

    def is_done(self) -> bool:
        """Whether the clients have done all their work."""
        raise NotImplementedError

    def run(self) -> None:
        """From the first start to the last check."""
        world = self.world
        self.start()
        self.start_clients()
        self.faults.plan()
        world.run(FAULTY_S, lambda: self.is_done() and world.clock.now > 1020.0)
        self.settle(HEALED_S)
        self.crash_all()
        self.settle(HEALED_S)

    def leader_of(self, topic: str, index: int) -> Broker | None:
        """The broker that leads a partition, None while there is none that knows it."""
        image = self.world.image
        if image is None or topic not in image.topics:
            return None
        leader = image.topics[topic].partitions[index].leader
        broker = self.world.nodes[leader].broker if leader >= 0 else None
        return broker if broker is not None and self.world.nodes[leader].is_listening else None

    def check_end(self) -> None:
        """The cluster is whole, no transaction is open, and the processes run."""
        world = self.world
        assert world.processes_run, "a process is paused or has not restarted"
        assert self.is_done(), "the clients are not done"
        super().check_end()
        for node in world.nodes.values():
            assert node.broker is not None
            for partition in () if node.is_controller else node.broker.partitions:
                log = partition.log
                assert log.last_stable_offset == log.log_end_offset, f"{partition!r} has open transactions"
