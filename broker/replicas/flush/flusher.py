"""Group flush: records are flushed to the disk before they are acknowledged and before consumers may read them.

A log directory has one `Flusher`. Partitions request a flush of it; at the end of the loop's turn it takes every log
that has requested one, and syncs them together in a thread. Requests that arrive meanwhile are part of the next flush,
so an acknowledgement waits for one to two flushes, however many there are. Then the high watermarks advance, and the
waits for them end. A partition's `FlushPolicy` decides when it requests a flush.

A failed sync is never retried: the kernel may have dropped the pages that could not be written.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from barnabas.broker.event_loop.guarded import log_failure
from barnabas.broker.exhausted_dirs import NO_DESCRIPTORS
from barnabas.broker.log_dir_failures import is_transient
from barnabas.broker.replicas.flush.syncfs_choice import SyncfsChoice

if TYPE_CHECKING:
    from barnabas.broker.event_loop.disk_threads import DiskExecutor
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.log_dir_failures import LogDirFailures
    from barnabas.broker.replicas.flush.policy import FlushPolicy
    from barnabas.storage.append.flush_job import FlushJob
    from barnabas.storage.directories.log_dir import LogDir

RETRY_S = 0.1
"""Delay before a flush for which a file could not be opened is started again, seconds."""

NO_THREAD_S = 1.0
"""Delay before a flush for which no thread could be started is started again, seconds."""


class Flusher:
    """The flushes of one log directory, one at a time."""

    def __init__(self, loop: Loop, log_dir: LogDir, failures: LogDirFailures, executor: DiskExecutor) -> None:
        self._loop = loop
        self._log_dir = log_dir
        self._failures = failures
        self._executor = executor
        self._requested: dict[FlushPolicy, None] = {}
        self._is_scheduled = False  # for the end of this turn, or after a delay
        self._is_running = False
        self._syncfs = SyncfsChoice()

    def request(self, policy: FlushPolicy) -> None:
        """Have a partition's log flushed with the next flush."""
        self._requested[policy] = None
        if not self._is_scheduled and not self._is_running:
            self._is_scheduled = True
            self._loop.call_after_turn(self._start)

    def _start(self) -> None:
        """Flush everything requested so far."""
        self._is_scheduled = False
        if self._is_running:
            return  # `_finish` schedules the next one
        requested, self._requested = self._requested, {}
        if self._log_dir.failure is not None:
            return
        flushes = [(policy, job) for policy in requested if (job := self._begin(policy)) is not None]
        if not flushes:
            return
        jobs = [job for _, job in flushes]
        self._is_running = True
        try:
            self._executor.submit(lambda: self._sync(jobs), lambda failure: self._finish(flushes, failure))
        except Exception as error:  # there is no thread for it: nothing was synced and nothing is lost
            log_failure(f"Starting a sync in {self._log_dir.path}, which is tried again in {NO_THREAD_S} s,", error)
            self._is_running = False
            self._requested.update({policy: None for policy, _ in flushes})
            self._start_after(NO_THREAD_S)

    def _sync(self, jobs: list[FlushJob]) -> None:
        """Sync the files; runs in a thread."""
        files = sum(len(job.targets) for job in jobs)
        uses_syncfs = self._syncfs.uses_syncfs(files)
        began = time.perf_counter()
        self._log_dir.sync(jobs, whole_file_system=uses_syncfs)
        if uses_syncfs or not any(job.file_system for job in jobs):
            self._syncfs.record(files, time.perf_counter() - began, used_syncfs=uses_syncfs)

    def _begin(self, policy: FlushPolicy) -> FlushJob | None:
        """A partition's part of the flush that starts; None when there is nothing to flush, or not yet."""
        if policy.partition.is_closed or policy.is_held or not policy.is_flushed_by(self.request):
            return None  # a flush that is held back, or of a log that has moved away, is requested again
        try:
            job = policy.begin()
        except OSError as error:
            if is_transient(error):
                self._retry(policy, error)
            else:
                self._failures.take_offline(self._log_dir, "sync", error)
            return None
        except Exception as error:
            self._fail(policy, error)
            return None
        if job is None:
            self._commit(policy, None)
        return job

    def _commit(self, policy: FlushPolicy, job: FlushJob | None) -> None:
        """Advance a partition's high watermark. If that fails the partition goes offline: its clients get an answer."""
        try:
            policy.finish(job)
        except Exception as error:
            self._fail(policy, error)

    def _fail(self, policy: FlushPolicy, error: Exception) -> None:
        log_failure(f"The flush of {policy.partition!r}", error)
        policy.partition.fail(f"its flush has failed: {error}")

    def _retry(self, policy: FlushPolicy, error: OSError) -> None:
        """A file could not be opened: nothing has failed and nothing is lost, so start again later."""
        self._requested[policy] = None
        if not self._is_scheduled:
            self._failures.report(self._log_dir, f"sync of {policy.partition!r}", error)
            self._start_after(RETRY_S)

    def _is_here(self, policy: FlushPolicy) -> bool:
        """Whether the partition is still served from this directory."""
        return not policy.partition.is_closed and policy.is_flushed_by(self.request)

    def _start_after(self, delay_s: float) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.timers.at(self._loop.now() + delay_s, self._start)

    def _finish(self, flushes: list[tuple[FlushPolicy, FlushJob]], failure: Exception | None) -> None:
        """A flush has ended: commit its records."""
        self._is_running = False
        if isinstance(failure, OSError) and failure.errno in NO_DESCRIPTORS:  # a sync itself never fails with these
            for policy, _ in flushes:
                self._retry(policy, failure)
            return
        for policy, job in flushes:
            if self._is_here(policy):  # else its directory has been renamed for deletion
                failure = failure or job.missing
        if failure is not None:
            self._failures.take_offline(self._log_dir, "sync", failure)
            return
        for policy, job in flushes:
            if self._is_here(policy):
                self._commit(policy, job)
        if self._requested and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_after_turn(self._start)
