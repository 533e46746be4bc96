"""Compares an output that a page shows with the real one.

`...` alone in a line stands for any number of lines, `...` within a line for any text. Spaces at the ends of lines do
not count, nor do runs of spaces: columns of tables are as wide as their contents.
"""

from __future__ import annotations

import re

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def _squeezed(line: str) -> str:
    return " ".join(line.split())


def pattern_of(shown: str) -> re.Pattern[str]:
    """The expression that a real output must match as a whole."""
    parts = []
    for line in shown.strip().splitlines():
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(re.escape(part) for part in _squeezed(line).split("...")) + r"\n")
    return re.compile("".join(parts))


def matches(shown: str, real: str) -> bool:
    """Whether the real output is the one that is shown."""
    lines = [_squeezed(_COLOURS.sub("", line)) for line in real.strip().splitlines()]
    return pattern_of(shown).fullmatch("".join(f"{line}\n" for line in lines)) is not None
