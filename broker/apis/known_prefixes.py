"""Requests that begin with the same bytes again and again: what these bytes say is looked up instead of parsed.

A client repeats its requests but for a few fields at the end: the records of a Produce, the offset of an OffsetCommit.
The bytes before these fields, the *prefix*, are the key; the value is what a parse of the whole request has said.

Invariants: one bound in bytes is shared by all APIs and versions (`MOST_BYTES`); all are forgotten when there are more.
A prefix is learned when it comes the second time, so a client that never repeats itself costs a hash for each request
and no second parse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

K = TypeVar("K")

MOST_BYTES: Final = 5_000_000
"""How many bytes all prefixes and what is known of them may take."""
ENTRY_BYTES: Final = 1_200
"""What an entry takes apart from its prefix: at most, for names of the usual lengths."""
COPIES: Final = 4
"""How often the bytes of a prefix, or as many, are kept: as key, as text, and in the response."""
MOST_SEEN: Final = 10_000
"""How many prefixes that came once are remembered, by their hash; half a megabyte."""


class Bound:
    """The bytes that are used by all tables together."""

    __slots__ = ("_tables", "most_bytes", "seen", "used_bytes")

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self.used_bytes = 0
        self.seen: set[int] = set()
        """The hashes of prefixes that came once."""
        self._tables: list[dict[bytes, Any]] = []

    def add_table(self, table: dict[bytes, Any]) -> None:
        """Count a table's entries, and empty it when there is too much."""
        self._tables.append(table)

    @property
    def entry_count(self) -> int:
        """How many prefixes are kept."""
        return sum([len(table) for table in self._tables])

    def is_first(self, prefix: bytes) -> bool:
        """Whether a prefix comes for the first time, as far as is known."""
        number = hash(prefix)
        if number in self.seen:
            self.seen.discard(number)
            return False
        if len(self.seen) >= MOST_SEEN:
            self.seen.clear()
        self.seen.add(number)
        return True

    def take(self, prefix: bytes) -> None:
        """Count a new entry; everything is forgotten before that if it is too much."""
        size = ENTRY_BYTES + COPIES * len(prefix)
        if self.used_bytes + size > self.most_bytes:
            for table in self._tables:
                table.clear()
            self.used_bytes = 0
        self.used_bytes += size


BOUND: Final = Bound()
"""Of this process."""
LONGEST: Final = 2_000
"""A longer prefix is not learned."""


class KnownPrefixes(Generic[K]):
    """What is known of the requests of one API in one version, by prefix."""

    __slots__ = ("_bound", "_learn", "_table", "get")

    def __init__(self, learn: Callable[[memoryview, int], K | None], bound: Bound = BOUND) -> None:
        """`learn(frame, position)` parses a request from the end of its client id on; None if it is not usual."""
        self._bound = bound
        self._learn = learn
        self._table: dict[bytes, K | None] = {}
        self.get = self._table.get
        """What is known of a prefix, or None."""
        bound.add_table(self._table)

    def learned(self, prefix: bytes, frame: memoryview, position: int) -> K | None:
        """What a prefix that `get` has not found says; None if it comes for the first time, or is not usual."""
        if len(prefix) > LONGEST or prefix in self._table or self._bound.is_first(prefix):
            return None
        try:
            known = self._learn(frame, position)
        except MemoryError:
            return None  # the parse of the request says so
        self._bound.take(prefix)
        self._table[prefix] = known  # also None, so that it is not parsed again
        return known
