"""`barnabas group`: its commands, one module for each kind of work."""

from __future__ import annotations

import click

from barnabas.cli.command_groups import LazyGroup

COMMANDS = {
    "list": ("barnabas.cli.group.listing:list_", ""),
    "describe": ("barnabas.cli.group.describe:describe", ""),
    "lag": ("barnabas.cli.group.listing:lag", ""),
    "offsets": ("barnabas.cli.group.listing:offsets", ""),
    "seek": ("barnabas.cli.group.seek:seek", ""),
    "forget": ("barnabas.cli.group.removal:forget", ""),
    "delete": ("barnabas.cli.group.removal:delete", ""),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def group() -> None:
    """List, describe, seek and delete groups: consumers, share groups, streams."""
