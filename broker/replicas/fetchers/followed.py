"""One partition that a fetcher follows: its state, and whether it may be fetched now.

Pure; times are seconds of the monotonic clock. The offset to fetch from is always the log end, so the records of a
response can be appended (R4). That fetch acknowledges everything below it. So while the flush policy asks for a flush
of what was appended, the partition is not fetched: under `barnabas.log.sync=always` fetches report only offsets that
are on the disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.replicas.fetchers.session import PartitionFields, PartitionKey

if TYPE_CHECKING:
    from barnabas.broker.replicas.partition import Partition

FIRST_BACKOFF_S: Final = 0.02
"""Delay after a first error: a leader that has not received its election yet will have it a moment later."""


class Followed:
    """A partition and its leader, from one leader epoch on."""

    __slots__ = ("_backoff_s", "is_busy", "key", "lag", "leader_epoch", "partition", "ready_at")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.key: PartitionKey = (partition.topic_id, partition.index)
        self.leader_epoch = partition.leader_epoch
        self.ready_at = 0.0
        """Not fetched before this time, after an error or because of a throttle."""
        self.is_busy = False
        """Whether the log is being truncated, or the leader is asked for its offsets."""
        self.lag = -1
        """Records below the leader's high watermark that are missing, -1 before the first answer."""
        self._backoff_s = FIRST_BACKOFF_S

    @property
    def is_current(self) -> bool:
        """Whether the partition still has this leader, as far as is known."""
        partition = self.partition
        return not partition.is_closed and not partition.is_leader and partition.leader_epoch == self.leader_epoch

    @property
    def is_flushing(self) -> bool:
        """Whether a flush has to end before the next fetch, which reports this replica's log end."""
        policy = self.partition.flush_policy
        return policy is not None and self.partition.log.unflushed >= policy.messages

    def fields(self, max_bytes: int) -> PartitionFields:
        """The fields of the partition in the next request."""
        log = self.partition.log
        return PartitionFields(
            self.partition.topic,
            self.leader_epoch,
            log.log_end_offset,
            log.leader_epochs.latest_epoch,
            log.log_start_offset,
            max_bytes,
        )

    def delay(self, now: float, longest_s: float) -> None:
        """An error: wait before the next fetch, longer each time up to `longest_s`."""
        self.ready_at = now + min(self._backoff_s, longest_s)
        self._backoff_s = min(2 * self._backoff_s, max(longest_s, FIRST_BACKOFF_S))

    def succeeded(self) -> None:
        """The leader has answered without an error."""
        self._backoff_s = FIRST_BACKOFF_S
