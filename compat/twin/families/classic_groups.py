"""Classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, with dynamic and static members (KIP-345)."""

from __future__ import annotations

from typing import Any

from barnabas.wire.messages.groups.consumer_protocol import ConsumerProtocolSubscription
from compat.twin.families.group_offsets import group
from compat.twin.steps import Saved
from compat.twin.world import World


def _members(world: World) -> list[dict[str, Any]]:
    members: list[dict[str, Any]] = world.notes.setdefault("classic", [])
    return members


def _new_member(world: World) -> dict[str, Any]:
    number = len(_members(world))
    member = {
        "group": group(world),
        "instance": world.mostly(None, "{s}i1", "{s}i2", probability=0.7),
        "id": Saved(f"classic {number}", ""),
        "generation": Saved(f"generation {number}", -1),
        "topic": world.topic().name,
    }
    _members(world).append(member)
    world.notes.setdefault("members", []).append((member["id"], member["generation"]))
    return member


def _member(world: World) -> dict[str, Any]:
    members = _members(world)
    return world.random.choice(members) if members and world.chance(0.9) else _new_member(world)


def _subscription(world: World, topic: str) -> bytes:
    text = world.mostly(ConsumerProtocolSubscription(topics=[topic]).encode(1), b"", b"\0", b"x", probability=0.92)
    return b"\0\1" + text if len(text) > 1 else text


def _identity(world: World, member: dict[str, Any]) -> dict[str, Any]:
    generation = member["generation"]
    return {
        "group_id": world.mostly(member["group"], "", "{s}nobody", probability=0.96),
        "member_id": world.mostly(member["id"], "", "{s}nobody", probability=0.93),
        "group_instance_id": world.mostly(member["instance"], None, "{s}i1", "{s}i9", probability=0.92),
        "generation_id": world.mostly(generation, Saved(generation.name, -1, 1), -1, probability=0.9),
    }


def join(world: World) -> None:
    """A member joins, or joins again; a new one is told its id first."""
    member = _new_member(world) if world.chance(0.3) else _member(world)
    version = world.pick(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9)
    names = world.mostly(["range"], ["range", "roundrobin"], ["own"], [], ["roundrobin"], probability=0.85)
    metadata = _subscription(world, member["topic"])
    identity = _identity(world, member)
    del identity["generation_id"]
    request = {
        **identity,
        "session_timeout_ms": world.mostly(30_000, 5_999, 6_000, 1_800_001, -1, probability=0.93),
        "rebalance_timeout_ms": world.mostly(500, 0, 1, -1, probability=0.9),
        "protocol_type": world.mostly("consumer", "own", "", probability=0.93),
        "protocols": [{"name": name, "metadata": metadata} for name in names],
        "reason": world.mostly(None, "because", "x" * 256),
    }
    if member["instance"] is not None:
        version = max(version, 5)
    saves = {member["id"].name: ("member_id",), member["generation"].name: ("generation_id",)}
    times = 2 if world.chance(0.7) and member["instance"] is None and version >= 4 else 1
    for _ in range(times):
        world.send("JoinGroup", dict(request), version=version, saves=saves)


def sync(world: World) -> None:
    """The assignments, or a member asks for its own."""
    member = _member(world)
    assignments = [{"member_id": other["id"], "assignment": b"mine"} for other in _members(world)[:3]]
    request = {
        **_identity(world, member),
        "protocol_type": world.mostly("consumer", None, "own", probability=0.93),
        "protocol_name": world.mostly("range", None, "roundrobin", probability=0.93),
        "assignments": world.mostly([{"member_id": member["id"], "assignment": b"mine"}], [], assignments),
    }
    world.send("SyncGroup", request)


def join_and_sync(world: World) -> None:
    """A member joins, and the group gets its assignment."""
    member = _new_member(world)
    if member["instance"] is None:
        version, first = 9, world.pick(True, True, False)
    else:
        version, first = world.pick(5, 7, 9), False
    saves = {member["id"].name: ("member_id",), member["generation"].name: ("generation_id",)}
    identity = {"group_id": member["group"], "member_id": member["id"], "group_instance_id": member["instance"]}
    request = {
        **identity,
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 500,
        "protocol_type": "consumer",
        "protocols": [
            {"name": "range", "metadata": b"\0\1" + ConsumerProtocolSubscription(topics=[member["topic"]]).encode(1)}
        ],
    }
    for _ in range(2 if first else 1):
        world.send("JoinGroup", dict(request), version=version, saves=saves)
    identity |= {"generation_id": member["generation"], "protocol_type": "consumer", "protocol_name": "range"}
    assignments = [{"member_id": member["id"], "assignment": b"mine"}]
    world.send("SyncGroup", {**identity, "assignments": assignments}, version=5)


def heartbeat(world: World) -> None:
    """A member is alive."""
    world.send("Heartbeat", _identity(world, _member(world)))


def leave(world: World) -> None:
    """Members leave."""
    member = _member(world)
    who = _identity(world, member)
    members = [{"member_id": who["member_id"], "group_instance_id": who["group_instance_id"], "reason": "done"}]
    request = {
        "group_id": who["group_id"],
        "member_id": who["member_id"],
        "members": world.mostly(members, [], members * 2, probability=0.9),
    }
    world.send("LeaveGroup", request)


ACTIONS = ((3, join), (5, join_and_sync), (3, sync), (3, heartbeat), (2, leave))
