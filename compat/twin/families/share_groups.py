"""Share groups (KIP-932): heartbeats, share sessions, acknowledgements, and the offsets that administrators see."""

from __future__ import annotations

from typing import Any

from compat.twin.families.group_offsets import group
from compat.twin.families.produce import produce
from compat.twin.steps import Saved
from compat.twin.world import Topic, World


def _members(world: World) -> list[dict[str, Any]]:
    members: list[dict[str, Any]] = world.notes.setdefault("sharers", [])
    return members


def _new_member(world: World) -> dict[str, Any]:
    number = len(_members(world))
    groups: list[str] = world.notes.setdefault("share groups", [])
    if not groups or world.chance(0.3):
        groups.append(group(world))
        _read_from_start(world, groups[-1])
    member = {
        "group": world.random.choice(groups),
        "id": f"{{s}}member-{number:03}",
        "epoch": Saved(f"share epoch {number}", 0),
        "topic": world.topic(),
        "session": 0,
        "connection": f"share {number}",
    }
    _members(world).append(member)
    world.notes.setdefault("members", []).append((member["id"], member["epoch"]))
    return member


def _read_from_start(world: World, name: str) -> None:
    config = {"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}
    resource = {"resource_type": 32, "resource_name": name, "configs": [config]}
    world.send("IncrementalAlterConfigs", {"resources": [resource]}, version=1, settle="metadata")


def _member(world: World) -> dict[str, Any]:
    members = _members(world)
    return world.random.choice(members) if members and world.chance(0.92) else _new_member(world)


def join(world: World) -> None:
    """A member joins, and there are records for it."""
    member = _new_member(world) if world.chance(0.7) else _member(world)
    produce(world)
    beat_of(world, member, 0)


def beat_of(world: World, member: dict[str, Any], epoch: Any) -> None:
    """A heartbeat."""
    topic = member["topic"].name
    request = {
        "group_id": world.mostly(member["group"], "", "{s}nobody", probability=0.97),
        "member_id": world.mostly(member["id"], "", "{s}nobody", "x" * 37, probability=0.95),
        "member_epoch": epoch,
        "rack_id": world.mostly(None, "r", "", probability=0.9),
        "subscribed_topic_names": world.mostly([topic], [], None, ["{s}unknown", topic], probability=0.85),
    }
    world.send("ShareGroupHeartbeat", request, version=1, saves={member["epoch"].name: ("member_epoch",)})


def beat(world: World) -> None:
    """A member is alive, or leaves."""
    member = _member(world)
    epoch = member["epoch"]
    wrong = (Saved(epoch.name, 0, 1), Saved(epoch.name, 0, -1), -1, -2, 99)
    beat_of(world, member, world.mostly(epoch, *wrong, probability=0.75))


def _epoch(world: World, member: dict[str, Any]) -> int:
    return int(world.mostly(member["session"], 0, -1, member["session"] + 1, 99, -2, probability=0.85))


def _moved(member: dict[str, Any], epoch: int) -> None:
    if epoch == member["session"] or epoch == 0:
        member["session"] = epoch + 1
    elif epoch == -1:
        member["session"] = 0


def _acknowledgements(world: World, topic: Topic) -> list[dict[str, Any]]:
    partitions = []
    for index in sorted({world.partition(topic) for _ in range(world.pick(1, 1, 2))}):
        first = world.mostly(0, 1, 2, 5, -1, 99, probability=0.6)
        last = first + world.mostly(0, 1, 2, 9, -1)
        types = world.mostly([1], [2], [3], [0], [4], [9], [], [1, 2], probability=0.5)
        batches = [{"first_offset": first, "last_offset": last, "acknowledge_types": types}]
        partitions.append({"partition_index": index, "acknowledgement_batches": world.mostly(batches, [], batches * 2)})
    return partitions


def fetch(world: World) -> None:
    """A ShareFetch of a member's session."""
    member = _member(world)
    topic = member["topic"]
    epoch = _epoch(world, member)
    every = [{"partition_index": index, "acknowledgement_batches": []} for index in range(topic.partitions)]
    some = _acknowledgements(world, topic)
    partitions = every if epoch == 0 and world.chance(0.9) else world.mostly([], every, some, probability=0.5)
    topic_id = world.mostly(topic.topic_id, bytes(range(16)), topic.stale_id, probability=0.97)
    request = {
        "group_id": world.mostly(member["group"], "", None, probability=0.97),
        "member_id": world.mostly(member["id"], "", "{s}nobody", None, probability=0.96),
        "share_session_epoch": epoch,
        "max_wait_ms": world.mostly(200, 0, 1, probability=0.8),
        "min_bytes": world.mostly(1, 0, probability=0.9),
        "max_bytes": world.mostly(1 << 20, 0, 1, probability=0.93),
        "max_records": world.mostly(100, 1, 2, 0, -1, probability=0.85),
        "batch_size": world.mostly(100, 1, 2, 0, probability=0.85),
        "share_acquire_mode": world.mostly(0, 1, 2, probability=0.8),
        "is_renew_ack": world.chance(0.05),
        "topics": [{"topic_id": topic_id, "partitions": partitions}] if partitions else [],
        "forgotten_topics_data": world.mostly([], [{"topic_id": topic_id, "partitions": [0]}], probability=0.95),
    }
    world.send("ShareFetch", request, connection=member["connection"])
    _moved(member, epoch)


def acknowledge(world: World) -> None:
    """A ShareAcknowledge of a member's session."""
    member = _member(world)
    topic = member["topic"]
    epoch = _epoch(world, member)
    topic_id = world.mostly(topic.topic_id, bytes(range(16)), topic.stale_id, probability=0.95)
    request = {
        "group_id": world.mostly(member["group"], "", None, probability=0.97),
        "member_id": world.mostly(member["id"], "", "{s}nobody", None, probability=0.96),
        "share_session_epoch": epoch,
        "is_renew_ack": world.chance(0.2),
        "topics": world.mostly([{"topic_id": topic_id, "partitions": _acknowledgements(world, topic)}], []),
    }
    world.send("ShareAcknowledge", request, connection=member["connection"])
    if epoch != 0:
        _moved(member, epoch)


def offsets(world: World) -> None:
    """Offsets of a group are described, altered or deleted."""
    member = _member(world)
    topic = member["topic"]
    name = world.mostly(member["group"], "", "{s}nobody", group(world), probability=0.85)
    topic_name = world.mostly(topic.name, "{s}unknown", "", probability=0.93)
    kind = world.pick("describe", "describe", "alter", "delete")
    if kind == "describe":
        topics = world.mostly([{"topic_name": topic_name, "partitions": [0, world.partition(topic)]}], None, [])
        world.send("DescribeShareGroupOffsets", {"groups": [{"group_id": name, "topics": topics}]})
    elif kind == "alter":
        part = {"partition_index": world.partition(topic), "start_offset": world.mostly(0, 1, 5, -1, 99)}
        request = {"group_id": name, "topics": world.mostly([{"topic_name": topic_name, "partitions": [part]}], [])}
        world.send("AlterShareGroupOffsets", request)
    else:
        request = {"group_id": name, "topics": world.mostly([{"topic_name": topic_name}], [])}
        world.send("DeleteShareGroupOffsets", request)


def describe(world: World) -> None:
    """The group of a member."""
    names = [world.mostly(_member(world)["group"], "", "{s}nobody", probability=0.95)]
    request = {"group_ids": names, "include_authorized_operations": world.chance(0.2)}
    world.send("ShareGroupDescribe", request)


ACTIONS = ((4, join), (3, beat), (6, fetch), (4, acknowledge), (2, offsets), (1, describe))
