"""A group whose commands are imported when they are called: a command pays only for its own modules."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click

from barnabas.cli.help_pages import Group

Table = Mapping[str, tuple[str, str]]
"""Command -> (module:attribute, one line for the help page; empty: the command's own)."""


class LazyGroup(Group):
    """Has the commands of a table, in its order."""

    def __init__(self, lazy: Table, **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """The names of all commands, in the order of the table."""
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command; None if there is none of this name."""
        if cmd_name not in self.lazy:
            return None
        module, attribute = self.lazy[cmd_name][0].split(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The help page's list of commands; those that have a line in the table are not imported."""
        rows = []
        for name, (_, text) in self.lazy.items():
            command = None if text else self.get_command(ctx, name)
            rows.append((name, text if command is None else command.get_short_help_str(limit=200)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)
