"""Helpers for the tests of log directories."""

from __future__ import annotations

import itertools
from pathlib import Path

from barnabas.storage import layout
from barnabas.storage.directories.log_dirs import LogDirs
from barnabas.storage.files import UnsyncedFiles
from barnabas.storage.log import Log
from tests.support.logs.log_driver import TOPIC_ID, append, batch_of, small_config, truncate

CHECKPOINTS = (layout.RECOVERY_POINT_CHECKPOINT, layout.LOG_START_CHECKPOINT, layout.REPLICATION_CHECKPOINT)
OTHER_ID = bytes(reversed(range(16)))


def log_dirs(*paths: Path, ids: itertools.count[int] | None = None) -> LogDirs:
    numbers = ids or itertools.count(1)
    return LogDirs(UnsyncedFiles(), [str(path) for path in paths], lambda: next(numbers).to_bytes(16, "big"))


def open_log(dirs: LogDirs, topic: str = "t", partition: int = 0, topic_id: bytes = TOPIC_ID, now: float = 0.0) -> Log:
    return dirs.open_log(
        topic, partition, small_config(file_delete_delay_ms=60_000), topic_id=topic_id, now_ms=10_000, now=now
    )


def opened_dirs(*paths: Path, ids: itertools.count[int] | None = None) -> LogDirs:
    """The log directories of node 1, locked and identified."""
    dirs = log_dirs(*paths, ids=ids)
    dirs.open(1)
    return dirs


def truncate_log(dirs: LogDirs, offset: int) -> None:
    """Truncate the log t-0, with the checkpoint of the recovery points as a fetcher writes it."""
    truncate(dirs.logs["t", 0], offset, write_checkpoint=lambda: dirs.write_checkpoint(CHECKPOINTS[0]))


def append_batches(log: Log, count: int) -> None:
    """Append batches of one record each."""
    for _ in range(count):
        append(log, batch_of([b"v"]))
