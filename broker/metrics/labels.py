"""Which topics and groups have series of their own, so that their number is bounded.

The first ones have; all others are summed under the label `OTHER`. A name keeps its place until it is forgotten, so
that a sum of counters does not become smaller because one of them got series of its own.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Final

OTHER: Final = "(other)"
PARTS_OF_A_NAME: Final = 10
"""How many times as many partitions as names have series of their own."""
NAMES_OF_A_STEP: Final = 500


class Labels:
    """The names that have series of their own, with the number of partitions that have."""

    def __init__(self, most: int) -> None:
        """`most` names have series of their own."""
        self._most = most
        self._own: dict[str, int] = {}
        self._others: set[str] = set()
        self._parts = 0

    def admit(self, name: str, parts: int) -> tuple[bool, bool]:
        """Whether a name has series of its own, and whether each of its `parts` partitions has."""
        if name not in self._own:
            if name in self._others or len(self._own) >= self._most or name == OTHER:
                self._others.add(name)
                return False, False
            self._own[name] = 0
        known = self._own[name]
        if parts != known:
            self._parts -= known
            self._own[name] = 0
            if self._parts + parts > PARTS_OF_A_NAME * self._most:
                return True, False
            self._own[name] = parts
            self._parts += parts
        return True, True

    def is_other(self, name: str) -> bool:
        """Whether a name that was seen has no series of its own."""
        return name in self._others

    def forget(self, name: str) -> None:
        """The name is deleted: another one may take its place."""
        self._parts -= self._own.pop(name, 0)
        self._others.discard(name)

    def keep_only(self, names: Container[str]) -> Iterator[None]:
        """Forget all others, in steps of some hundred names."""
        for number, name in enumerate([*self._own, *self._others], 1):
            if name not in names:
                self.forget(name)
            if number % NAMES_OF_A_STEP == 0:
                yield

    @property
    def hidden(self) -> int:
        """How many names have no series of their own."""
        return len(self._others)
