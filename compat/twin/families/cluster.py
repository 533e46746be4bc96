"""The cluster for administrators: replicas, leaders, log directories, coordinators, configs of groups and brokers."""

from __future__ import annotations

from typing import Any

from compat.twin.families.group_offsets import group
from compat.twin.world import World


def reassign(world: World) -> None:
    """Replicas of a partition: those it has, others, wrong ones, or the end of a reassignment."""
    topic = world.topic()
    replicas = world.mostly([1], None, [], [2], [1, 1], [1, 2], [-1], probability=0.4)
    part = {"partition_index": world.partition(topic), "replicas": replicas}
    name = world.mostly(topic.name, "{s}unknown", "", probability=0.9)
    topics = [{"name": name, "partitions": [part] * world.mostly(1, 2, probability=0.9)}]
    request = {
        "topics": world.mostly(topics, [], topics * 2, probability=0.9),
        "allow_replication_factor_change": world.chance(0.7),
        "timeout_ms": 10000,
    }
    world.send("AlterPartitionReassignments", request, settle="metadata")


def reassignments(world: World) -> None:
    """Reassignments that are not done, of which one node has none."""
    topic = world.topic()
    topics = [{"name": world.mostly(topic.name, "{s}unknown"), "partition_indexes": [0, world.partition(topic)]}]
    world.send("ListPartitionReassignments", {"topics": world.mostly(topics, None, []), "timeout_ms": 10000})


def elect(world: World) -> None:
    """An election where it is not needed, or not possible."""
    topic = world.topic()
    parts = [{"topic": world.mostly(topic.name, "{s}unknown", ""), "partitions": [world.partition(topic)]}]
    request = {
        "election_type": world.mostly(0, 1, 2, -1, probability=0.6),
        "topic_partitions": world.mostly(parts, [], parts * 2, probability=0.9),
        "timeout_ms": 10000,
    }
    world.send("ElectLeaders", request, settle="metadata")


def log_dirs(world: World) -> None:
    """Where partitions are, and how large."""
    topic = world.topic()
    topics = [{"topic": world.mostly(topic.name, "{s}unknown"), "partitions": [0, world.partition(topic)]}]
    world.send("DescribeLogDirs", {"topics": world.mostly(topics, [])})


def move(world: World) -> None:
    """A move to a directory that does not exist."""
    topic = world.topic()
    topics = [{"name": world.mostly(topic.name, "{s}unknown"), "partitions": [world.partition(topic)]}]
    request = {"dirs": [{"path": world.pick("/no/such/dir", "", "relative"), "topics": topics}]}
    world.send("AlterReplicaLogDirs", request)


def describe_cluster(world: World) -> None:
    """Brokers, controller, and what the client may do."""
    request = {
        "include_cluster_authorized_operations": world.chance(0.5),
        "endpoint_type": world.mostly(1, 2, 0, 3, -1, probability=0.7),
        "include_fenced_brokers": world.chance(0.5),
    }
    world.send("DescribeCluster", request)


def find_coordinator(world: World) -> None:
    """Coordinators of groups, transactions and share partitions."""
    kind = world.mostly(0, 1, 2, 3, -1, probability=0.6)
    key = world.mostly(group(world), "", "{s}tx1", "g:AAAAAAAAAAAAAAAAAAAAAQ:0", "a:b:c", "a:b", probability=0.6)
    keys = world.mostly([key], [], [key, "{s}other"], [key, key], probability=0.7)
    world.send("FindCoordinator", {"key": key, "key_type": kind, "coordinator_keys": keys})


GROUP_KEYS = (
    "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms", "share.session.timeout.ms",
    "share.isolation.level",
    "share.record.lock.duration.ms", "share.auto.offset.reset", "streams.num.standby.replicas", "own", "",
    "share.delivery.count.limit", "streams.session.timeout.ms", "share.heartbeat.interval.ms",
)  # fmt: skip
BROKER_KEYS = (
    "log.cleaner.threads",
    "background.threads",
    "message.max.bytes",
    "node.id",
    "own",
    "ssl.keystore.location",
)


def alter_configs(world: World) -> None:
    """Configs of a group or of brokers; those of brokers are only validated."""
    is_group = world.chance(0.7)
    keys: Any = GROUP_KEYS if is_group else BROKER_KEYS
    configs = [
        {
            "name": world.pick(*keys),
            "config_operation": world.mostly(0, 1, 2, 3, 9, probability=0.7),
            "value": world.mostly(
                "50000", "-1", "0", "x", "", None, "earliest", "read_committed", "2", probability=0.4
            ),
        }
        for _ in range(world.mostly(1, 2, 0))
    ]
    name = world.mostly(group(world), "", probability=0.95) if is_group else world.mostly("1", "", "2", "x")
    resource = {
        "resource_type": 32 if is_group else world.mostly(4, 8, 16, 0),
        "resource_name": name,
        "configs": configs,
    }
    request = {
        "resources": [resource] * world.mostly(1, 2, probability=0.95),
        "validate_only": not is_group or world.chance(0.3),
    }
    if world.chance(0.7):
        world.send("IncrementalAlterConfigs", request, settle="metadata")
        return
    for config in configs:
        del config["config_operation"]
    world.send("AlterConfigs", request, settle="metadata")


def describe_configs(world: World) -> None:
    """Configs of a group."""
    keys = world.mostly(None, [], ["share.isolation.level"], ["own"], list(GROUP_KEYS[:3]))
    resource = {
        "resource_type": world.mostly(32, 16, 0, probability=0.9),
        "resource_name": world.mostly(group(world), "", probability=0.9),
        "configuration_keys": keys,
    }
    request = {
        "resources": [resource],
        "include_synonyms": world.chance(0.5),
        "include_documentation": False,
    }
    world.send("DescribeConfigs", request)


ACTIONS = (
    (3, reassign),
    (2, reassignments),
    (2, elect),
    (2, log_dirs),
    (1, move),
    (2, describe_cluster),
    (3, find_coordinator),
    (4, alter_configs),
    (2, describe_configs),
)
