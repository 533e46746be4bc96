"""Streams groups (KIP-1071): heartbeats with topologies and tasks."""

from __future__ import annotations

from typing import Any

from compat.twin.families.group_offsets import group
from compat.twin.steps import Saved
from compat.twin.world import World


def _members(world: World) -> list[dict[str, Any]]:
    members: list[dict[str, Any]] = world.notes.setdefault("streams", [])
    return members


def _new_member(world: World) -> dict[str, Any]:
    number = len(_members(world))
    member = {
        "group": group(world),
        "id": f"{{s}}k{number}",
        "instance": world.mostly(None, "{s}i1", probability=0.8),
        "epoch": Saved(f"streams epoch {number}", 0),
        "topic": world.topic().name,
    }
    _members(world).append(member)
    world.notes.setdefault("members", []).append((member["id"], member["epoch"]))
    return member


def _member(world: World) -> dict[str, Any]:
    members = _members(world)
    return world.random.choice(members) if members and world.chance(0.9) else _new_member(world)


def _send(world: World, member: dict[str, Any], fields: dict[str, Any]) -> None:
    request = {
        "group_id": world.mostly(member["group"], "", "{s}nobody", probability=0.97),
        "member_id": world.mostly(member["id"], "", "{s}nobody", probability=0.95),
        "instance_id": world.mostly(member["instance"], None, "{s}i1", probability=0.93),
        **fields,
    }
    world.send("StreamsGroupHeartbeat", request, saves={member["epoch"].name: ("member_epoch",)})


def _topology(world: World, member: dict[str, Any]) -> dict[str, Any]:
    first = {
        "subtopology_id": "0",
        "source_topics": world.mostly([member["topic"]], ["{s}unknown"], [], [member["topic"]] * 2, probability=0.85),
        "source_topic_regex": world.mostly([], ["("], ["{s}.*"], probability=0.97),
        "copartition_groups": world.mostly([], [{"source_topics": [0]}], [{"source_topics": [7]}], probability=0.93),
        "repartition_sink_topics": [],
    }
    topologies = world.mostly([first], [], [first, first], [first, {**first, "subtopology_id": "1"}], probability=0.8)
    return {"epoch": world.mostly(0, 1, 5, -1, probability=0.85), "subtopologies": topologies}


def join(world: World) -> None:
    """A member joins with its topology."""
    member = _new_member(world) if world.chance(0.7) else _member(world)
    none: list[dict[str, Any]] = []
    task = [{"subtopology_id": "0", "partitions": [0]}]
    fields = {
        "member_epoch": 0,
        "rack_id": world.mostly(None, "r", probability=0.9),
        "rebalance_timeout_ms": world.mostly(60_000, -1, 0, probability=0.93),
        "topology": world.mostly(_topology(world, member), None, probability=0.95),
        "active_tasks": world.mostly(none, None, task, probability=0.93),
        "standby_tasks": world.mostly(none, None, task, probability=0.95),
        "warmup_tasks": world.mostly(none, None, task, probability=0.95),
        "process_id": world.mostly("p1", "p2", None, "", probability=0.8),
        "user_endpoint": world.mostly(None, {"host": "h", "port": 9}, probability=0.8),
        "client_tags": world.mostly([], None, [{"key": "a", "value": "b"}], probability=0.8),
    }
    _send(world, member, fields)


def beat(world: World) -> None:
    """A member is alive, with or without changes."""
    member = _member(world)
    epoch = member["epoch"]
    tasks = [{"subtopology_id": world.mostly("0", "1", "9"), "partitions": world.mostly([0], [0, 1], [9])}]
    fields: dict[str, Any] = {
        "member_epoch": world.mostly(
            epoch, Saved(epoch.name, 0, 1), Saved(epoch.name, 0, -1), 99, -3, probability=0.85
        ),
        "endpoint_information_epoch": world.mostly(0, 1, 2, -1),
        "shutdown_application": world.chance(0.05),
    }
    if world.chance(0.4):
        fields |= {"active_tasks": world.mostly(tasks, []), "standby_tasks": [], "warmup_tasks": []}
    if world.chance(0.15):
        fields["topology"] = _topology(world, member)
    _send(world, member, fields)


def leave(world: World) -> None:
    """A member leaves, a static one perhaps for a while."""
    _send(world, _member(world), {"member_epoch": world.mostly(-1, -2, probability=0.6)})


def describe(world: World) -> None:
    """The group of a member."""
    request = {
        "group_ids": [world.mostly(_member(world)["group"], "", "{s}nobody", probability=0.95)],
        "include_authorized_operations": world.chance(0.2),
        "include_topology_description": world.chance(0.3),
    }
    world.send("StreamsGroupDescribe", request)


ACTIONS = ((4, join), (6, beat), (2, leave), (2, describe))
