"""Topics and partitions: creation, deletion, more partitions, Metadata, DescribeTopicPartitions."""

from __future__ import annotations

from compat.twin.world import World

BAD_NAMES = ("", ".", "..", "a b", "a/b", "x" * 250, "{s}a.b", "{s}a_b", "{s}t1")


def create(world: World) -> None:
    """A topic that is right."""
    world.create_topic(configs=world.mostly({}, {"cleanup.policy": "compact"}, {"retention.ms": "100000"}))


def create_wrong(world: World) -> None:
    """A topic that is wrong in one thing, or only validated."""
    wanted: dict[str, object] = {
        "name": world.mostly(world.new_name("t"), *BAD_NAMES),
        "num_partitions": world.mostly(1, 0, -1, -2, 2, probability=0.6),
        "replication_factor": world.mostly(1, 0, -1, 2, -2, probability=0.6),
    }
    if world.chance(0.3):
        wanted["configs"] = [
            {
                "name": world.pick("retention.ms", "cleanup.policy", "no.such.key", "min.insync.replicas", ""),
                "value": world.pick("1", "-2", "x", "", None, "compact"),
            }
        ]
    if world.chance(0.2):
        wanted |= {"num_partitions": -1, "replication_factor": -1}
        wanted["assignments"] = world.pick(
            [{"partition_index": 0, "broker_ids": [1]}],
            [{"partition_index": 1, "broker_ids": [1]}],
            [{"partition_index": 0, "broker_ids": [1, 1]}],
            [{"partition_index": 0, "broker_ids": [7]}],
            [{"partition_index": 0, "broker_ids": []}],
            [{"partition_index": 0, "broker_ids": [1]}, {"partition_index": 0, "broker_ids": [1]}],
        )
    topics = [wanted] * world.mostly(1, 2, probability=0.9)
    world.send(
        "CreateTopics",
        {"topics": topics, "timeout_ms": 30000, "validate_only": world.chance(0.4)},
        settle="metadata",
    )


def delete(world: World) -> None:
    """A topic, by name or by id."""
    topic = world.topic()
    version = world.version("DeleteTopics")
    by_id = version >= 6 and world.chance(0.5)
    state = {"topic_id": topic.topic_id, "name": None} if by_id else {"name": topic.name}
    request = {"topic_names": [topic.name], "topics": [state], "timeout_ms": 30000}
    world.send("DeleteTopics", request, version=version, settle="gone")
    topic.exists = False


def delete_wrong(world: World) -> None:
    """Topics that are unknown, named twice, or by name and id."""
    topic = world.topic()
    version = world.version("DeleteTopics")
    states = world.pick(
        [{"name": "{s}unknown"}],
        [{"name": None, "topic_id": bytes(range(16))}],
        [{"name": "{s}unknown"}, {"name": "{s}unknown"}],
        [{"name": topic.name, "topic_id": topic.topic_id}],
        [{"name": None, "topic_id": topic.stale_id}],
        [{"name": None}],
        [],
    )
    names = world.pick(["{s}unknown"], ["{s}unknown", "{s}unknown"], [], [""])
    request = {"topic_names": names, "topics": states, "timeout_ms": 30000}
    world.send("DeleteTopics", request, version=version, settle="gone")


def recreate(world: World) -> None:
    """A deleted topic under its name."""
    gone = [topic for topic in world.topics if not topic.exists]
    if gone:
        world.create_again(world.random.choice(gone))


def more_partitions(world: World) -> None:
    """More partitions, the same, or fewer."""
    topic = world.topic()
    count = topic.partitions + world.mostly(1, 0, -1, 2, -99, probability=0.6)
    dry = world.chance(0.2)
    assignments = world.mostly(None, [{"broker_ids": [1]}], [{"broker_ids": [9]}], [{"broker_ids": []}], [])
    name = world.mostly(topic.name, "{s}unknown", "", probability=0.9)
    request = {
        "topics": [{"name": name, "count": count, "assignments": assignments}] * world.mostly(1, 2, probability=0.95),
        "timeout_ms": 30000,
        "validate_only": dry,
    }
    world.send("CreatePartitions", request, settle="metadata")
    if not dry and topic.exists and name == topic.name and assignments in (None, [{"broker_ids": [1]}]):
        topic.partitions = max(topic.partitions, min(count, topic.partitions + 2))


def metadata(world: World) -> None:
    """Metadata of topics by name or id, or of all."""
    topic = world.topic()
    version = world.version("Metadata")
    named = [{"name": world.mostly(topic.name, "{s}unknown", "a b", "")}]
    by_id = [{"name": None, "topic_id": world.mostly(topic.topic_id, topic.stale_id, bytes(16), bytes(range(16)))}]
    topics = world.mostly(named, None if version >= 1 else named, [], named * 2, by_id if version >= 10 else named)
    world.send(
        "Metadata",
        {
            "topics": topics,
            "allow_auto_topic_creation": False,
            "include_cluster_authorized_operations": world.chance(0.3),
            "include_topic_authorized_operations": world.chance(0.3),
        },
        version=version,
    )


def describe_partitions(world: World) -> None:
    """Pages of partitions."""
    names = sorted(
        {world.topic().name for _ in range(world.pick(1, 2))} | ({"{s}unknown"} if world.chance(0.2) else set())
    )
    cursor = None
    if world.chance(0.4):
        cursor = {"topic_name": world.pick(*names, "{s}a"), "partition_index": world.pick(0, 1, -1, 99)}
    request = {
        "topics": [{"name": name} for name in names],
        "response_partition_limit": world.mostly(2000, 0, 1, 2, -1),
        "cursor": cursor,
    }
    world.send("DescribeTopicPartitions", request)


ACTIONS = (
    (3, create),
    (4, create_wrong),
    (2, delete),
    (2, delete_wrong),
    (2, recreate),
    (2, more_partitions),
    (5, metadata),
    (3, describe_partitions),
)
