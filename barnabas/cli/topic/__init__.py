"""`barnabas topic`: its commands, one module for each kind of work."""

from __future__ import annotations

import click

from barnabas.cli.command_groups import LazyGroup

COMMANDS = {
    "list": ("barnabas.cli.topic.listing:list_", "List topics with their partitions and replicas."),
    "create": ("barnabas.cli.topic.changes:create", "Create topics."),
    "describe": (
        "barnabas.cli.topic.listing:describe",
        "Show the partitions of topics: leader, replicas, offsets; with several replicas also which are in sync.",
    ),
    "alter": ("barnabas.cli.topic.changes:alter", "Change the configuration of topics."),
    "add-partitions": (
        "barnabas.cli.topic.changes:add_partitions",
        "Add partitions to topics; partitions cannot be removed.",
    ),
    "reassign": (
        "barnabas.cli.topic.replicas:reassign",
        "Move partitions to other brokers, cancel reassignments, or show them.",
    ),
    "elect-leaders": (
        "barnabas.cli.topic.replicas:elect_leaders",
        "Make the preferred replicas leaders again, the first of each partition; of all partitions if none is named.",
    ),
    "trim": ("barnabas.cli.topic.trim:trim", "Delete the records of partitions before a position."),
    "analyze": (
        "barnabas.cli.topic.analyze:analyze",
        "Show batch and record sizes and rates of topics, from the batches of a time range.",
    ),
    "delete": ("barnabas.cli.topic.changes:delete", "Delete topics with all their records."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def topic() -> None:
    """List, create, describe, change, move, trim, analyze and delete topics."""
