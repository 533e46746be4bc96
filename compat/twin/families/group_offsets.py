"""Offsets of groups, committed and fetched by any member or none, and groups as administrators see them."""

from __future__ import annotations

from typing import Any

from compat.twin.world import World


def group(world: World) -> str:
    """The name of a group, often one that other requests have named too."""
    names: list[str] = world.notes.setdefault("groups", [])
    if not names or world.chance(0.12):
        names.append(world.new_name("g"))
    return world.random.choice(names)


def member(world: World) -> dict[str, Any]:
    """Member id and epoch or generation: none, those of a member of any group, or wrong ones."""
    members: list[tuple[Any, Any]] = world.notes.get("members", [])
    if not members or world.chance(0.35):
        return {}
    member_id, epoch = world.random.choice(members)
    return {
        "member_id": world.mostly(member_id, "", "{s}nobody", None, probability=0.9),
        "epoch": world.mostly(epoch, -1, 0, 1, 2, 99, probability=0.7),
    }


def _topics(world: World, indexes: str, make: Any) -> list[dict[str, Any]]:
    topic = world.topic()
    numbers = [world.partition(topic) for _ in range(world.pick(1, 1, 2))]
    name = world.mostly(topic.name, "{s}unknown", "", probability=0.95)
    topic_id = world.mostly(topic.topic_id, bytes(16), bytes(range(16)), topic.stale_id, probability=0.93)
    return [{"name": name, "topic_id": topic_id, indexes: [make(number) for number in numbers]}]


def _by_name(topics: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    """The topics in the form of versions without ids."""
    if topics is None:
        return None
    return [{name: value for name, value in topic.items() if name != "topic_id"} for topic in topics]


def commit(world: World) -> None:
    """Offsets of one or two partitions."""
    who = member(world)

    def partition(index: int) -> dict[str, Any]:
        return {
            "partition_index": index,
            "committed_offset": world.mostly(world.random.randrange(20), -1, -2, 2**63 - 1),
            "committed_leader_epoch": world.mostly(-1, 0, 5, -2),
            "committed_metadata": world.mostly("", "text", None, "x" * 4096, "x" * 4097, "ä" * 2100, probability=0.6),
        }

    request = {
        "group_id": world.mostly(group(world), "", probability=0.97),
        "generation_id_or_member_epoch": who.get("epoch", -1),
        "member_id": who.get("member_id") or "",
        "group_instance_id": world.mostly(None, "{s}i1", "{s}i2", probability=0.85),
        "retention_time_ms": world.mostly(-1, 0, 3_600_000, probability=0.9),
        "topics": _topics(world, "partitions", partition),
    }
    world.send("OffsetCommit", request)


def fetch(world: World) -> None:
    """Offsets of named topics, or of all."""
    version = world.version("OffsetFetch")
    topics = _topics(world, "partition_indexes", int)
    if version >= 2 and world.chance(0.3):
        topics = None  # type: ignore[assignment]
    groups = []
    for _ in range(world.mostly(1, 2, probability=0.9)):
        who = member(world)
        groups.append(
            {
                "group_id": world.mostly(group(world), "", probability=0.97),
                "member_id": who.get("member_id"),
                "member_epoch": who.get("epoch", -1),
                "topics": topics,
            }
        )
    single = {"group_id": groups[0]["group_id"], "topics": _by_name(topics)}
    request = {**single, "groups": groups, "require_stable": world.chance(0.3)}
    world.send("OffsetFetch", request, version=version)


def delete(world: World) -> None:
    """Offsets of partitions."""
    topics = _topics(world, "partitions", lambda index: {"partition_index": index})
    del topics[0]["topic_id"]
    world.send("OffsetDelete", {"group_id": world.mostly(group(world), "", probability=0.97), "topics": topics})


def describe(world: World) -> None:
    """Groups of any type, as classic ones."""
    names = [world.mostly(group(world), "", "{s}nobody", probability=0.95) for _ in range(world.pick(1, 1, 2))]
    world.send("DescribeGroups", {"groups": names, "include_authorized_operations": world.chance(0.3)})


def describe_as(world: World) -> None:
    """Groups of any type, as ones of each newer type."""
    api = world.pick("ConsumerGroupDescribe", "ShareGroupDescribe", "StreamsGroupDescribe")
    names = [world.mostly(group(world), "", "{s}nobody", probability=0.95) for _ in range(world.pick(1, 1, 2))]
    request: dict[str, Any] = {"group_ids": names, "include_authorized_operations": world.chance(0.3)}
    if api == "StreamsGroupDescribe":
        request["include_topology_description"] = world.chance(0.3)
    world.send(api, request)


def list_groups(world: World) -> None:
    """Groups by state and type."""
    request = {
        "states_filter": world.mostly([], ["Empty"], ["stable", "Dead"], ["none"], ["Assigning", "Reconciling"]),
        "types_filter": world.mostly([], ["classic"], ["Consumer"], ["share", "streams"], ["none"]),
    }
    world.send("ListGroups", request)


def delete_groups(world: World) -> None:
    """Groups that are empty, or not."""
    names = [world.mostly(group(world), "", "{s}nobody", probability=0.95) for _ in range(world.mostly(1, 2))]
    world.send("DeleteGroups", {"groups_names": names})


ACTIONS = (
    (6, commit),
    (6, fetch),
    (2, delete),
    (2, describe),
    (2, describe_as),
    (1, list_groups),
    (1, delete_groups),
)
