"""Reading the logs of coordinators back in: small ones before the broker serves, large ones beside the serving loop.

Until its log is read a coordinator answers COORDINATOR_LOAD_IN_PROGRESS, and clients ask again. What happens meanwhile
to all coordinators (a topic is deleted ...) is kept for it; records that others write into its partition, transaction
markers, are found in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.machine import Moment, Result

C = TypeVar("C")

AT_ONCE_BYTES: Final = 512 * 1024
"""Logs of one topic that are read before the broker serves, when all together have no more: some 0.1 s."""

SLICE_S: Final = 0.005
"""How long loading keeps the loop at a time."""


class Loading(Generic[C]):
    """One coordinator whose log is being read."""

    def __init__(self, coordinator: C, partition: Partition, steps: Iterator[int]) -> None:
        """`steps` reads the log into the coordinator and gives the number of records so far, now and then."""
        self.coordinator = coordinator
        self.partition = partition
        self.count = 0
        """Records read so far."""
        self.missed: list[Callable[[C, Moment], Result]] = []
        """What happened to all coordinators meanwhile."""
        self._steps = steps

    def go_on(self, is_over: Callable[[], bool]) -> bool:
        """Read until the end of the log (True) or until `is_over` (False)."""
        for count in self._steps:
            self.count = count
            if is_over():
                return False
        return True
