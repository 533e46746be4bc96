"""ACLs: creation, description and deletion, with patterns, operations and principals that are right or wrong."""

from __future__ import annotations

from typing import Any

from compat.twin.world import World

TYPES, PATTERNS, OPERATIONS, PERMISSIONS = (2, 3, 4, 5, 6, 7), (3, 4), tuple(range(2, 16)), (2, 3)


def _binding(world: World) -> dict[str, Any]:
    kind = world.mostly(2, *TYPES, 0, 1, 8, -1, probability=0.5)
    name = (
        "kafka-cluster" if kind == 4 and world.chance(0.9) else world.mostly("{s}t1", "*", "", "{s}", probability=0.7)
    )
    return {
        "resource_type": kind,
        "resource_name": name,
        "resource_pattern_type": world.mostly(3, 4, 0, 1, 2, 9, probability=0.7),
        "principal": world.mostly("User:{s}alice", "User:*", "alice", "", "Group:{s}g", ":", "User:", probability=0.75),
        "host": world.mostly("*", "127.0.0.1", "", "no host", probability=0.85),
        "operation": world.mostly(3, *OPERATIONS, 0, 1, 99, probability=0.4),
        "permission_type": world.mostly(3, 2, 0, 1, 9, probability=0.7),
    }


def _filter(world: World) -> dict[str, Any]:
    return {
        "resource_type_filter": world.mostly(1, *TYPES, 0, 9, probability=0.5),
        "resource_name_filter": world.mostly("{s}t1", None, "", "*", "{s}", probability=0.8),
        "pattern_type_filter": world.mostly(1, 2, 3, 4, 0, 9, probability=0.5),
        "principal_filter": world.mostly("User:{s}alice", None, "alice", "", probability=0.8),
        "host_filter": world.mostly(None, "*", "", "127.0.0.1", probability=0.7),
        "operation": world.mostly(1, 2, 3, 4, 0, 99, probability=0.6),
        "permission_type": world.mostly(1, 2, 3, 0, 9, probability=0.6),
    }


def create(world: World) -> None:
    """One or two ACLs."""
    request = {"creations": [_binding(world) for _ in range(world.mostly(1, 2, 0))]}
    world.send("CreateAcls", request, settle="metadata")


def describe(world: World) -> None:
    """ACLs of the sequence's names."""
    world.send("DescribeAcls", _filter(world))


def delete(world: World) -> None:
    """ACLs of the sequence's names."""
    filters = []
    for _ in range(world.mostly(1, 2, 0)):
        chosen = _filter(world)
        if chosen["resource_name_filter"] is None and chosen["principal_filter"] is None:
            chosen["principal_filter"] = "User:{s}alice"
        filters.append(chosen)
    world.send("DeleteAcls", {"filters": filters}, settle="metadata")


ACTIONS = ((4, create), (3, describe), (2, delete))
