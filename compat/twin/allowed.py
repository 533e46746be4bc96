"""The differences that are allowed, each with its reason. A row that a run of the standard seeds does not use fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any


@dataclass(frozen=True)
class Allowed:
    """A row: where answers may differ and why.

    `condition(request, kafkas, ours)` has the values of the field; without one, any values may differ.
    """

    api: str
    path: str
    """The path of the field, with `*` for parts of it."""
    reason: str
    condition: Callable[[Any, Any, Any], bool] | None = None


TABLE: tuple[Allowed, ...] = (Allowed("*", "*.(order)", "Kafka has these lists in the order of its hash maps"),)


def allowed_by(
    api: str, path: str, request: Any, kafkas: Any, ours: Any, kafkas_answer: Any, our_answer: Any
) -> Allowed | None:
    """The row that allows a difference."""
    dotted = f".{path}"
    for row in TABLE:
        if fnmatchcase(api, row.api) and (fnmatchcase(path, row.path) or fnmatchcase(dotted, row.path)):
            if row.condition is None or row.condition(request, kafkas, ours):
                return row
    return None
