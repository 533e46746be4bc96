"""Suggestions for misspelt words, in one form everywhere: `; did you mean x?`."""

from __future__ import annotations

from collections.abc import Iterable


def suggestion(word: str, known: Iterable[str]) -> str:
    """`; did you mean x?` with the most similar known word, or nothing."""
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), 1, 0.6)
    return f"; did you mean {near[0]}?" if near else ""
