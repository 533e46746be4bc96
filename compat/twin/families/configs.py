"""Configs of topics: DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

from __future__ import annotations

from typing import Any

from compat.twin.world import World

VALUES: dict[str, tuple[str | None, ...]] = {
    "cleanup.policy": ("delete", "compact", "compact,delete", "delete,compact", "", "x", "delete,delete"),
    "retention.ms": ("1000000000", "-1", "-2", "0", "x", "9223372036854775807", "9223372036854775808", " 5 "),
    "retention.bytes": ("-1", "1000", "-5", "1.5"),
    "segment.bytes": ("1048576", "1000", "-1", "2147483647", "2147483648"),
    "segment.ms": ("100000", "0", "-1"),
    "min.insync.replicas": ("1", "2", "0", "-1"),
    "compression.type": ("producer", "gzip", "lz4", "zstd", "snappy", "uncompressed", "none", "GZIP"),
    "compression.gzip.level": ("-1", "1", "9", "10", "0"),
    "max.message.bytes": ("1000", "1048588", "-1", "0", "2000000"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime", "x", ""),
    "message.timestamp.before.max.ms": ("9223372036854775807", "1000", "-1"),
    "message.timestamp.after.max.ms": ("3600000", "9223372036854775807", "0"),
    "unclean.leader.election.enable": ("true", "false", "TRUE", "maybe"),
    "min.cleanable.dirty.ratio": ("0.5", "1", "2", "-1", "1e-3"),
    "min.compaction.lag.ms": ("0", "100", "-1"),
    "max.compaction.lag.ms": ("100", "1", "0", "9223372036854775807"),
    "delete.retention.ms": ("0", "86400000", "-1"),
    "flush.messages": ("1", "0", "9223372036854775807"),
    "index.interval.bytes": ("0", "4096", "-1"),
    "segment.index.bytes": ("4", "0", "10485760"),
    "preallocate": ("false", "yes"),
    "file.delete.delay.ms": ("60000", "-1"),
    "local.retention.ms": ("-2", "-1", "5"),
    "remote.storage.enable": ("false", "true"),
    "follower.replication.throttled.replicas": ("*", "0:1", "0:1,1:1", "x", "none", ""),
    "no.such.key": ("1", ""),
    "message.format.version": ("3.0-IV1",),
    "leader.replication.throttled.replicas": ("0:1", "0-1"),
}
"""Keys of topics with right and wrong values."""


def pair(world: World) -> tuple[str, str | None]:
    """A key and a value, often a right one."""
    key = world.pick(*VALUES)
    return key, world.mostly(world.pick(*VALUES[key]), None, "", probability=0.92)


def resource(world: World) -> dict[str, Any]:
    """A topic, or something that is none."""
    name = world.mostly(world.topic().name, "{s}unknown", "", "a b", probability=0.9)
    return {"resource_type": world.mostly(2, 0, 1, 3, 127, probability=0.96), "resource_name": name}


def describe(world: World) -> None:
    """Configs of a topic, all or some."""
    wanted = resource(world)
    keys = world.pick(None, None, [], [pair(world)[0]], [pair(world)[0], pair(world)[0]])
    if wanted["resource_type"] != 2:
        wanted = {"resource_type": wanted["resource_type"], "resource_name": "{s}x"}
    request = {
        "resources": [{**wanted, "configuration_keys": keys}] * world.mostly(1, 2, probability=0.95),
        "include_synonyms": world.chance(0.5),
        "include_documentation": world.chance(0.1),
    }
    world.send("DescribeConfigs", request)


def alter(world: World) -> None:
    """All configs of a topic anew."""
    pairs = [pair(world) for _ in range(world.pick(0, 1, 1, 2))]
    configs = [{"name": key, "value": value} for key, value in pairs]
    request = {"resources": [{**resource(world), "configs": configs}], "validate_only": world.chance(0.2)}
    world.send("AlterConfigs", request, settle="metadata")


def alter_some(world: World) -> None:
    """Some configs: set, delete, append, subtract."""
    configs = []
    for _ in range(world.pick(1, 1, 1, 2)):
        key, value = pair(world)
        operation = world.mostly(0, 1, 2, 3, 4, -1, probability=0.6)
        configs.append({"name": key, "config_operation": operation, "value": value})
    if world.chance(0.05):
        configs *= 2
    times = world.mostly(1, 2, probability=0.96)
    request = {"resources": [{**resource(world), "configs": configs}] * times, "validate_only": world.chance(0.15)}
    world.send("IncrementalAlterConfigs", request, settle="metadata")


def list_resources(world: World) -> None:
    """Resources that have configs."""
    world.send("ListConfigResources", {"resource_types": world.pick([], [2], [2, 2], [4], [8], [99], [0], [-1])})


ACTIONS = (
    (3, describe),
    (1, alter),
    (4, alter_some),
    (1, list_resources),
)
