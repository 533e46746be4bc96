"""Work in steps, done at once: a generator yields after each step, so that others can be served between two."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

R = TypeVar("R")


def result_of(steps: Generator[object, None, R]) -> R:
    """Run all steps of the generator and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
