"""Produce in all versions, with batches of every kind, and DeleteRecords."""

from __future__ import annotations

import time
from typing import Any

from compat.twin.batches import Batch, Batches
from compat.twin.world import Producer, Topic, World

NOW_MS = int(time.time()) // 86_400 * 86_400_000
"""The start of today: timestamps are the same for both brokers, and near enough to now."""
BODIES = (b"", b"\0", b"\xff\x13garbage\x80\x80" * 5, b"no frame at all" * 5)


def values(world: World) -> tuple[bytes | None, ...]:
    """Values of a few records."""
    count = world.mostly(world.pick(1, 1, 2, 3), 10, probability=0.95)
    return tuple(world.mostly(b"v%d" % number, None, b"", b"x" * 300, probability=0.9) for number in range(count))


def plain_batch(world: World, **changed: Any) -> Batch:
    """A batch that is right."""
    made: dict[str, Any] = {
        "values": values(world),
        "first_ms": NOW_MS - world.pick(0, 1, 1000, 100_000),
        "step_ms": world.mostly(1, 0, 50, -1),
        "codec": world.mostly(0, 1, 2, 3, 4, probability=0.6),
    }
    if world.chance(0.4):
        made["keys"] = tuple(b"k%d" % world.random.randrange(3) for _ in made["values"])
    if world.chance(0.15):
        made["headers"] = world.pick(1, 2)
    if world.chance(0.1):
        made["base_offset"] = world.pick(5, -1, 1 << 40)
    if world.chance(0.1):
        made["leader_epoch"] = world.pick(0, 3)
    return Batch(**{**made, **changed})


def wrong_batch(world: World) -> Batch:
    """A batch that is wrong, or unusual, in one thing or two."""
    codec = world.mostly(0, 1, 2, 3, 4, probability=0.7)
    changes: list[dict[str, Any]] = [
        {"crc": world.pick(0, 1234567)},
        {"count": world.pick(0, -1, 1, 2, 3, 1000, 2**31 - 1)},
        {"last_delta": world.pick(-1, 0, 1, 2, 3, 99)},
        {"length": world.pick(0, 48, 49, -1, 30, 1000, 60)},
        {"max_ms": world.pick(-1, 0, NOW_MS + 5, NOW_MS - 5, -2)},
        {"first_ms": world.pick(-1, -2, 0, 5, NOW_MS + 10 * 3_600_000, NOW_MS + 10**10, 2**62)},
        {"attributes": world.pick(8, 16, 32, 48, 64, 128, 0x100, 5, 6, 7, 8 | 16)},
        {"codec": world.pick(5, 6, 7)},
        {"codec": world.pick(1, 2, 3, 4), "body": world.pick(*BODIES)},
        {"body": world.pick(*BODIES)},
        {"offset_gap": world.pick(1, 5, -1)},
        {"extra": world.pick(b"\0", b"\x02\0\0\0", b"\xff")},
        {"cut": world.pick(1, 10, 30, 60)},
        {"magic": world.pick(0, 1, 3, -1)},
        {"values": ()},
        {"sequence": world.pick(0, 5)},
        {"producer_id": world.pick(5, 0, -2), "producer_epoch": world.pick(-1, 0), "sequence": world.pick(-1, 0)},
    ]
    changed = dict(world.pick(*changes))
    if world.chance(0.1):
        changed |= world.pick(*changes)
    return plain_batch(world, **{"codec": codec, **changed})


def old_batch(world: World) -> Batch:
    """Messages of magic 0 and 1."""
    return plain_batch(world, magic=world.pick(0, 1), crc=world.mostly(None, 7, probability=0.9))


def producers_batch(world: World, producer: Producer, topic: Topic, partition: int) -> Batch:
    """A batch of an idempotent or transactional producer: the next one, again, a late one, one too many."""
    place = (topic.name, partition)
    usual = producer.sequences.get(place, 0)
    sequence = world.mostly(usual, usual + 1, max(0, usual - 1), 0, 2**31 - 1, probability=0.85)
    epoch = producer.epoch
    if world.chance(0.07):
        epoch = type(epoch)(epoch.name, 0, world.pick(1, -1))
    transactional = producer.transactional_id is not None
    batch = plain_batch(
        world,
        producer_id=producer.producer_id,
        producer_epoch=epoch,
        sequence=sequence,
        attributes=16 if world.mostly(transactional, not transactional, probability=0.97) else 0,
    )
    if sequence == usual:
        producer.sequences[place] = usual + len(batch.values)
    return batch


def send(
    world: World, topic: Topic, partition: int, records: Any, *, transactional_id: str | None = None, **options: Any
) -> None:
    """One Produce request with one partition."""
    version = options.pop("version", None) or world.version("Produce")
    acks = options.pop("acks", None)
    data: list[dict[str, Any]] = [{"index": partition, "records": records}]
    topics = [
        {
            "name": world.mostly(topic.name, "{s}unknown", "", probability=0.98),
            "topic_id": world.mostly(topic.topic_id, topic.stale_id, bytes(16), probability=0.95),
            "partition_data": data,
        }
    ]
    request = {
        "transactional_id": transactional_id,
        "acks": world.mostly(-1, 1, 0, 2, -2, probability=0.8) if acks is None else acks,
        "timeout_ms": 30000,
        "topic_data": topics,
    }
    world.send("Produce", request, version=version, **options)
    topic.ends[partition] = topic.ends.get(partition, 0) + 1


def produce(world: World) -> None:
    """Right batches."""
    topic = world.topic()
    send(world, topic, world.partition(topic), plain_batch(world))


def produce_wrong(world: World) -> None:
    """Wrong batches."""
    topic = world.topic()
    batch = world.pick(wrong_batch, wrong_batch, old_batch)(world)
    send(world, topic, world.partition(topic), batch)


def produce_several(world: World) -> None:
    """Several batches, no batch, bytes after the batch."""
    topic = world.topic()
    first, second = plain_batch(world), world.pick(plain_batch, wrong_batch)(world)
    records = world.pick(
        Batches((first, second)),
        Batches((first,), b"\0" * world.pick(1, 5, 20)),
        Batches(),
        Batches((), b"\0" * 70),
    )
    send(world, topic, world.partition(topic), records)


def produce_idempotent(world: World) -> None:
    """Batches of an idempotent producer."""
    plain = [producer for producer in world.producers if producer.transactional_id is None]
    producer = world.random.choice(plain) if plain and world.chance(0.9) else world.new_producer(None)
    topic = world.topic()
    partition = world.partition(topic)
    send(world, topic, partition, producers_batch(world, producer, topic, partition))


def produce_many(world: World) -> None:
    """Partitions of several topics in one request, perhaps one of them twice."""
    entries = []
    for _ in range(world.pick(2, 2, 3)):
        topic = world.topic()
        data = [{"index": world.partition(topic), "records": plain_batch(world)} for _ in range(world.pick(1, 2))]
        entries.append({"name": topic.name, "topic_id": topic.topic_id, "partition_data": data})
    request = {"transactional_id": None, "acks": world.mostly(-1, 1), "timeout_ms": 30000, "topic_data": entries}
    world.send("Produce", request)


def delete_records(world: World) -> None:
    """The first records of a partition."""
    topic = world.topic()
    partition = world.partition(topic)
    end = topic.ends.get(partition, 0)
    offset = world.pick(-1, 0, 1, end, end + 5, -2, max(0, end - 1))
    parts = [{"partition_index": partition, "offset": offset}] * world.mostly(1, 2, probability=0.95)
    name = world.mostly(topic.name, "{s}unknown", "", "__consumer_offsets", probability=0.95)
    world.send("DeleteRecords", {"topics": [{"name": name, "partitions": parts}], "timeout_ms": 30000})


ACTIONS = (
    (8, produce),
    (7, produce_wrong),
    (3, produce_several),
    (6, produce_idempotent),
    (1, produce_many),
    (2, delete_records),
)
