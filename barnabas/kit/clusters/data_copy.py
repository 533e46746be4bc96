"""Copies of a broker's log directory that load as after a clean stop, made while it serves, between two turns.

Files that never change again are hard links: closed segments with their indexes, snapshots, checkpoints. Files of the
active segments are copied, sharing their blocks where the file system can. Nothing is synced. Where hard links are not
possible, as on another file system, everything is copied.

A cluster with groups and transactions has a hundred logs without records. The content of their directories is
known without copying: they are only looked at in the turn, and made in a thread after it (`EmptyLogs`).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.kit.errors import ControlError
from barnabas.storage import layout
from barnabas.storage.directories.checkpoints import OffsetCheckpoint
from barnabas.storage.files import UnsyncedFiles

if TYPE_CHECKING:
    from barnabas.storage.directories.log_dirs import LogDirs
    from barnabas.storage.log import Log

_UNFINISHED: Final = (layout.DELETED_SUFFIX, layout.CLEANED_SUFFIX, layout.SWAP_SUFFIX, layout.TEMPORARY_SUFFIX)


class EmptyLogs:
    """Directories of logs without data, which are not made yet."""

    def __init__(self) -> None:
        self._files: dict[Path, list[str]] = {}
        self._metadata: dict[Path, bytes] = {}

    def add(self, source: Path, target: Path, names: Collection[str]) -> None:
        """Add a directory with these files, which are empty, but for `partition.metadata`."""
        self._files[target] = [name for name in names if name != layout.PARTITION_METADATA]
        if layout.PARTITION_METADATA in names:
            self._metadata[target] = (source / layout.PARTITION_METADATA).read_bytes()

    def make(self) -> None:
        """Make them. OSError."""
        for target, names in self._files.items():
            target.mkdir(mode=0o700)
            for name in names:
                (target / name).touch()
            if target in self._metadata:
                (target / layout.PARTITION_METADATA).write_bytes(self._metadata[target])


def copy_open_logs(log_dirs: LogDirs, target: Path, empty: EmptyLogs, broker_epoch: int = -1) -> None:
    """Copy the data of a broker without work in progress into a new directory, but for its `empty` logs.

    `broker_epoch` is the epoch of its registration in a cluster: the copy claims to have all data of then. ControlError
    if it has several directories.
    """
    if len(log_dirs.dirs) != 1:
        raise ControlError("Snapshots are of brokers with one log directory")
    source = Path(log_dirs.dirs[0].path)
    for log in log_dirs.logs.values():
        _write_what_is_in_memory(log)
    log_dirs.files.publish()
    copy_what_has_data(source, target, empty)
    files, logs = UnsyncedFiles(), log_dirs.logs
    offsets = {
        layout.RECOVERY_POINT_CHECKPOINT: {key: log.log_end_offset for key, log in logs.items()},
        layout.LOG_START_CHECKPOINT: {key: log.log_start_offset for key, log in logs.items() if log.log_start_offset},
        layout.REPLICATION_CHECKPOINT: {key: log.high_watermark for key, log in logs.items()},
    }
    for name, values in offsets.items():
        OffsetCheckpoint(files, f"{target}/{name}").write(values)
    marker = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    (target / layout.CLEAN_SHUTDOWN).write_text(marker, encoding="ascii")


def _write_what_is_in_memory(log: Log) -> None:
    """Write indexes, producers and leader epochs, as a clean stop does, but for the syncs; the log stays in use."""
    job = log.start_close()
    if job is not None:
        job.install_epochs()


def copy_data(source: Path, target: Path, *, may_link: bool = True) -> None:
    """Copy a log directory into a new one. With `may_link` files that never change again are hard links."""
    empty = EmptyLogs()
    copy_what_has_data(source, target, empty, may_link=may_link)
    empty.make()


def copy_what_has_data(source: Path, target: Path, empty: EmptyLogs, *, may_link: bool = True) -> None:
    """The same, but for the `empty` logs."""
    with os.scandir(source) as entries:
        for entry in entries:
            if entry.is_file() and entry.name != layout.LOCK:
                _copy(entry.path, f"{target}/{entry.name}")
            elif layout.parse_partition_dir(entry.name) is not None:
                _copy_log(Path(entry.path), target / entry.name, empty, may_link=may_link)


def _copy_log(source: Path, target: Path, empty: EmptyLogs, *, may_link: bool) -> None:
    with os.scandir(source) as entries:
        files = [entry for entry in entries if not entry.name.endswith(_UNFINISHED)]
    names = [file.name for file in files]
    if not any(file.stat().st_size for file in files if file.name != layout.PARTITION_METADATA):
        empty.add(source, target, names)
        return
    target.mkdir(mode=0o700)
    active = _active_segment(names)
    for name in names:
        path, copy = f"{source}/{name}", f"{target}/{name}"
        is_appended_to = name.startswith(active) and name.endswith(layout.SEGMENT_SUFFIXES)
        if is_appended_to or not may_link or not _link(path, copy):
            _copy(path, copy)


def _active_segment(names: Iterable[str]) -> str:
    """The digits that the names of the active segment's files begin with."""
    return max((name[: layout.OFFSET_DIGITS] for name in names if name.endswith(layout.LOG_SUFFIX)), default="-")


def _link(path: str, copy: str) -> bool:
    try:
        os.link(path, copy)
    except OSError:  # another file system, or one without hard links
        return False
    return True


def _copy(path: str, copy: str) -> None:
    """Copy a file in the kernel, which shares its blocks where the file system can."""
    if not hasattr(os, "copy_file_range"):
        shutil.copyfile(path, copy)
        return
    with open(path, "rb") as source, open(copy, "wb") as target:
        remaining = os.fstat(source.fileno()).st_size
        while remaining > 0:
            try:
                count = os.copy_file_range(source.fileno(), target.fileno(), remaining)
            except OSError:  # between file systems of different kinds
                source.seek(os.lseek(target.fileno(), 0, os.SEEK_CUR))
                shutil.copyfileobj(source, target)
                return
            if not count:
                return
            remaining -= count
