"""ListOffsets and OffsetForLeaderEpoch of consumers."""

from __future__ import annotations

from compat.twin.families.produce import NOW_MS, plain_batch, send
from compat.twin.world import World


def list_offsets(world: World) -> None:
    """By timestamp, and the special ones: earliest, latest, max timestamp, local, tiered."""
    topic = world.topic()
    version = world.version("ListOffsets")
    moments = (-1, -2, -3, -4, -5, -6, 0, NOW_MS, NOW_MS - 100_000, NOW_MS - 999, NOW_MS + 1, -7, 2**62)
    parts = [
        {
            "partition_index": world.partition(topic),
            "current_leader_epoch": world.mostly(-1, 0, 1, 9),
            "timestamp": world.pick(*moments),
        }
        for _ in range(world.pick(1, 1, 2))
    ]
    request = {
        "replica_id": world.mostly(-1, -2, 1, 5, probability=0.93),
        "isolation_level": world.mostly(0, 1, 2, -1),
        "topics": [{"name": world.mostly(topic.name, "{s}unknown", "", probability=0.95), "partitions": parts}],
        "timeout_ms": 1000,
    }
    world.send("ListOffsets", request, version=version)


def epoch_end(world: World) -> None:
    """Where an epoch of a leader ends."""
    topic = world.topic()
    part = {
        "partition": world.partition(topic),
        "current_leader_epoch": world.mostly(-1, 0, 1, 9),
        "leader_epoch": world.pick(0, 0, 1, -1, 9),
    }
    name = world.mostly(topic.name, "{s}unknown", "", probability=0.95)
    request = {"replica_id": world.mostly(-1, -2, 1), "topics": [{"topic": name, "partitions": [part]}]}
    world.send("OffsetForLeaderEpoch", request)


def write(world: World) -> None:
    """Records to look for."""
    topic = world.topic()
    send(world, topic, world.partition(topic), plain_batch(world), acks=-1)


ACTIONS = (
    (3, write),
    (6, list_offsets),
    (2, epoch_end),
)
