"""`barnabas acl`: who may do what (KIP-140, KIP-290)."""

from __future__ import annotations

import click

from barnabas.cli.command_groups import LazyGroup


@click.group(
    cls=LazyGroup,
    lazy={
        "list": ("barnabas.cli.access.acl.listing:list_", "List ACLs."),
        "add": ("barnabas.cli.access.acl.changes:add", "Allow or deny operations on a resource."),
        "remove": ("barnabas.cli.access.acl.changes:remove", "Remove ACLs."),
        "test": (
            "barnabas.cli.access.acl.decision:test",
            "Say whether a user may do something, and which ACL decides.",
        ),
    },
)
def acl() -> None:
    """List, add and remove ACLs, and see which one decides."""
