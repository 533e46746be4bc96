"""Group commit: records reach the disk before they are acknowledged and before consumers may read them.

A log directory has one `Committer`. Appends ask it for a sync; it takes every log that has asked when the turn of the
loop ends, and syncs them together in a thread. What arrives meanwhile goes into the next sync, so that an
acknowledgement waits for one to two syncs however many there are. Then the high watermarks advance, which releases
all who wait for them.

How much may be acknowledged before it is synced is a partition's `SyncLimit`: at most `flush.messages` - 1 records,
none of them for longer than `flush.ms`. With `barnabas.log.sync=always` that is no record at all. A partition without
limits has no `SyncLimit`, and none of this touches it: its high watermark is its log's end.

A sync that has failed is never tried again (rule section 3): the kernel may have dropped what could not be written.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Protocol

import trio

from barnabas.broker.config.keys.own import ALWAYS
from barnabas.broker.replicas.log_dir_failure import is_passing
from barnabas.wire.configdef import LONG_MAX

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.broker.replicas.partition import Partition
    from barnabas.broker.timers import Timer
    from barnabas.storage.flush_job import FlushJob
    from barnabas.storage.log_dir import LogDir

PAUSE_S = 0.1
"""Time until a sync is begun again for which no file could be opened."""

MANY_FILES = 8
"""From so many files on their whole file system may be synced."""
LEAST_PATIENCE, MOST_PATIENCE = 8, 1024
"""Syncs until the whole is tried again that has turned out slower than its files."""


class SyncWorker(Protocol):
    """Does what takes time away from the loop."""

    def submit(self, work: Callable[[], None], then: Callable[[Exception | None], None]) -> None:
        """Run `work` somewhere, then call `then` in the loop, with the error that `work` has raised."""


class SyncThreads:
    """Threads for syncs, and a pipe that tells the reactor, which may not be waiting in trio, that one is done."""

    def __init__(self) -> None:
        self._done: deque[tuple[Callable[[Exception | None], None], Exception | None]] = deque()
        self._under_way = 0
        self._read_end, self._write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def submit(self, work: Callable[[], None], then: Callable[[Exception | None], None]) -> None:
        """Run `work` in a thread."""

        def run() -> None:
            failure = None
            try:
                work()
            except Exception as error:
                failure = error
            self._done.append((then, failure))
            os.write(self._write_end, b"\0")

        self._under_way += 1
        trio.lowlevel.start_thread_soon(run, _ignore, "barnabas-sync")

    def fileno(self) -> int:
        """Readable when `collect` has something to do."""
        return self._read_end

    def collect(self) -> None:
        """Tell those who have submitted what is done."""
        try:
            os.read(self._read_end, 4096)
        except BlockingIOError:
            pass
        while self._done:
            self._under_way -= 1
            then, failure = self._done.popleft()
            then(failure)

    def close(self) -> None:
        """Close the pipe; with a thread still at work it stays until the process ends."""
        if not self._under_way:
            os.close(self._read_end)
            os.close(self._write_end)


def _ignore(_: object) -> None:
    """The thread has reported by itself."""


class SyncBreadth:
    """Whether many files are synced one by one or with their whole file system.

    Each file costs a commit of the file system's journal, so that the whole is several times quicker (measured on
    ext4: 16 files 1.8 ms, the whole 0.4), unless somebody else writes much there. So the whole is tried, and tried
    more rarely where it has turned out slower.
    """

    __slots__ = ("_file_s", "_passed_over", "_patience")

    def __init__(self) -> None:
        self._file_s = 0.0  # that one file takes, about
        self._patience = LEAST_PATIENCE
        self._passed_over = 0  # syncs that are left until the whole is tried again

    def is_whole(self, files: int) -> bool:
        """How to sync so many files."""
        return files >= MANY_FILES and not self._passed_over

    def took(self, files: int, seconds: float, *, is_whole: bool) -> None:
        """Learn from a sync."""
        if not is_whole:
            self._file_s = self._file_s * 0.9 + seconds / files * 0.1 if self._file_s else seconds / files
            if files >= MANY_FILES:
                self._passed_over = max(0, self._passed_over - 1)
        elif self._file_s and seconds > files * self._file_s:
            self._patience = self._passed_over = min(2 * self._patience, MOST_PATIENCE)
        else:
            self._patience = LEAST_PATIENCE


class Committer:
    """The syncs of one log directory, one at a time."""

    def __init__(self, broker: Broker, log_dir: LogDir, worker: SyncWorker) -> None:
        self._broker = broker
        self._log_dir = log_dir
        self._worker = worker
        self._requested: dict[SyncLimit, None] = {}
        self._is_due = False  # at the end of this turn, or after a pause
        self._is_syncing = False
        self._breadth = SyncBreadth()

    def request(self, limit: SyncLimit) -> None:
        """Have a partition's log synced with the next sync."""
        self._requested[limit] = None
        if not self._is_due and not self._is_syncing:
            self._is_due = True
            self._broker.call_after_turn(self._start)

    def _start(self) -> None:
        """Sync all that was asked for until now."""
        self._is_due = False
        if self._is_syncing:
            return  # its end will see to the rest
        requested, self._requested = self._requested, {}
        if self._log_dir.failure is not None:
            return
        commits = [(limit, job) for limit in requested if (job := self._begin(limit)) is not None]
        if not commits:
            return
        jobs = [job for _, job in commits]
        self._is_syncing = True
        self._worker.submit(lambda: self._sync(jobs), lambda failure: self._finish(commits, failure))

    def _sync(self, jobs: list[FlushJob]) -> None:
        """What a thread does."""
        files = sum(len(job.targets) for job in jobs)
        is_whole = self._breadth.is_whole(files)
        began = time.perf_counter()
        self._log_dir.sync(jobs, is_whole=is_whole)
        self._breadth.took(files, time.perf_counter() - began, is_whole=is_whole)

    def _begin(self, limit: SyncLimit) -> FlushJob | None:
        """A partition's part of the sync that starts; None when there is nothing to do, or not yet."""
        if limit.partition.is_gone:
            return None
        try:
            job = limit.begin()
        except OSError as error:
            if is_passing(error):
                self._try_again(limit, error)
            else:
                self._broker.log_dir_failed(self._log_dir, "sync", error)
            return None
        if job is None:
            limit.finish(None)
        return job

    def _try_again(self, limit: SyncLimit, error: OSError) -> None:
        """Nothing has been synced and nothing is lost: only a file could not be opened."""
        self._requested[limit] = None
        if not self._is_due:
            self._is_due = True
            self._broker.log_dir_failures.note(self._log_dir, f"sync of {limit.partition!r}", error)
            self._broker.timers.at(self._broker.now() + PAUSE_S, self._start)

    def _finish(self, commits: list[tuple[SyncLimit, FlushJob]], failure: Exception | None) -> None:
        """A sync is over: its records are committed."""
        self._is_syncing = False
        for limit, job in commits:
            if not limit.partition.is_gone:  # whose directory has another name by now
                failure = failure or job.missing
        if failure is not None:
            self._broker.log_dir_failed(self._log_dir, "sync", failure)
            return
        for limit, job in commits:
            if not limit.partition.is_gone:
                limit.finish(job)
        if self._requested and not self._is_due:
            self._is_due = True
            self._broker.call_after_turn(self._start)


class SyncLimit:
    """How far a partition's acknowledgements may run ahead of the disk."""

    __slots__ = ("_bytes_in_job", "_committer", "_timer", "bytes_written", "messages", "partition", "seconds")

    def __init__(self, partition: Partition, committer: Committer) -> None:
        self.partition = partition
        self.messages = 1
        """With so many records that are not synced, a sync comes before the last of them is acknowledged."""
        self.seconds = inf
        """No record waits longer for a sync to begin."""
        self.bytes_written = self._bytes_in_job = partition.bytes_appended
        self._committer = committer
        self._timer: Timer | None = None

    def appended(self, size: int) -> None:
        """The log has grown by `size` bytes."""
        self.bytes_written += size
        partition = self.partition
        log = partition.log
        if log.unflushed < self.messages:
            partition.advance_high_watermark(log.log_end_offset, self.bytes_written)
            self._set_timer()
        else:
            self._committer.request(self)

    def begin(self) -> FlushJob | None:
        """What there is to sync. OSError when a file of it cannot be opened."""
        job = self.partition.log.start_flush(data_only=True)
        self._bytes_in_job = self.bytes_written
        return job

    def finish(self, job: FlushJob | None) -> None:
        """The sync is done: advance the high watermark as far as the limit lets it."""
        partition = self.partition
        log = partition.log
        if job is not None:
            log.finish_flush(job)
        if job is None or log.unflushed < self.messages:
            partition.advance_high_watermark(log.log_end_offset, self.bytes_written)
            self._set_timer()
        else:
            partition.advance_high_watermark(min(job.offset, log.synced_offset), self._bytes_in_job)

    def _set_timer(self) -> None:
        if self._timer is None and self.seconds < inf and self.partition.log.unflushed:
            broker = self.partition.broker
            self._timer = broker.timers.at(broker.now() + self.seconds, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if self.partition.log.unflushed:
            self._committer.request(self)

    def drop(self) -> None:
        """The partition has no limit any more, or is gone."""
        self.seconds = inf
        if self._timer is not None:
            self._timer.cancel()


def set_limit(partition: Partition, policy: str | None, committer: Committer) -> None:
    """Give a partition the limit that its topic's configuration and `barnabas.log.sync` ask for, if they ask for one.

    It holds from the next append; one that is in force is changed.
    """
    config = partition.log.config
    messages = 1 if policy == ALWAYS else config.flush_messages
    if messages == LONG_MAX and config.flush_ms == LONG_MAX:
        partition.end_sync_limit()
        return
    limit = partition.sync_limit
    if limit is None:
        limit = partition.sync_limit = SyncLimit(partition, committer)
    limit.messages = messages
    limit.seconds = inf if config.flush_ms == LONG_MAX else config.flush_ms / 1000
