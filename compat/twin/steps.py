"""A sequence of requests as plain data: it is made from a seed, printed as Python, shrunk, and sent to both brokers.

A request is a dictionary of the fields of its message (`compat.twin.plain`). Values that a broker has chosen (ids,
epochs, offsets) are `Saved`: each broker gets back its own. Values of `records` are `compat.twin.batches` objects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PREFIX = "{s}"
"""In strings: the prefix of the names of a sequence, so that sequences share the brokers."""


@dataclass(frozen=True)
class Saved:
    """A value of an earlier answer, by the name under which a step saved it; `default` if there was no such answer."""

    name: str
    default: Any = -1
    plus: int = 0
    """Is added to an integer: a stale or future epoch."""

    def __repr__(self) -> str:
        plus = f", plus={self.plus}" if self.plus else ""
        return f"Saved({self.name!r}, {self.default!r}{plus})"


@dataclass
class Step:
    """One request on a named connection.

    `saves`: names of values of the answer, with their paths: {"pid": ("producer_id",)}.
    `settle`: what the runner waits for after the answer ("topics", "gone", "metadata"), see `compat.twin.settling`.
    `later`: the answer is not waited for; a later step on the same connection, or the end, reads it.
    `alone`: no other request is on its way, since Kafka may close the connection.
    `varied`: the step before has the same request except for the field of this path.
    """

    api: str
    version: int
    request: dict[str, Any]
    connection: str = "a"
    saves: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    settle: str = ""
    later: bool = False
    alone: bool = False
    varied: str = ""

    def __repr__(self) -> str:
        words = [repr(self.api), repr(self.version), repr(self.request)]
        if self.connection != "a":
            words.append(f"connection={self.connection!r}")
        options = ("saves", "settle", "later", "alone", "varied")
        words += [f"{name}={value!r}" for name in options if (value := getattr(self, name))]
        return f"Step({', '.join(words)})"


def resolved(value: Any, prefix: str, saved: dict[str, Any]) -> Any:
    """A copy of a value with the prefix in its strings, and with the saved values of one broker."""
    kind = type(value)
    if kind is str:
        return value.replace(PREFIX, prefix) if PREFIX in value else value
    if kind is dict:
        return {name: resolved(part, prefix, saved) for name, part in value.items()}
    if kind is list:
        return [resolved(part, prefix, saved) for part in value]
    if kind is Saved:
        known = saved.get(value.name, value.default)
        return known + value.plus if value.plus and isinstance(known, int) else known
    if hasattr(value, "encoded"):
        return value.encoded(lambda part: resolved(part, prefix, saved))
    return value


def uses_saved(value: Any) -> bool:
    """Whether a value depends on earlier answers."""
    if isinstance(value, dict):
        return any(map(uses_saved, value.values()))
    if isinstance(value, list | tuple):
        return any(map(uses_saved, value))
    if hasattr(value, "encoded"):
        return uses_saved(vars(value))
    return isinstance(value, Saved)


def at_path(value: Any, path: tuple[Any, ...]) -> Any:
    """The part of an answer at a path of names and indexes; None if it has no such part."""
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value
