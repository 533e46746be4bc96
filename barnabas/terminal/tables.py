"""Prints rows and documents on stdout: as a table, JSON or YAML.

Rows are dicts with the same keys; the keys are the names in JSON and YAML and, upper-cased, the columns' titles. In a
table None is `-`, and characters that would control the terminal are escaped. Off a terminal a row is one line,
columns are separated by two or more spaces, and nothing is wrapped. On a terminal nothing is wider than the screen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from barnabas.terminal import screen
from barnabas.terminal.layout import fields, is_table, lay_out, wrap
from barnabas.terminal.notes import note

T = TypeVar("T")
Row = Mapping[str, object]

OUTPUTS = ("table", "wide", "json", "yaml")


def is_document(output: str) -> bool:
    """True if `show` prints this form (json, yaml); tables and wide tables are for people."""
    return output in ("json", "yaml")


def show_rows(
    rows: Sequence[Row], output: str, *, columns: Sequence[str] | None = None, title: str = "", empty: str = ""
) -> None:
    """Print rows. `columns` selects and orders the columns of a table; wide, json and yaml have all keys.

    Without rows a table prints nothing but `empty`, on stderr.
    """
    if is_document(output):
        show(list(rows), output)
        return
    if not rows and empty:
        note(empty)
        return
    names = (
        list(columns) if columns is not None and output != "wide" else list(rows[0]) if rows else list(columns or ())
    )
    cells = [[_cell(row[name]) for name in names] for row in rows]
    numeric = [all(_is_number(row[name]) for row in rows) for name in names]
    width = screen.width(sys.stdout) if screen.is_terminal(sys.stdout) else None
    if title:
        for line in wrap(printable(title), width) if width else [printable(title)]:
            print(screen.bold(line))
    titles = [_title(name) for name in names]
    lines = lay_out(titles, cells, numeric, width)
    if lines and is_table(titles, cells, width):
        lines[0] = screen.bold(lines[0])
    sys.stdout.write("".join(line + "\n" for line in lines))


def spaced(items: Iterable[T]) -> Iterator[T]:
    """The items, with an empty line printed before each but the first."""
    for number, item in enumerate(items):
        if number:
            print()
        yield item


def show_fields(document: Row, output: str) -> None:
    """Print one object: a line for each key, or a document of json and yaml."""
    if is_document(output):
        show(document, output)
        return
    width = screen.width(sys.stdout) if screen.is_terminal(sys.stdout) else None
    for line in fields([_title(name) for name in document], [_cell(value) for value in document.values()], width):
        print(line)


def show(value: object, output: str) -> None:
    """Print one value as an indented document of `output`: json or yaml."""
    import json

    if output == "yaml":
        import yaml

        plain = json.loads(json.dumps(value))  # tuples, mappings and enums as JSON has them
        yaml.safe_dump(plain, sys.stdout, sort_keys=False, allow_unicode=True, width=2**16)
        return
    print(json.dumps(value, indent=2, ensure_ascii=False))


def _title(name: str) -> str:
    return name.replace("_", "-").upper()


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(printable(str(item)) for item in value) or "-"
    return printable(str(value))


def printable(text: str) -> str:
    """The text with control characters as escapes: names of clients and groups may have any."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
