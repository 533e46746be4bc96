"""Generators that do work in steps."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def counted(steps: Generator[None, None, T]) -> tuple[T, int]:
    """(what the generator returns, how often it has yielded)."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
        count += 1
