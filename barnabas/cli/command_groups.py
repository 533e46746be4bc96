"""Groups of commands, and the form of all help pages.

No word, option or key is broken, and narrow screens have explanations below the options. Groups list their commands
with whole sentences; the commands of a `LazyGroup` are imported when they are called. `Context.formatter_class` is
click's setting for all pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

import click

SECOND_COLUMN = 40
"""Columns that explanations need beside the options; with less they are below."""


class Pages(click.HelpFormatter):
    """Click's pages, wrapped at spaces only."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """The first line: the command and the names of its parameters."""
        first, *others = _fill(f"{prefix or 'Usage: '}{prog} {args}", self.width, "       ")
        self.write("\n".join([first.strip(), *others]) + "\n")

    def write_text(self, text: str) -> None:
        """Paragraphs; one that starts with a line of `\\b` is kept as it is."""
        indent = " " * self.current_indent
        paragraphs = []
        for paragraph in text.split("\n\n"):
            if paragraph.startswith("\b"):
                lines = [part for line in paragraph.splitlines()[1:] for part in _kept(indent + line, self.width)]
            else:
                lines = _fill(paragraph, self.width, indent)
            paragraphs.append("\n".join(lines))
        self.write("\n\n".join(paragraphs) + "\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Options or commands with their explanations."""
        rows = [(term.replace("INTEGER RANGE", "N").replace("INTEGER", "N"), text) for term, text in rows]
        first = min(max((len(term) for term, _ in rows), default=0), col_max) + col_spacing
        indent = " " * self.current_indent
        is_narrow = self.width - self.current_indent - first < SECOND_COLUMN
        start = indent + (" " * 4 if is_narrow else " " * first)
        for term, text in rows:
            lines = _fill(text, self.width, start)
            if lines and not is_narrow and len(term) <= first - col_spacing:
                lines[0] = indent + term.ljust(first) + lines[0].strip()
            else:
                lines = [*_choices(term, self.width, indent), *lines]
            self.write("\n".join(lines) + "\n")


class Group(click.Group):
    """A group whose help page has the whole first sentence of each command."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands."""
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                rows.append((name, command.get_short_help_str(limit=200)))
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


def _kept(line: str, width: int) -> list[str]:
    """A line of an example or a list: as it is, or wrapped if it is too long."""
    if len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    first, *others = _fill(line, width, indent + "    ")
    return [indent + first.strip(), *others]


def _choices(term: str, width: int, indent: str) -> list[str]:
    """An option's name and what it may be, wrapped between the choices if it is too long."""
    marked = term.replace("|", "| ") if len(indent + term) > width else term
    return [line.replace("| ", "|") for line in _fill(marked, width, indent)]


def _fill(text: str, width: int, indent: str) -> list[str]:
    import textwrap

    return textwrap.wrap(
        " ".join(text.split()),
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


click.Context.formatter_class = Pages


# --- groups whose commands are imported when they are called

Table = Mapping[str, tuple[str, str]]
"""Command -> (module:attribute, one line for the help page)."""


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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The help page's list of commands: the table's lines, so that no command is imported."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.lazy.items()])
