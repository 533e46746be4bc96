"""A Fetch that waits for records (Kafka's `DelayedFetch`).

When a partition changes, only that one is read again: a client may wait for thousands. At the deadline all are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.net.delayed_response import DelayedResponse

if TYPE_CHECKING:
    from barnabas.broker.apis.fetch_plan import Attempt, FetchPlan
    from barnabas.broker.replicas.fetch_sessions import PartitionKey
    from barnabas.broker.replicas.partition import Partition
    from barnabas.broker.timers import Timer, Timers


class _Watched:
    """A partition of the fetch, and how much of it the client could read when it was last looked at."""

    __slots__ = ("bytes_appended", "end_offset", "key", "leader_epoch")

    def __init__(self, key: PartitionKey, end_offset: int, bytes_appended: int, leader_epoch: int) -> None:
        self.key = key
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset
        self.bytes_appended = bytes_appended


class DelayedFetch:
    """Reads again when its partitions have got records, and for the last time at the deadline."""

    __slots__ = ("_attempt", "_changed", "_size", "_timer", "_watched", "delayed", "plan")

    def __init__(self, plan: FetchPlan, attempt: Attempt, timers: Timers, deadline: float) -> None:
        self.plan = plan
        self.delayed = DelayedResponse(on_cancel=self._stop)
        attempt.forget_records()
        self._attempt = attempt
        self._size = attempt.size  # an upper bound of what can be read now
        self._changed: dict[PartitionKey, None] = {}  # since they were read
        self._watched: dict[Partition, _Watched] = {}
        self._timer: Timer = timers.at(deadline, self.delayed.guard(self._expire))
        woken = self.delayed.guard(self.partition_changed)
        for key, wanted in plan.partitions.items():
            partition = plan.find(wanted)
            self._watched[partition] = _Watched(
                key, plan.end_of(partition.log), self._bytes_of(partition), partition.leader_epoch
            )
            waiters = partition.end_waiters if plan.is_follower else partition.waiters
            waiters[self] = woken

    def _bytes_of(self, partition: Partition) -> int:
        """The bytes that were appended to what the client may read: all, or what is committed."""
        if self.plan.is_follower and partition.committed_bytes is not None:
            return partition.committed_bytes.total
        return partition.bytes_appended

    def partition_changed(self, partition: Partition) -> None:
        """Records of a partition were committed, or it was removed."""
        watched, plan = self._watched[partition], self.plan
        end_offset = plan.end_of(partition.log)
        is_other = partition.is_closed or partition.leader_epoch != watched.leader_epoch
        if end_offset == watched.end_offset and not is_other:
            return  # the records belong to open transactions
        bytes_appended = self._bytes_of(partition)
        self._size += bytes_appended - watched.bytes_appended
        watched.end_offset, watched.bytes_appended = end_offset, bytes_appended
        watched.leader_epoch = partition.leader_epoch
        self._changed[watched.key] = None
        # the end of a transaction, which is small, may make many bytes visible
        if self._size >= plan.min_bytes or plan.is_committed or is_other:
            self._read_changed()

    def _read_changed(self) -> None:
        plan, attempt = self.plan, self._attempt
        changed, self._changed = self._changed, {}
        plan.read_again(attempt, changed)
        self._size = attempt.size
        if attempt.is_final or attempt.size >= plan.min_bytes:
            plan.read_again(attempt, [key for key in attempt.sizes if key not in changed])
            self._finish(attempt)
        else:
            attempt.forget_records()

    def _expire(self) -> None:
        self._finish(self.plan.read())

    def _finish(self, attempt: Attempt) -> None:
        self._stop()
        self.delayed.resolve(self.plan.respond(attempt))

    def _stop(self) -> None:
        self._timer.cancel()
        for partition in self._watched:
            partition.waiters.pop(self, None)
            partition.end_waiters.pop(self, None)
