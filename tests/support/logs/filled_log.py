"""A log of several segments, and the files of its directory."""

from __future__ import annotations

from pathlib import Path

from barnabas.storage.log import Log
from tests.support.logs.log_driver import (
    append,
    batch_of,
    open_log,
    small_config,
)


def filled_log(directory: Path, batches: int = 12) -> Log:
    """Several segments; the last two have a few batches each."""
    log = open_log(directory, small_config(segment_bytes=700))
    sequence = 0
    for at in range(batches):
        count = at % 3 + 1
        append(
            log, batch_of([b"%d-%d" % (at, n) for n in range(count)], producer=(7, 0, sequence)), leader_epoch=at // 4
        )
        sequence += count
    return log


def names_in(log: Log) -> list[str]:
    """The names of the files in the log's directory."""
    return [path.name for path in Path(log.directory).iterdir()]
