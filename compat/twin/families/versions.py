"""ApiVersions, and versions that no broker has."""

from __future__ import annotations

from compat.twin.world import World

LAST_VERSIONS = {"Produce": 13, "Fetch": 18, "Metadata": 13, "ListOffsets": 11, "CreateTopics": 7, "ApiVersions": 5}


def api_versions(world: World) -> None:
    """What a broker supports."""
    request = {
        "client_software_name": world.mostly("twin", "", "a b", "-x", "x" * 200, "a.b-c"),
        "client_software_version": world.mostly("1.0", "", "1 0", "ü"),
        "cluster_id": world.mostly(None, "", "x"),
        "node_id": world.mostly(-1, 1, 2),
    }
    world.send("ApiVersions", request)


def unknown_version(world: World) -> None:
    """A version before the first or after the last."""
    api = world.pick(*LAST_VERSIONS)
    world.send(api, {}, version=world.pick(LAST_VERSIONS[api] + 1, LAST_VERSIONS[api] + 100, -1))


ACTIONS = (
    (3, api_versions),
    (1, unknown_version),
)
