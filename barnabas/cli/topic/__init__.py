"""`barnabas topic`: its commands, one module for each kind of work."""

from __future__ import annotations

import click

from barnabas.cli.help_pages import Group
from barnabas.cli.topic.analyze import analyze
from barnabas.cli.topic.changes import add_partitions, alter, create, delete
from barnabas.cli.topic.listing import describe, list_
from barnabas.cli.topic.trim import trim


@click.group(cls=Group)
def topic() -> None:
    """List, create, describe, change, trim, analyze and delete topics."""


for command in (list_, create, describe, alter, add_partitions, trim, analyze, delete):
    topic.add_command(command)
