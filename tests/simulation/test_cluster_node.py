"""Single events in a simulated cluster that the simulation has found a bug with."""

from __future__ import annotations

from barnabas.wire.messages import topics as tp
from tests.simulation.cluster import Cluster


def test_a_replica_that_is_moved_away_while_its_broker_is_down_is_set_aside() -> None:
    """R22: what a crash has left of it is recovered before the broker knows; it is not used when it comes back."""
    cluster = Cluster("cluster:four brokers")
    world = cluster.world
    assert world.is_synced
    assert len(world.brokers) == 4
    cluster.start()
    image = world.image
    assert image is not None
    before = image.topics["a"].partitions[0]
    moved = next(broker_id for broker_id in before.replicas if broker_id != before.leader)
    node = world.nodes[moved]
    node.kill(power_fails=False)
    others = [broker_id for broker_id in world.brokers if broker_id != moved]
    cluster.reassign("a", tp.ReassignablePartition(partition_index=0, replicas=others))
    world.run(30.0, lambda: sorted(image.topics["a"].partitions[0].replicas) == others)
    assert sorted(image.topics["a"].partitions[0].replicas) == others
    world.run(10.0)
    node.start()
    world.run(30.0, lambda: node.is_listening and cluster.all_unfenced())
    assert node.broker is not None
    assert ("a", 0) not in node.broker.log_dirs.logs
    assert ("a", 0) not in list(node.broker.log_dirs.found())
