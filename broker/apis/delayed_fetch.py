"""A Fetch that waits for records (Kafka's `DelayedFetch`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.net.delayed_response import DelayedResponse

if TYPE_CHECKING:
    from barnabas.broker.apis.fetch_plan import Attempt, FetchPlan
    from barnabas.broker.replicas.partition import Partition
    from barnabas.broker.timers import Timer, Timers


class DelayedFetch:
    """Reads again when its partitions have got records, and for the last time at the deadline."""

    __slots__ = ("_known", "_size", "_timer", "delayed", "plan")

    def __init__(self, plan: FetchPlan, attempt: Attempt, timers: Timers, deadline: float) -> None:
        self.plan = plan
        self.delayed = DelayedResponse(on_cancel=self._stop)
        self._size = attempt.size
        self._known: dict[Partition, int] = {}
        for wanted in plan.partitions.values():
            partition = plan.find(wanted)
            self._known[partition] = partition.bytes_appended
            partition.waiters[self] = self.partition_changed
        self._timer: Timer = timers.at(deadline, self._expire)

    def partition_changed(self, partition: Partition) -> None:
        """Records were appended to a partition, or it was removed."""
        self._size += partition.bytes_appended - self._known[partition]
        self._known[partition] = partition.bytes_appended
        if self._size >= self.plan.min_bytes or partition.is_closed:
            attempt = self.plan.read()
            self._size = attempt.size  # less than was appended if a transaction is open
            if attempt.is_final or attempt.size >= self.plan.min_bytes:
                self._finish(attempt)

    def _expire(self) -> None:
        self._finish(self.plan.read())

    def _finish(self, attempt: Attempt) -> None:
        self._stop()
        self.delayed.resolve(self.plan.respond(attempt))

    def _stop(self) -> None:
        self._timer.cancel()
        for partition in self._known:
            partition.waiters.pop(self, None)
