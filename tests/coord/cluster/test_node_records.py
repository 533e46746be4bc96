"""The records that a node writes about itself and the partitions that it leads. KIP-320, KIP-966."""

from __future__ import annotations

from barnabas.coord.cluster.node_records import election_records, shutdown_records
from barnabas.coord.cluster.topic_image import NO_LEADER
from barnabas.wire.messages.records.metadata_records import PartitionChangeRecord
from barnabas.wire.schema import Message
from tests.support.controller.worlds import ControllerWorld


def leaderless(world: ControllerWorld, topic: str, index: int, **changes: list[int]) -> None:
    record = PartitionChangeRecord(partition_id=index, topic_id=world.image.topics[topic].topic_id, leader=NO_LEADER)
    for name, value in changes.items():
        setattr(record, name, value)
    world.apply([record])


def led(records: list[Message]) -> set[int]:
    return {record.partition_id for record in records if isinstance(record, PartitionChangeRecord)}


def test_the_only_node_becomes_leader_of_a_leaderless_partition_and_clears_its_elr() -> None:
    world = ControllerWorld()
    world.create("a", 3)
    leaderless(world, "a", 0, isr=[], eligible_leader_replicas=[1], last_known_elr=[1])
    leaderless(world, "a", 1)
    records = election_records(world.image, 1, after_crash=False)
    assert led(records) == {0, 1}
    world.apply(records)
    for index in (0, 1):
        partition = world.image.topics["a"].partitions[index]
        assert (partition.leader, partition.isr, partition.elr, partition.last_known_elr) == (1, (1,), (), ())
        assert partition.leader_epoch == 2
    assert election_records(world.image, 1, after_crash=False) == []


def test_after_a_crash_every_partition_has_a_new_leader_epoch() -> None:
    world = ControllerWorld()
    world.create("a", 2)
    leaderless(world, "a", 0)
    assert led(election_records(world.image, 1, after_crash=True)) == {0, 1}


def test_partitions_without_a_local_replica_do_not_change() -> None:
    world = ControllerWorld(brokers=2)
    world.create("a", 1)
    leaderless(world, "a", 0)
    assert election_records(world.image, 7, after_crash=True) == []


def test_a_shutdown_removes_the_leader_of_coordinator_partitions_only() -> None:
    world = ControllerWorld()
    world.create("a", 2)
    world.create("__consumer_offsets", 3)
    world.apply(shutdown_records(world.image, world.image.brokers[1]))
    leaders = {
        name: [partition.leader for partition in topic.partitions.values()]
        for name, topic in world.image.topics.items()
    }
    assert leaders == {"a": [1, 1], "__consumer_offsets": [NO_LEADER] * 3}
    assert (world.image.brokers[1].fenced, world.image.brokers[1].in_controlled_shutdown) == (True, True)
