"""Prints rows: a rich table on a terminal, otherwise aligned plain text; or JSON.

Rows are dicts with the same keys; the keys are JSON's names and, upper-cased, the columns' titles. In a table None is
`-`. Plain text separates columns by two or more spaces.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence

Row = Mapping[str, object]


def show_rows(rows: Sequence[Row], output: str, *, columns: Sequence[str] | None = None, title: str = "") -> None:
    """Print rows on stdout; `columns` selects and orders the columns of a table (JSON has all)."""
    if output == "json":
        show_json(list(rows))
        return
    names = list(columns) if columns is not None else list(rows[0]) if rows else []
    cells = [[_cell(row[name]) for name in names] for row in rows]
    titles = [name.replace("_", "-").upper() for name in names]
    numeric = [all(_is_number(row[name]) for row in rows) for name in names]
    if sys.stdout.isatty():
        _draw(titles, cells, numeric, title)
        return
    if title:
        print(title)
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    for line in (titles, *cells):
        aligned = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ]
        print("  ".join(aligned).rstrip())


def show_json(value: object) -> None:
    """Print one JSON value on stdout, indented."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def _draw(titles: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool], title: str) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", title_style="bold", pad_edge=False)
    for name, right in zip(titles, numeric, strict=True):
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for line in cells:
        table.add_row(*(Text(text) for text in line))
    Console().print(table)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(str(item) for item in value) or "-"
    return str(value)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))
