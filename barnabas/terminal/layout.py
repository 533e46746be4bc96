"""Arranges rows of text in a given width without breaking a word.

A table whose columns fit is drawn as it is. Otherwise cells with several words (separated by spaces or commas) are
wrapped. If that is not enough, a few long names in the first column get a line of their own, with the rest of their row
below. If the others do not fit beside each other either, each row becomes a block of lines `TITLE  value`.
A word that is longer than the width is on a line of its own: ids stay whole and can be copied.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

GAP = "  "
NAMES = 16
"""The least width of a first column whose long names have lines of their own."""
_ITEM = re.compile(r"[^\s,]+,?|,")
_WORD = re.compile(r"\S+")

Cells = Sequence[str]


def cell_width(text: str) -> int:
    """Columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def lay_out(titles: Cells, rows: Sequence[Cells], numeric: Sequence[bool], width: int | None) -> list[str]:
    """The lines of a table or of blocks; the first line of a table has the titles. None: no limit of the width."""
    widths = _widths(titles, rows, width)
    if widths is None:
        assert width is not None
        return _blocks(titles, rows, width)
    lines = [_line(titles, widths, numeric)]
    for row in rows:
        if _longest_word(row[0]) > widths[0]:
            lines += wrap(row[0], width or cell_width(row[0]), word=_ITEM)
            row = ["", *row[1:]]
        lines += _wrapped_row(row, widths, numeric)
    return lines


def is_table(titles: Cells, rows: Sequence[Cells], width: int | None) -> bool:
    """True if the rows fit beside each other, so that `lay_out` starts with a line of titles."""
    return _widths(titles, rows, width) is not None


def wrap(text: str, width: int, *, word: re.Pattern[str] = _WORD) -> list[str]:
    """Lines of at most `width` columns, broken at spaces only; at least one line. Cells are broken after commas too."""
    if cell_width(text) <= width:
        return [text]
    lines = [""]
    for match in word.finditer(text):
        part, before = match[0], text[match.start() - 1 : match.start()]
        space = " " if lines[-1] and before.isspace() else ""
        if lines[-1] and cell_width(lines[-1] + space + part) > width:
            lines.append(part)
        else:
            lines[-1] += space + part
    return lines


def _widths(titles: Cells, rows: Sequence[Cells], width: int | None) -> list[int] | None:
    """The width of each column, or None if they do not fit beside each other. Long names do not count in the first."""
    columns = [[title, *column] for title, column in _columns(titles, rows)]
    fitting = _fitting(columns, width)
    if fitting is not None or width is None:
        return fitting
    others = [max(map(cell_width, column)) for column in columns[1:]]
    room = width - sum(others) - len(GAP) * len(others)
    return [room, *others] if room >= max(NAMES, cell_width(titles[0])) else None


def _columns(titles: Cells, rows: Sequence[Cells]) -> list[tuple[str, list[str]]]:
    return [(title, [row[index] for row in rows]) for index, title in enumerate(titles)]


def _fitting(columns: list[list[str]], width: int | None) -> list[int] | None:
    """The width of each column, or None if the columns do not fit even when their cells are wrapped."""
    widths = [max(map(cell_width, column)) for column in columns]
    if width is None:
        return widths
    room = width - len(GAP) * (len(columns) - 1)
    least = [max(_longest_word(text) for text in column) for column in columns]
    while sum(widths) > room:
        widest = max(range(len(widths)), key=lambda index: widths[index] - least[index], default=0)
        if widths[widest] == least[widest]:
            return None
        widths[widest] = max(least[widest], widths[widest] - (sum(widths) - room))
    return widths


def _longest_word(text: str) -> int:
    return max((cell_width(match[0]) for match in _ITEM.finditer(text)), default=0)


def _wrapped_row(row: Cells, widths: Sequence[int], numeric: Sequence[bool]) -> list[str]:
    cells = [wrap(text, width, word=_ITEM) for text, width in zip(row, widths, strict=True)]
    height = max(map(len, cells))
    return [_line([cell[at] if at < len(cell) else "" for cell in cells], widths, numeric) for at in range(height)]


def _line(cells: Cells, widths: Sequence[int], numeric: Sequence[bool]) -> str:
    aligned = [
        " " * (width - cell_width(text)) + text if right else text + " " * (width - cell_width(text))
        for text, width, right in zip(cells, widths, numeric, strict=True)
    ]
    return GAP.join(aligned).rstrip()


def _blocks(titles: Cells, rows: Sequence[Cells], width: int) -> list[str]:
    lines: list[str] = []
    for row in rows:
        if lines:
            lines.append("")
        lines += fields(titles, row, width)
    return lines


def fields(titles: Cells, values: Cells, width: int | None) -> list[str]:
    """One line `TITLE  value` a value, or more where a value is wrapped."""
    indent = max(map(cell_width, titles), default=0)
    lines: list[str] = []
    for title, value in zip(titles, values, strict=True):
        room = None if width is None else width - indent - len(GAP)
        parts = [value] if room is None else wrap(value, room, word=_ITEM)
        if room is not None and any(cell_width(part) > room for part in parts):
            assert width is not None
            lines += [
                title,
                *(GAP + part for part in wrap(value, width - len(GAP), word=_ITEM)),
            ]  # a long word, under its title
            continue
        for at, part in enumerate(parts):
            lines.append(f"{'' if at else title:<{indent}}{GAP}{part}".rstrip())
    return lines
