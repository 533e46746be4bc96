"""Producer ids: the broker gets blocks of 1000 from the controller and allocates them one by one (KIP-730).

The next block is requested before the current one is used up, so that an id is nearly always available at once. Source:
Kafka's `RPCProducerIdManager`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.wire.errors import ErrorCode, KafkaError

PREFETCH: Final = 100
"""The number of ids left in a block at which the next block is requested."""


class ProducerIds:
    """Allocates producer ids that were never used before; the unused ids of a block are lost at a restart."""

    __slots__ = ("_allocate", "_block", "_is_requested", "_next_block", "_waiting")

    def __init__(self, allocate: Callable[[Callable[[tuple[int, int] | KafkaError], None]], None]) -> None:
        """`allocate` takes a block from the controller and calls back with (first id, number of ids), or an error."""
        self._allocate = allocate
        self._block = range(0)
        self._next_block = range(0)
        self._is_requested = False
        self._waiting: list[Callable[[KafkaError | None], None]] = []

    def next(self) -> int:
        """Allocate a producer id.

        KafkaError COORDINATOR_LOAD_IN_PROGRESS while a block is being allocated, as in Kafka: clients try again.
        """
        if len(self._block) <= PREFETCH and not self._next_block:
            self._request()
        if not self._block:
            self._block, self._next_block = self._next_block, range(0)
        if not self._block:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "A block of producer ids is being allocated.")
        allocated = self._block[0]
        self._block = self._block[1:]
        return allocated

    def when_available(self, then: Callable[[KafkaError | None], None]) -> None:
        """Call `then` once `next` can allocate an id, or with the error of the controller."""
        if self._block or self._next_block:
            then(None)
        else:
            self._waiting.append(then)
            self._request()

    def _request(self) -> None:
        if not self._is_requested:
            self._is_requested = True
            self._allocate(self._allocated)

    def _allocated(self, block: tuple[int, int] | KafkaError) -> None:
        self._is_requested = False
        waiting, self._waiting = self._waiting, []
        if isinstance(block, KafkaError):
            for then in waiting:
                then(block)
            return
        self._next_block = range(block[0], block[0] + block[1])
        for then in waiting:
            self.when_available(then)
