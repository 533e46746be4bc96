"""Fetch of consumers, with and without sessions, by name and by id."""

from __future__ import annotations

from typing import Any

from compat.twin.families.produce import plain_batch, send
from compat.twin.steps import Saved
from compat.twin.world import Topic, World


def partition_of(world: World, topic: Topic) -> dict[str, Any]:
    """What a fetch asks of a partition."""
    partition = world.partition(topic)
    end = topic.ends.get(partition, 0)
    return {
        "partition": partition,
        "fetch_offset": world.mostly(0, 1, end, end + 1, end * 3, -1, 1000, probability=0.5),
        "current_leader_epoch": world.mostly(-1, 0, 1, 5, -2),
        "last_fetched_epoch": world.mostly(-1, 0, 1, probability=0.9),
        "log_start_offset": world.mostly(-1, 0, 5, probability=0.95),
        "partition_max_bytes": world.mostly(1 << 20, 1, 0, 100, -1),
    }


def topics_of(world: World, count: int) -> list[dict[str, Any]]:
    """Different topics of a fetch, with a few partitions each."""
    entries = []
    for topic in {topic.name: topic for topic in [world.topic() for _ in range(count)]}.values():
        parts = {part["partition"]: part for part in [partition_of(world, topic) for _ in range(world.pick(1, 1, 2))]}
        entries.append(
            {
                "topic": world.mostly(topic.name, "{s}unknown", probability=0.95),
                "topic_id": world.mostly(topic.topic_id, topic.stale_id, bytes(16), probability=0.93),
                "partitions": list(parts.values()),
            }
        )
    return entries


def request_of(world: World, **fields: Any) -> dict[str, Any]:
    """A fetch."""
    return {
        "replica_id": -1,
        "max_wait_ms": world.mostly(0, 1, 20),
        "min_bytes": world.mostly(1, 0, 100000),
        "max_bytes": world.mostly(1 << 20, 0, 1, 100, -1, probability=0.85),
        "isolation_level": world.mostly(0, 1, 2, probability=0.6),
        "session_id": 0,
        "session_epoch": -1,
        "topics": topics_of(world, world.pick(1, 1, 2)),
        "rack_id": world.mostly("", "r", probability=0.9),
        **fields,
    }


def fetch(world: World) -> None:
    """Without a session."""
    world.send("Fetch", request_of(world))


def session(world: World) -> None:
    """A new session, and steps of it."""
    number = world.notes["sessions"] = world.notes.get("sessions", 0) + 1
    version = world.version("Fetch", 7)
    saved = Saved(f"session {number}", 0)
    connection = world.pick(*world.connections)
    world.send(
        "Fetch",
        request_of(world, session_epoch=0),
        version=version,
        saves={saved.name: ("session_id",)},
        connection=connection,
    )
    epoch = 1
    for _ in range(world.pick(1, 2, 4)):
        topic = world.topic()
        if world.chance(0.5):
            send(world, topic, world.partition(topic), plain_batch(world), connection=connection, acks=-1)
        fields: dict[str, Any] = {
            "session_id": world.mostly(saved, Saved(saved.name, 0, 1), 12345, probability=0.95),
            "session_epoch": world.mostly(epoch, epoch + 1, epoch - 1, 0, -1, probability=0.9),
            "topics": topics_of(world, 1) if world.chance(0.4) else [],
        }
        if world.chance(0.3):
            forgotten = {"topic": topic.name, "topic_id": topic.topic_id, "partitions": [world.partition(topic)]}
            fields["forgotten_topics_data"] = [forgotten]
        world.send("Fetch", request_of(world, **fields), version=version, connection=connection)
        epoch += 1


def write(world: World) -> None:
    """Records to read."""
    topic = world.topic()
    send(world, topic, world.partition(topic), plain_batch(world), acks=-1)


ACTIONS = (
    (5, write),
    (6, fetch),
    (3, session),
)
