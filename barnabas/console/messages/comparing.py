"""Two records side by side: lines of their decoded forms, with what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

MOST_LINES = 2000
"""Of each side; the comparison takes the square of it at worst."""
LONGEST_LINE = 1000


@dataclass(frozen=True, slots=True)
class Line:
    """A line of both sides: `kind` is same, changed, added (only right) or removed (only left)."""

    kind: str
    left: str
    right: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The lines of one part of two records. `is_cut`: one side has more lines than are compared."""

    title: str
    lines: list[Line]
    differences: int
    is_cut: bool


def compared(title: str, left: str, right: str) -> Comparison:
    """The lines of two texts."""
    left_lines, right_lines = left.split("\n"), right.split("\n")
    is_cut = max(len(left_lines), len(right_lines)) > MOST_LINES
    is_cut = is_cut or any(len(line) > LONGEST_LINE for line in (*left_lines, *right_lines))
    lines = list(_lines(_shortened(left_lines), _shortened(right_lines)))
    return Comparison(title, lines, sum(line.kind != "same" for line in lines), is_cut)


def _shortened(lines: Sequence[str]) -> list[str]:
    return [line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…" for line in lines[:MOST_LINES]]


def _lines(left: Sequence[str], right: Sequence[str]) -> Iterator[Line]:
    for kind, left_first, left_end, right_first, right_end in SequenceMatcher(None, left, right).get_opcodes():
        if kind == "equal":
            for left_line, right_line in zip(left[left_first:left_end], right[right_first:right_end], strict=True):
                yield Line("same", left_line, right_line)
            continue
        both = min(left_end - left_first, right_end - right_first)
        for number in range(both):
            yield Line("changed", left[left_first + number], right[right_first + number])
        for line in left[left_first + both : left_end]:
            yield Line("removed", line, "")
        for line in right[right_first + both : right_end]:
            yield Line("added", "", line)
