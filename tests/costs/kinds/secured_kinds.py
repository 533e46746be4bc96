"""Produce over TLS, and where an authorizer decides by ACLs of many users."""

from __future__ import annotations

from functools import partial

from barnabas.wire.messages.security.acls import AclCreation, CreateAclsRequest
from tests.costs.client import Client, check
from tests.costs.kind import Kind, Steps
from tests.costs.kinds.produce_kinds import SIZES, produce_again
from tests.costs.world import AUTHORIZER, TLS, CountedWorld

TOPIC, LITERAL, PREFIXED, ALL, ALLOW = 2, 3, 4, 2, 3
"""Kafka's numbers of a resource type, pattern types, an operation and a permission."""
OTHERS = 100
"""Other users with an ACL each."""


def _create_acls(client: Client) -> None:
    acls = [("User:ANONYMOUS", "allowed-", PREFIXED)]
    acls += [(f"User:user{number}", f"topic-{number}", LITERAL) for number in range(OTHERS)]
    creations = [
        AclCreation(
            resource_type=TOPIC,
            resource_name=name,
            resource_pattern_type=pattern,
            principal=principal,
            host="*",
            operation=ALL,
            permission_type=ALLOW,
        )
        for principal, name, pattern in acls
    ]
    for result in client.ask(CreateAclsRequest(creations=creations), 3).results:
        check(result.error_code, "CreateAcls")


def _over_tls(world: CountedWorld, *, count: int) -> Steps:
    return produce_again(world.client("SSL"), f"tls-{count}", count)


def _authorized(world: CountedWorld, *, count: int) -> Steps:
    client = world.client()
    _create_acls(client)
    yield from produce_again(client, f"allowed-{count}", count)


SECURED = (
    *(Kind(f"Produce {size}, TLS", TLS, partial(_over_tls, count=count)) for size, count in SIZES.items()),
    *(
        Kind(f"Produce {size}, authorizer", AUTHORIZER, partial(_authorized, count=count))
        for size, count in SIZES.items()
    ),
)
