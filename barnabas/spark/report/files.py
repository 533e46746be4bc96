"""The files that a run has written: their number and bytes, from the log of files that Spark keeps beside them.

`_spark_metadata` has a file for each batch, and now and then one `N.compact` with all entries up to batch N.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from pyarrow import fs

LOG = "_spark_metadata"


class Files(NamedTuple):
    """What was written."""

    number: int
    size: int
    """Bytes."""


def files_since(directory: str, since: datetime) -> Files | None:
    """The files written since a time; None if there is no log of files, or it cannot be read."""
    try:
        if "://" in directory:
            files, root = fs.FileSystem.from_uri(directory.replace("s3a://", "s3://"))
        else:
            files, root = fs.LocalFileSystem(), str(Path(directory).resolve())
        found = files.get_file_info(fs.FileSelector(f"{root}/{LOG}"))
        logs = [info.path for info in found if _is_log(info, since)]
        entries = {path: size for log in logs for path, size in _entries(files, log, since)}
    except (OSError, ValueError):
        return None
    return Files(len(entries), sum(entries.values()))


def _is_log(info: fs.FileInfo, since: datetime) -> bool:
    """Whether this is the log of batches, written since then."""
    is_batch = info.base_name.removesuffix(".compact").isdecimal()
    return is_batch and (info.mtime is None or info.mtime.timestamp() >= int(since.timestamp()))


def _entries(files: fs.FileSystem, path: str, since: datetime) -> list[tuple[str, int]]:
    with files.open_input_stream(path) as file:
        lines = bytes(file.read()).decode().splitlines()[1:]
    entries = [json.loads(line) for line in lines]
    since_ms = int(since.timestamp()) * 1000
    return [(entry["path"], entry["size"]) for entry in entries if entry["modificationTime"] >= since_ms]
