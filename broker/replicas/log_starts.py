"""Persists the log starts of all partitions, then deletes the segments below them (L5).

The checkpoint files are planned in slices and written in a thread; segments are renamed in slices. One run is in
progress at a time: requests that arrive meanwhile share the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from barnabas.broker.event_loop.guarded import call_guarded, log_failure
from barnabas.storage import layout

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.steps import StepRunner, Steps
    from barnabas.broker.log_dir_failures import LogDirFailures
    from barnabas.broker.replicas.partition import Partition
    from barnabas.storage.directories.log_dirs import LogDirs


class LogStarts:
    """Persists the log starts of a broker's partitions."""

    def __init__(
        self,
        loop: Loop,
        log_dirs: LogDirs,
        failures: LogDirFailures,
        runner: StepRunner,
        partitions: Callable[[], Iterable[Partition]],
    ) -> None:
        self._loop = loop
        self._log_dirs = log_dirs
        self._failures = failures
        self._runner = runner
        self._partitions = partitions
        self._waiting: list[Callable[[bool], None]] = []
        self._is_running = False

    def persist(self, then: Callable[[bool], None]) -> None:
        """Write the log start checkpoints and delete the segments below the log starts; then call `then`.

        It is called with False when a disk had no space for a checkpoint. Whole segments are deleted even then, oldest
        first, since that frees space: if the new log start is lost, the log begins with the first segment that is left.
        """
        self._waiting.append(then)
        if not self._is_running:
            self._run()

    def _run(self) -> None:
        waiting, self._waiting = self._waiting, []

        def ended(is_written: bool) -> None:
            self._is_running = False
            for then in waiting:
                call_guarded("What follows the persistence of log starts", then, is_written)
            if self._waiting and not self._is_running:
                self._run()

        def failed(error: Exception) -> None:
            log_failure("Persisting log starts", error)
            ended(False)

        self._is_running = True
        self._runner.start(self._steps(), ended, failed)

    def _steps(self) -> Steps[bool]:
        starts = [(partition, partition.log.log_start_offset) for partition in self._partitions()]
        yield None
        is_written = yield from self._failures.write_checkpoint(layout.LOG_START_CHECKPOINT)
        for partition, start in starts:
            if partition.watches:
                partition.mark_followers()  # their responses have the new log start
            if partition.is_closed or len(partition.log.segments) == 1:
                continue
            self._delete_below(partition, start)
            yield None
        return is_written

    def _delete_below(self, partition: Partition, start: int) -> None:
        """Delete the segments below a log start that is persisted."""
        log = partition.log
        try:
            deleted = log.delete_segments_below(start)
        except OSError as error:
            partition.report_failure("deletion of segments", error)
            return
        if deleted:
            self._log_dirs.deletions.schedule(deleted, self._loop.now() + log.config.file_delete_delay_ms / 1000)
