"""Users: SCRAM credentials, client quotas, delegation tokens."""

from __future__ import annotations

from typing import Any

from compat.twin.world import World

NAN, INFINITY = float("nan"), float("inf")


def _user(world: World) -> str:
    return str(world.mostly("{s}alice", "{s}bob", "", probability=0.7))


def alter_scram(world: World) -> None:
    """Credentials are set and deleted."""
    upsertion = {
        "name": _user(world),
        "mechanism": world.mostly(1, 2, 0, 3, -1, probability=0.7),
        "iterations": world.mostly(4096, 4095, 16384, 16385, 0, -1, probability=0.7),
        "salt": world.mostly(b"salt", b"", probability=0.9),
        "salted_password": world.mostly(b"x" * 32, b"", b"x", probability=0.85),
    }
    deletion = {"name": _user(world), "mechanism": world.mostly(1, 2, 0, 3)}
    request = {
        "deletions": world.mostly([], [deletion], [deletion] * 2, probability=0.6),
        "upsertions": world.mostly([upsertion], [], [upsertion] * 2, probability=0.7),
    }
    world.send("AlterUserScramCredentials", request, settle="metadata")


def describe_scram(world: World) -> None:
    """Credentials of the sequence's users."""
    users = [{"name": _user(world)} for _ in range(world.pick(1, 1, 2))]
    world.send("DescribeUserScramCredentials", {"users": users})


def _entity(world: World) -> list[dict[str, Any]]:
    user = {"entity_type": "user", "entity_name": world.mostly("{s}alice", "{s}bob", "", probability=0.9)}
    client = {"entity_type": "client-id", "entity_name": world.mostly("{s}c", "{s}d", "", probability=0.9)}
    address = {"entity_type": "ip", "entity_name": world.pick("10.9.8.7", "{s}host", "")}
    other = {"entity_type": world.pick("own", ""), "entity_name": "{s}x"}
    return world.mostly([user], [client], [user, client], [address], [other], [], [user, user], [user, address])  # type: ignore[no-any-return]


def alter_quotas(world: World) -> None:
    """Quotas are set and removed."""
    keys = (
        "consumer_byte_rate",
        "request_percentage",
        "controller_mutation_rate",
        "connection_creation_rate",
        "own",
        "",
    )
    ops = [
        {
            "key": world.mostly("producer_byte_rate", *keys, probability=0.5),
            "value": world.mostly(1000.0, 0.0, -1.0, 1.5, 1e300, NAN, INFINITY, probability=0.6),
            "remove": world.chance(0.3),
        }
        for _ in range(world.mostly(1, 2, 0))
    ]
    entity = _entity(world)
    if any(part["entity_type"] == "ip" and part["entity_name"] == "10.9.8.7" for part in entity):
        ops = [{**op, "remove": True} for op in ops]  # other sequences use the address too
    entries = [{"entity": entity, "ops": ops}] * world.mostly(1, 2, 0, probability=0.92)
    request = {"entries": entries, "validate_only": world.chance(0.3)}
    world.send("AlterClientQuotas", request, settle="metadata")


def describe_quotas(world: World) -> None:
    """Quotas of the sequence's entities."""
    components = [
        {
            "entity_type": world.mostly("user", "client-id", "ip", "own", "", probability=0.6),
            "match_type": 0,
            "match": world.mostly("{s}alice", "{s}c", "", None, probability=0.8),
        }
        for _ in range(world.mostly(1, 2))
    ]
    if world.chance(0.1):
        components[0]["match_type"] = world.pick(3, -1)
    world.send("DescribeClientQuotas", {"components": components, "strict": world.chance(0.4)})


def tokens(world: World) -> None:
    """Delegation tokens, of which a plain listener gives none."""
    hmac = world.pick(b"", b"x" * 64)
    alice = {"principal_type": world.mostly("User", "Group", ""), "principal_name": "{s}alice"}
    kind = world.pick("create", "renew", "expire", "describe")
    if kind == "create":
        request: dict[str, Any] = {
            "owner_principal_type": world.mostly(None, "User"),
            "owner_principal_name": world.mostly(None, "{s}alice"),
            "renewers": world.mostly([], [alice]),
            "max_lifetime_ms": world.mostly(-1, 1000, 0),
        }
        world.send("CreateDelegationToken", request)
    elif kind == "renew":
        world.send("RenewDelegationToken", {"hmac": hmac, "renew_period_ms": world.pick(-1, 0, 1000)})
    elif kind == "expire":
        world.send("ExpireDelegationToken", {"hmac": hmac, "expiry_time_period_ms": world.pick(-1, 0, 1000)})
    else:
        world.send("DescribeDelegationToken", {"owners": world.pick(None, [], [alice])})


ACTIONS = ((4, alter_scram), (3, describe_scram), (4, alter_quotas), (3, describe_quotas), (1, tokens))
