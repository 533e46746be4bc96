"""Closes the logs of one log directory at a clean stop, many with the same sync."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.storage.flush_job import FlushJob
from barnabas.storage.log import Log
from barnabas.storage.log_dir import LogDir

_BATCH_SIZE = 128
"""The number of logs closed with one sync; each holds about five open descriptors for it."""
_SYNC_FILE_SYSTEM_FROM = 8
"""From this number of changed logs on the whole file system is synced instead of each file."""


def close_logs(log_dir: LogDir, logs: Sequence[Log]) -> Exception | None:
    """Close all these logs of a directory, whatever fails; the last failure, None if all are closed."""
    failure: Exception | None = None
    for at in range(0, len(logs), _BATCH_SIZE):
        failure = _close_batch(log_dir, logs[at : at + _BATCH_SIZE]) or failure
    return failure


def _close_batch(log_dir: LogDir, logs: Sequence[Log]) -> Exception | None:
    failure: Exception | None = None
    closing: list[tuple[Log, FlushJob | None]] = []
    for log in logs:
        try:
            closing.append((log, log.start_close()))
        except OSError as error:
            failure = error
    jobs = [job for _, job in closing if job is not None]
    try:
        if jobs:
            log_dir.sync(jobs, whole_file_system=len(jobs) >= _SYNC_FILE_SYSTEM_FROM)
    except OSError as error:
        return error
    for log, job in closing:
        if job is not None and job.missing is not None:
            failure = job.missing
        else:
            log.finish_close(job)
    return failure
