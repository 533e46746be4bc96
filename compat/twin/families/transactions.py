"""Transactional producers: InitProducerId, AddPartitionsToTxn, offsets in a transaction, EndTxn, markers, lists."""

from __future__ import annotations

from typing import Any

from compat.twin.families.produce import producers_batch, send
from compat.twin.steps import Saved
from compat.twin.world import Producer, World


def transactional(world: World) -> Producer:
    """A producer with a transactional id."""
    having = [producer for producer in world.producers if producer.transactional_id is not None]
    if not having or world.chance(0.05):
        return world.new_producer(world.new_name("tx"))
    return world.random.choice(having)


def identity(world: World, producer: Producer) -> dict[str, Any]:
    """The id and epoch of a producer, now and then wrong ones."""
    epoch = producer.epoch
    return {
        "transactional_id": world.mostly(producer.transactional_id, "{s}nobody", "", probability=0.96),
        "producer_id": world.mostly(producer.producer_id, 999_999, -1, probability=0.96),
        "producer_epoch": world.mostly(epoch, Saved(epoch.name, 0, 1), Saved(epoch.name, 0, -1), -1, probability=0.92),
    }


def init(world: World) -> None:
    """A new epoch for a producer."""
    producer = transactional(world)
    number = producer.number
    request: dict[str, Any] = {
        "transactional_id": world.mostly(producer.transactional_id, "", "{s}new", probability=0.95),
        "transaction_timeout_ms": world.mostly(60000, 0, -1, 900001, 900000, 1000, probability=0.9),
    }
    if world.chance(0.3):
        request["producer_id"] = world.mostly(producer.producer_id, 999_999)
        request["producer_epoch"] = world.mostly(producer.epoch, 0, Saved(producer.epoch.name, 0, -1))
    saves = {f"pid {number}": ("producer_id",), f"epoch {number}": ("producer_epoch",)}
    if request["transactional_id"] != producer.transactional_id:
        saves = {}
    version = world.pick(0, 1, 2, 3, 4, 5)
    world.send("InitProducerId", request, version=version, saves=saves, settle="transaction")
    producer.sequences.clear()


def add_partitions(world: World) -> None:
    """Partitions into the transaction."""
    producer, topic = transactional(world), world.topic()
    indexes = [world.partition(topic)] * world.mostly(1, 2, probability=0.95)
    topics = [{"name": world.mostly(topic.name, "{s}unknown", probability=0.95), "partitions": indexes}]
    who = identity(world, producer)
    request = {
        "transactions": [{**who, "verify_only": world.chance(0.2), "topics": topics}],
        **{f"v3_and_below_{name}": value for name, value in who.items()},
        "v3_and_below_topics": topics,
    }
    world.send("AddPartitionsToTxn", request, version=world.pick(0, 1, 2, 3, 3, 4, 5))


def write(world: World) -> None:
    """Records in the transaction; from version 12 on the partition need not be added before (KIP-890)."""
    producer, topic = transactional(world), world.topic()
    partition = world.partition(topic)
    batch = producers_batch(world, producer, topic, partition)
    transactional_id = world.mostly(producer.transactional_id, None, "{s}nobody", probability=0.96)
    send(world, topic, partition, batch, transactional_id=transactional_id, acks=world.mostly(-1, 1, probability=0.9))


def end(world: World) -> None:
    """Commit or abort."""
    producer = transactional(world)
    number = producer.number
    version = world.version("EndTxn")
    saves = {f"pid {number}": ("producer_id",), f"epoch {number}": ("producer_epoch",)} if version >= 5 else {}
    request = {**identity(world, producer), "committed": world.chance(0.6)}
    world.send("EndTxn", request, version=version, saves=saves, settle="transaction")
    if version >= 5:
        producer.sequences.clear()


def add_offsets(world: World) -> None:
    """A group into the transaction, and its offsets."""
    producer, topic = transactional(world), world.topic()
    group = world.mostly("{s}g1", "{s}g2", "", probability=0.9)
    connection = world.pick(*world.connections)
    who = identity(world, producer)
    if world.chance(0.6):
        world.send("AddOffsetsToTxn", {**who, "group_id": group}, connection=connection)
    part = {
        "partition_index": world.partition(topic),
        "committed_offset": world.mostly(5, 0, -1),
        "committed_leader_epoch": world.mostly(-1, 0, 3),
        "committed_metadata": world.mostly("", None, "m", "x" * 5000),
    }
    request = {
        **identity(world, producer),
        "group_id": group,
        "generation_id_or_member_epoch": world.mostly(-1, 0, 1, probability=0.9),
        "member_id": world.mostly("", "nobody", probability=0.9),
        "group_instance_id": world.mostly(None, "i", probability=0.95),
        "topics": [
            {
                "name": world.mostly(topic.name, "{s}unknown", probability=0.95),
                "topic_id": world.mostly(topic.topic_id, bytes(16), bytes(range(16)), probability=0.95),
                "partitions": [part],
            }
        ],
    }
    world.send("TxnOffsetCommit", request, connection=connection)


def markers(world: World) -> None:
    """Markers as a coordinator of another broker sends them."""
    producer, topic = transactional(world), world.topic()
    marker = {
        "producer_id": world.mostly(producer.producer_id, 999_999, probability=0.9),
        "producer_epoch": world.mostly(producer.epoch, Saved(producer.epoch.name, 0, 1), 0),
        "transaction_result": world.chance(0.5),
        "topics": [
            {
                "name": world.mostly(topic.name, "{s}unknown", probability=0.9),
                "partition_indexes": [world.partition(topic)],
            }
        ],
        "coordinator_epoch": world.mostly(0, 1, -1),
        "transaction_version": world.pick(0, 1, 2),
    }
    world.send("WriteTxnMarkers", {"markers": [marker] * world.mostly(1, 0, probability=0.95)})


def describe(world: World) -> None:
    """DescribeTransactions, ListTransactions, DescribeProducers."""
    producer, topic = transactional(world), world.topic()
    kind = world.pick(0, 1, 2)
    if kind == 0:
        names = [world.mostly(producer.transactional_id, "{s}nobody", "")] * world.mostly(1, 2, probability=0.95)
        world.send("DescribeTransactions", {"transactional_ids": names})
    elif kind == 1:
        request = {
            "state_filters": world.mostly([], ["Ongoing"], ["Empty", "CompleteCommit"], ["x"], ["ongoing"]),
            "producer_id_filters": world.mostly([], [producer.producer_id], [-1]),
            "duration_filter": world.mostly(-1, 0, 10**9, -5),
            "transactional_id_pattern": world.mostly(None, "{s}.*", "", "[", "nothing"),
        }
        world.send("ListTransactions", request, alone=True)
    else:
        name = world.mostly(topic.name, "{s}unknown", "", probability=0.9)
        indexes = [world.partition(topic)] * world.mostly(1, 2, 0, probability=0.95)
        world.send("DescribeProducers", {"topics": [{"name": name, "partition_indexes": indexes}]})


def read(world: World) -> None:
    """What a reader of committed records gets."""
    topic = world.topic()
    partition = world.partition(topic)
    part = {"partition": partition, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    topics = [{"topic": topic.name, "topic_id": topic.topic_id, "partitions": [part]}]
    request = {"max_wait_ms": 0, "min_bytes": 1, "isolation_level": world.mostly(1, 0), "topics": topics}
    world.send("Fetch", {"replica_id": -1, "max_bytes": 1 << 20, "session_epoch": -1, **request})


ACTIONS = (
    (2, init),
    (4, add_partitions),
    (7, write),
    (5, end),
    (2, add_offsets),
    (1, markers),
    (3, describe),
    (2, read),
)
