"""Producer ids: the broker gets blocks of 1000 from the controller and allocates them one by one (KIP-730)."""

from __future__ import annotations

from collections.abc import Callable


class ProducerIds:
    """Allocates producer ids that were never used before; the unused ids of a block are lost at a restart."""

    __slots__ = ("_allocate", "_end", "_next")

    def __init__(self, allocate: Callable[[], tuple[int, int]]) -> None:
        """`allocate` takes a block from the controller: (first id, number of ids)."""
        self._allocate = allocate
        self._next = 0
        self._end = 0

    def next(self) -> int:
        """Allocate a producer id. KafkaError if the controller cannot write a new block."""
        if self._next == self._end:
            self._next, size = self._allocate()
            self._end = self._next + size
        self._next += 1
        return self._next - 1
