"""Snapshots of virtual clusters: a directory each, and the clock as it was. They are there until their process ends.

A snapshot has everything that the brokers have written: topics, records, configs, groups, offsets, open transactions,
the state of producers, ACLs, users. Connections are no part of it.
"""

from __future__ import annotations

import os
import tempfile
from itertools import count
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

import trio

from barnabas.control.data_copy import copy_data, copy_open_logs
from barnabas.control.errors import ControlError, NotFoundError

if TYPE_CHECKING:
    from barnabas.control.clock import ClockState
    from barnabas.storage.log_dirs import LogDirs


class Snapshot:
    """What a cluster was at one moment."""

    def __init__(self, folder: Path, clock: ClockState, keys: dict[str, str], seed: int | None) -> None:
        self.folder = folder
        self.clock = clock
        self.keys = keys
        """The config keys that the cluster was opened with."""
        self.seed = seed
        """The seed for the ids of a fork; not that of the cluster, whose ids were given out already."""

    def copy_to_temporary(self) -> str:
        """A copy for a broker that removes it at its end."""
        path = _new_path()
        copy_data(self.folder, path)
        return str(path)

    def save(self, path: Path) -> None:
        """Copy it to a directory that does not exist yet. ControlError if that cannot be written."""
        try:
            copy_data(self.folder, path, may_link=False)
        except OSError as error:
            raise ControlError(f"Cannot save the snapshot as {path}: {error.strerror}") from error


class Snapshots:
    """The snapshots of a process, by number."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._snapshots: dict[int, Snapshot] = {}

    def __getitem__(self, number: int) -> Snapshot:
        """A snapshot. NotFoundError if there is none with this number."""
        try:
            return self._snapshots[number]
        except KeyError:
            raise NotFoundError(f"There is no snapshot {number}: it was removed, or never taken") from None

    def take(self, log_dirs: LogDirs, clock: ClockState, keys: dict[str, str], seed: int | None) -> int:
        """Take a snapshot of a cluster in which no work is in progress; its number."""
        folder = _new_path()
        try:
            copy_open_logs(log_dirs, folder)
        except BaseException:
            rmtree(folder, ignore_errors=True)
            raise
        number = next(self._numbers)
        self._snapshots[number] = Snapshot(folder, clock, keys, seed)
        return number

    def remove(self, number: int) -> None:
        """Remove a snapshot with its directory."""
        rmtree(self[number].folder, ignore_errors=True)
        del self._snapshots[number]

    async def remove_at_end(self) -> None:
        """Wait to be cancelled, and remove all."""
        try:
            await trio.sleep_forever()
        finally:
            for number in list(self._snapshots):
                self.remove(number)


def _new_path() -> Path:
    """The path of a directory that does not exist yet, on the file system that temporary data is on."""
    return Path(f"{os.environ.get('TMPDIR') or tempfile.gettempdir()}/barnabas-{os.urandom(6).hex()}")
