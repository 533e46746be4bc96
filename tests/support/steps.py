"""Generators that do work in steps."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

from barnabas.wire.steps import result_of

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


class AtOnce:
    """An object whose methods `name_in_steps` can also be called as `name`, which does all steps at once."""

    def __init__(self, stepwise: object) -> None:
        self._stepwise = stepwise

    def __getattr__(self, name: str) -> Any:
        in_steps = getattr(self._stepwise, f"{name}_in_steps", None)
        if in_steps is None:
            return getattr(self._stepwise, name)
        return lambda *args, **kwargs: result_of(in_steps(*args, **kwargs))
