"""Loading coordinators from their logs: small logs before the broker serves, large ones in slices beside it.

Until its log is read, requests to a coordinator get COORDINATOR_LOAD_IN_PROGRESS, and clients retry. Events for all
coordinators (a topic is deleted ...) are deferred until then. Records that others write into the partition meanwhile,
such as transaction markers, are read from the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.broker.loop import Loop
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.machine import Moment, Result

C = TypeVar("C")
Event: TypeAlias = "Callable[[C, Moment], Result]"

SYNCHRONOUS_LOAD_BYTES: Final = 512 * 1024
"""The logs of one topic are read before the broker serves if they have no more bytes in total: about 0.1 s."""

SLICE_S: Final = 0.005
"""How long loading blocks the loop at a time."""


class Loading(Generic[C]):
    """One coordinator whose log is being read."""

    def __init__(self, coordinator: C, partition: Partition, steps: Iterator[int]) -> None:
        """`steps` replays the log into the coordinator and yields the number of records so far."""
        self.coordinator = coordinator
        self.partition = partition
        self.count = 0
        """Records read so far."""
        self.deferred: list[Event[C]] = []
        """Events that came in meanwhile."""
        self._steps = steps

    def read(self, should_pause: Callable[[], bool] = lambda: False) -> bool:
        """Read until the end of the log (True) or until `should_pause()` (False)."""
        for count in self._steps:
            self.count = count
            if should_pause():
                return False
        return True


class BackgroundLoading(Generic[C]):
    """Loads coordinators one after the other, in slices of `SLICE_S`, between turns of the loop."""

    def __init__(self, loop: Loop, on_loaded: Callable[[int, Loading[C]], object]) -> None:
        """`on_loaded` gets the partition index and the coordinator once its whole log is read."""
        self._loop = loop
        self._on_loaded = on_loaded
        self._unfinished: dict[int, Loading[C]] = {}

    def start(self, unfinished: dict[int, Loading[C]]) -> None:
        """Load these coordinators, by partition index."""
        self._unfinished = unfinished
        self._schedule()

    def __bool__(self) -> bool:
        return bool(self._unfinished)

    def __contains__(self, index: int) -> bool:
        return index in self._unfinished

    def defer(self, event: Event[C]) -> None:
        """Have every coordinator that is being loaded handle `event` afterwards."""
        for loading in self._unfinished.values():
            loading.deferred.append(event)

    def discard(self, index: int) -> None:
        """Stop loading the coordinator of a partition, if it is being loaded."""
        self._unfinished.pop(index, None)

    def cancel(self) -> None:
        """Stop loading."""
        self._unfinished = {}

    def _schedule(self) -> None:
        self._loop.timers.at(self._loop.now(), self._run_slice)

    def _run_slice(self) -> None:
        now = self._loop.now
        end = now() + SLICE_S
        while self._unfinished:
            index, loading = next(iter(self._unfinished.items()))
            if not loading.read(lambda: now() >= end):
                self._schedule()
                return
            del self._unfinished[index]
            self._on_loaded(index, loading)
