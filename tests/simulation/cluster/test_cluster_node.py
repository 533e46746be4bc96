"""Single events in a simulated cluster that the simulation has found a bug with."""

from __future__ import annotations

from barnabas.broker.replicas.leader.leader_state import Proposal
from barnabas.broker.replicas.leader.leading import Leading
from barnabas.coord.cluster.topic_image import PartitionImage
from barnabas.storage.log import Log
from barnabas.wire.messages import topics as tp
from tests.simulation.cluster.clients import ClusterProducer
from tests.simulation.cluster.node import CONTROLLER_ID
from tests.simulation.cluster.partitions import SimulatedCluster

SYNCED_WITH_FOUR_BROKERS = "cluster:four brokers"
KEY = ("a", 0)


class Events:
    """A cluster with chosen events, and one partition that is looked at."""

    def __init__(self) -> None:
        self.cluster = SimulatedCluster(SYNCED_WITH_FOUR_BROKERS)
        self.world = self.cluster.world
        assert self.world.is_synced
        self.cluster.start()
        self._producers = 0

    def log(self, broker_id: int) -> Log:
        """The partition's log on a broker."""
        broker = self.world.nodes[broker_id].broker
        assert broker is not None
        return broker.partitions.get(*KEY).log

    @property
    def partition(self) -> PartitionImage:
        """What the controller knows of the partition."""
        image = self.world.image
        assert image is not None
        return image.topics[KEY[0]].partitions[KEY[1]]

    @property
    def follower(self) -> int:
        """One of the partition's followers."""
        partition = self.partition
        return next(broker_id for broker_id in partition.replicas if broker_id != partition.leader)

    def start_producer(self, batches: int = 1) -> ClusterProducer:
        """Send batches to the partition."""
        self._producers += 1
        return self.cluster.produce(self._producers, *KEY, batches)

    def produce(self, batches: int) -> None:
        """Wait until batches are acknowledged."""
        producer = self.start_producer(batches)
        self.world.run(30.0, lambda: producer.is_done)
        assert producer.is_done

    def lose_disk(self, broker_id: int, *, keeps_name: bool = False) -> None:
        """A broker's disk is lost, and the broker with it if it runs."""
        image = self.world.image
        assert image is not None
        self.world.checks.disk_is_lost(broker_id, image)
        self.world.nodes[broker_id].lose_disk(keeps_name=keeps_name)

    @property
    def _leading(self) -> Leading:
        broker = self.world.nodes[self.partition.leader].broker
        assert broker is not None
        leading = broker.partitions.get(*KEY).leading
        assert leading is not None
        return leading

    @property
    def proposal(self) -> Proposal | None:
        """The ISR that the leader asks for."""
        return self._leading.state.proposal

    def has_fetched_anew(self, follower: int) -> bool:
        """Whether the leader has heard of the follower's present incarnation."""
        member = self.world.nodes[follower].member
        known = self._leading.state.followers[follower].broker_epoch
        return member is not None and known == member.lifecycle.broker_epoch

    def is_unfenced(self, broker_id: int) -> bool:
        """Whether the controller has a broker that may serve, of its present incarnation."""
        image, member = self.world.image, self.world.nodes[broker_id].member
        assert image is not None
        known = image.brokers[broker_id]
        return not known.fenced and member is not None and member.lifecycle.broker_epoch == known.epoch


def test_a_broker_with_a_new_disk_may_lead() -> None:
    """KIP-858: it reports the directory of its replicas, which is another one."""
    events = Events()
    world, follower = events.world, events.follower
    events.produce(3)
    events.lose_disk(follower)
    world.nodes[follower].start()
    world.run(30.0, lambda: follower not in events.partition.isr)
    world.run(30.0, lambda: follower in events.partition.isr)
    for broker_id in events.partition.replicas:
        if broker_id != follower:
            world.nodes[broker_id].kill(power_fails=False)
    world.run(30.0, lambda: events.partition.leader == follower)
    assert events.partition.leader == follower


def test_a_replica_that_has_lost_everything_does_not_join_as_its_earlier_incarnation() -> None:
    """R10: the network holds up the leader's request until the replica has started anew and fetched."""
    events = Events()
    world, follower, leader = events.world, events.follower, events.partition.leader
    node = world.nodes[follower]
    node.kill(power_fails=False)
    world.run(30.0, lambda: follower not in events.partition.isr)
    events.produce(3)
    node.start()
    world.run(30.0, lambda: node.is_listening)
    world.network.cut(leader, CONTROLLER_ID)
    world.run(0.3, lambda: events.proposal is not None)
    assert events.proposal is not None
    stopped: list[int] = []
    node.stop(lambda: stopped.append(follower))
    world.run(0.3, lambda: bool(stopped))
    assert stopped
    events.lose_disk(follower, keeps_name=True)  # with another directory the metadata of the partition would change
    node.start()
    world.run(0.3, lambda: events.has_fetched_anew(follower))
    assert events.has_fetched_anew(follower)
    world.network.cut(leader, follower)
    world.run(0.3, lambda: events.is_unfenced(follower))
    assert events.is_unfenced(follower)
    assert events.proposal is not None
    world.network.mend(leader, CONTROLLER_ID)
    world.run(1.0)
    assert (events.partition.leader, follower in events.partition.isr) == (leader, False)
    world.network.mend(leader, follower)
    world.run(30.0, lambda: follower in events.partition.isr)
    assert follower in events.partition.isr


def test_a_follower_keeps_what_was_committed_before_it_was_told() -> None:
    """R5: it has more than the new leader, and a high watermark below what the leader before has committed."""
    events = Events()
    world, network = events.world, events.world.network
    leader, next_leader, follower = events.partition.replicas
    assert leader == events.partition.leader
    events.produce(2)
    before = events.log(leader).log_end_offset
    world.run(5.0, lambda: events.log(follower).high_watermark == before)
    events.start_producer()
    world.run(5.0, lambda: events.log(next_leader).log_end_offset > before)
    network.cut(next_leader, leader)  # so the leader does not learn that the next one has the records
    committed = events.log(next_leader).log_end_offset
    events.start_producer()
    world.run(2.0, lambda: events.log(follower).log_end_offset > committed)
    network.cut(leader, follower)
    network.cut(leader, next_leader)
    network.mend(next_leader, leader)
    world.run(1.0, lambda: events.log(leader).high_watermark == committed)
    assert events.log(leader).high_watermark == committed
    assert (events.log(follower).high_watermark, events.log(next_leader).log_end_offset) == (before, committed)
    assert events.log(follower).log_end_offset > committed
    world.nodes[leader].kill(power_fails=False)
    world.run(10.0, lambda: events.partition.leader == next_leader)
    world.run(10.0, lambda: events.log(follower).high_watermark > committed)
    assert (events.partition.leader, follower in events.partition.isr) == (next_leader, True)
    assert events.log(follower).high_watermark > committed  # the second producer has sent its records again


def test_a_replica_that_is_moved_away_while_its_broker_is_down_is_set_aside() -> None:
    """R22: what a crash has left of it is recovered before the broker knows; it is not used when it comes back."""
    cluster = SimulatedCluster("cluster:four brokers")
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
    cluster.faults.reassign("a", tp.ReassignablePartition(partition_index=0, replicas=others))
    world.run(30.0, lambda: sorted(image.topics["a"].partitions[0].replicas) == others)
    assert sorted(image.topics["a"].partitions[0].replicas) == others
    world.run(10.0)
    node.start()
    world.run(30.0, lambda: node.is_listening and cluster.all_unfenced())
    assert node.broker is not None
    assert ("a", 0) not in node.broker.log_dirs.logs
    assert ("a", 0) not in list(node.broker.log_dirs.not_opened())
