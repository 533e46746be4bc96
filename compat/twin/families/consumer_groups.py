"""Consumer groups (KIP-848): heartbeats of dynamic and static members, with epochs that are right, old or wrong."""

from __future__ import annotations

from typing import Any

from compat.twin.families.group_offsets import group
from compat.twin.steps import Saved
from compat.twin.world import World


def _members(world: World) -> list[dict[str, Any]]:
    members: list[dict[str, Any]] = world.notes.setdefault("consumers", [])
    return members


def _new_member(world: World) -> dict[str, Any]:
    number = len(_members(world))
    member = {
        "group": group(world),
        "id": f"{{s}}m{number}",
        "instance": world.mostly(None, "{s}i1", "{s}i2", probability=0.7),
        "epoch": Saved(f"consumer epoch {number}", 0),
        "topic": world.topic(),
    }
    _members(world).append(member)
    world.notes.setdefault("members", []).append((member["id"], member["epoch"]))
    return member


def _member(world: World) -> dict[str, Any]:
    members = _members(world)
    return world.random.choice(members) if members and world.chance(0.9) else _new_member(world)


def _send(world: World, member: dict[str, Any], fields: dict[str, Any], version: int | None = None) -> None:
    saves = {member["epoch"].name: ("member_epoch",)}
    request = {
        "group_id": world.mostly(member["group"], "", "{s}nobody", probability=0.97),
        "member_id": world.mostly(member["id"], "", "{s}nobody", probability=0.95),
        "instance_id": world.mostly(member["instance"], None, "{s}i1", probability=0.93),
        **fields,
    }
    world.send("ConsumerGroupHeartbeat", request, version=version, saves=saves)


def _joining(world: World, member: dict[str, Any]) -> dict[str, Any]:
    return {
        "member_epoch": 0,
        "rack_id": world.mostly(None, "r", "", probability=0.9),
        "rebalance_timeout_ms": world.mostly(60_000, -1, 0, 1, probability=0.93),
        "subscribed_topic_names": world.mostly(
            [member["topic"].name], [], ["{s}unknown"], None, [member["topic"].name, "{s}unknown"], probability=0.85
        ),
        "subscribed_topic_regex": world.mostly(None, "{s}t.*", "(", "", probability=0.9),
        "server_assignor": world.mostly(None, "uniform", "range", "own", "", probability=0.8),
        "topic_partitions": world.mostly([], None, [{"topic_id": bytes(16), "partitions": [0]}], probability=0.93),
    }


def join(world: World) -> None:
    """A member joins."""
    member = _new_member(world) if world.chance(0.7) else _member(world)
    _send(world, member, _joining(world, member))


def beat(world: World) -> None:
    """A member is alive, with or without changes."""
    member = _member(world)
    epoch = member["epoch"]
    topic = member["topic"]
    owned = [{"topic_id": topic.topic_id, "partitions": list(range(topic.partitions))}]
    fields: dict[str, Any] = {
        "member_epoch": world.mostly(
            epoch, Saved(epoch.name, 0, 1), Saved(epoch.name, 0, -1), 99, -3, probability=0.85
        ),
        "rebalance_timeout_ms": world.mostly(-1, 60_000, 0, probability=0.9),
        "topic_partitions": world.mostly(None, owned, [], probability=0.6),
    }
    if world.chance(0.3):
        fields["subscribed_topic_names"] = world.pick([topic.name], [], [world.topic().name], ["{s}unknown"])
    if world.chance(0.1):
        fields["server_assignor"] = world.pick("range", "uniform", "own")
    _send(world, member, fields)


def leave(world: World) -> None:
    """A member leaves, a static one perhaps for a while."""
    member = _member(world)
    _send(world, member, {"member_epoch": world.mostly(-1, -2, probability=0.5)})


def describe(world: World) -> None:
    """The group of a member."""
    names = [world.mostly(_member(world)["group"], "", "{s}nobody", probability=0.95)]
    request = {"group_ids": names, "include_authorized_operations": world.chance(0.2)}
    world.send("ConsumerGroupDescribe", request)


ACTIONS = ((4, join), (6, beat), (2, leave), (2, describe))
