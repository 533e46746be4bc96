"""`barnabas topic`: its commands, one module for each kind of work."""

from __future__ import annotations

import click

from barnabas.cli.command_groups import LazyGroup

COMMANDS = {
    "list": ("barnabas.cli.topic.listing:list_", ""),
    "create": ("barnabas.cli.topic.changes:create", ""),
    "describe": ("barnabas.cli.topic.listing:describe", ""),
    "alter": ("barnabas.cli.topic.changes:alter", ""),
    "add-partitions": ("barnabas.cli.topic.changes:add_partitions", ""),
    "reassign": ("barnabas.cli.topic.replicas:reassign", ""),
    "elect-leaders": ("barnabas.cli.topic.replicas:elect_leaders", ""),
    "trim": ("barnabas.cli.topic.trim:trim", ""),
    "analyze": ("barnabas.cli.topic.analyze:analyze", ""),
    "delete": ("barnabas.cli.topic.changes:delete", ""),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def topic() -> None:
    """List, create, describe, change, move, trim, analyze and delete topics."""
