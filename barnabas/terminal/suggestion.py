"""The nearest known word for one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable


def suggestion(word: str, known: Iterable[str]) -> str:
    """`; did you mean x?` for the known word nearest to `word`, or nothing when none is near."""
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), 1, 0.6)
    return f"; did you mean {near[0]}?" if near else ""
