"""`barnabas group`: its commands, one module for each kind of work."""

from __future__ import annotations

import click

from barnabas.cli.command_groups import LazyGroup

COMMANDS = {
    "list": ("barnabas.cli.group.listing:list_", "List groups with their state."),
    "describe": ("barnabas.cli.group.describe:describe", "Show the lag and the members of each partition."),
    "lag": (
        "barnabas.cli.group.listing:lag",
        "Show a line for each group: its state, members, and the lag of all its partitions together.",
    ),
    "offsets": ("barnabas.cli.group.listing:offsets", "Show a group's committed offset in each partition."),
    "seek": (
        "barnabas.cli.group.seek:seek",
        "Set the offsets of a group without members; of a share group, its start offsets.",
    ),
    "forget": (
        "barnabas.cli.group.removal:forget",
        "Delete a group's offsets of topics that no member reads; a share group must have no members.",
    ),
    "delete": ("barnabas.cli.group.removal:delete", "Delete groups without members, with their offsets."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def group() -> None:
    """List, describe, seek and delete groups: consumers, share groups, streams."""
