"""Nouns after numbers: `1 record`, `2 records`."""

from __future__ import annotations


def plural(noun: str, count: int) -> str:
    """The noun, with an `s` unless `count` is 1."""
    return noun if count == 1 else f"{noun}s"
