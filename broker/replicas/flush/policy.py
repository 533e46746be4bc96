"""A partition's flush policy: how many records may be acknowledged before they are flushed, and for how long.

At most `flush.messages` - 1 records, none of them for longer than `flush.ms`. With `barnabas.log.sync=always` every
record is flushed before it is acknowledged. A partition without limits has no `FlushPolicy`: its high watermark is its
log end offset.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.timers import Timer
    from barnabas.storage.append.flush_job import FlushJob
    from barnabas.storage.log import Log


class FlushedPartition(Protocol):
    """The part of a partition that a flush policy uses."""

    log: Log
    is_closed: bool
    bytes_appended: int

    def advance_own_end(self, offset: int, bytes_appended: int) -> None:
        """This replica's records end at `offset`; without followers they are committed."""

    def fail(self, reason: str) -> None:
        """Take the partition offline."""


class FlushPolicy:
    """The flush limits of one partition, and its records that are not flushed yet."""

    __slots__ = (
        "_bytes_in_job",
        "_loop",
        "_request_flush",
        "_timer",
        "bytes_written",
        "is_held",
        "messages",
        "partition",
        "seconds",
    )

    def __init__(self, partition: FlushedPartition, loop: Loop, request_flush: Callable[[FlushPolicy], None]) -> None:
        """`request_flush` has the partition's log flushed with the next flush of its log directory."""
        self.partition = partition
        self.messages = 1
        """The number of unflushed records that requests a flush before the last of them is acknowledged."""
        self.seconds = inf
        """The longest time that a record waits for its flush to start."""
        self.bytes_written = self._bytes_in_job = partition.bytes_appended
        self.is_held = False
        """Whether no flush is begun, while a copy of the log takes its place."""
        self._loop = loop
        self._request_flush = request_flush
        self._timer: Timer | None = None

    def applied(self) -> None:
        """The policy is new or has changed: existing records are flushed too, even if nothing is appended.

        A follower does not fetch before its flush: it would wait for ever.
        """
        if self.partition.log.unflushed >= self.messages:
            self._request_flush(self)
        else:
            self._set_timer()

    def appended(self, size: int) -> None:
        """`size` bytes have been appended to the log: commit them, or request a flush first."""
        self.bytes_written += size
        partition = self.partition
        log = partition.log
        if log.unflushed < self.messages:
            partition.advance_own_end(log.log_end_offset, self.bytes_written)
            self._set_timer()
        else:
            self._request_flush(self)

    def begin(self) -> FlushJob | None:
        """Start a flush of the log; None when there is nothing to flush. OSError when a file cannot be opened."""
        job = self.partition.log.start_flush(data_only=True)
        self._bytes_in_job = self.bytes_written
        return job

    def finish(self, job: FlushJob | None) -> None:
        """The flush is done: advance the high watermark as far as the policy allows."""
        partition = self.partition
        log = partition.log
        if job is not None:
            log.finish_flush(job)
        if job is None or log.unflushed < self.messages:
            partition.advance_own_end(log.log_end_offset, self.bytes_written)
            self._set_timer()
        else:
            partition.advance_own_end(min(job.offset, log.synced_offset), self._bytes_in_job)

    def hold(self) -> None:
        """Begin no flush before `release`: records appended meanwhile wait for their acknowledgement."""
        self.is_held = True

    def release(self, request_flush: Callable[[FlushPolicy], None]) -> None:
        """Request flushes again, with `request_flush`: the log may be in another directory now.

        One is requested at once, even if the log is flushed: records flushed meanwhile are not acknowledged yet.
        """
        self.is_held = False
        self._request_flush = request_flush
        request_flush(self)

    def is_flushed_by(self, request_flush: Callable[[FlushPolicy], None]) -> bool:
        """Whether flushes are requested with this function: else the log has moved to another directory."""
        return self._request_flush == request_flush

    def _set_timer(self) -> None:
        if self._timer is None and self.seconds < inf and self.partition.log.unflushed:
            loop = self._loop
            self._timer = loop.timers.at(loop.now() + self.seconds, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if self.partition.log.unflushed:
            self._request_flush(self)

    def cancel(self) -> None:
        """Stop: the partition has no flush policy any more, or is not served any more."""
        self.seconds = inf
        if self._timer is not None:
            self._timer.cancel()
