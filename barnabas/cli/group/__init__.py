"""`barnabas group`: its commands, one module for each kind of work."""

from __future__ import annotations

import click

from barnabas.cli.group.describe import describe
from barnabas.cli.group.listing import lag, list_, offsets
from barnabas.cli.group.removal import delete, forget
from barnabas.cli.group.seek import seek
from barnabas.cli.help_pages import Group


@click.group(cls=Group)
def group() -> None:
    """List, describe, seek and delete groups: consumers, share groups, streams."""


for command in (list_, describe, lag, offsets, seek, forget, delete):
    group.add_command(command)
