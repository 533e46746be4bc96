"""Snapshots of virtual clusters: a directory each, and the clock as it was. They are there until their process ends.

A snapshot has everything that the brokers have written: topics, records, configs, groups, offsets, open transactions,
the state of producers, ACLs, users, but not connections. A snapshot of several brokers has a directory for each node,
named as in `barnabas serve --brokers`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import trio

from barnabas.kit.clusters.data_copy import EmptyLogs, copy_data
from barnabas.kit.clusters.directories import new_directory, new_path, remove
from barnabas.kit.errors import NotFoundError
from barnabas.supervise.options import OURS
from barnabas.supervise.state import ClusterState, NodeState, write

if TYPE_CHECKING:
    from barnabas.kit.clusters.clock import ClockState
    from barnabas.kit.clusters.options import Options


class Led(NamedTuple):
    """The leader of a partition, its in-sync replicas, and the offset up to which its records were committed."""

    leader: int
    isr: frozenset[int]
    high_watermark: int


class NodesState(NamedTuple):
    """The state of several brokers in a snapshot, beside their directories."""

    cluster_id: str
    directories: Mapping[int, str]
    """The names of the nodes' directories, by id."""
    running: tuple[int, ...]
    """The brokers that ran."""
    led: Mapping[tuple[str, int], Led]
    """By topic and index."""


class Snapshot:
    """The state of a cluster at one moment."""

    def __init__(self, folder: Path, options: Options, clock: ClockState, nodes: NodesState | None) -> None:
        self.folder = folder
        self.options = options
        """The options that a fork is opened with."""
        self.clock = clock
        self.nodes = nodes
        """None: one broker, whose directory the snapshot is."""

    async def copy_to_temporary(self) -> Path:
        """Make a copy, which the caller removes. ControlError if it cannot be written: nothing is left then."""
        path = new_path()

        def copy() -> None:
            with new_directory(path):
                self._copy(path, may_link=True)

        await trio.to_thread.run_sync(copy)  # the copied files do not change any more
        return path

    def save(self, path: Path) -> None:
        """Copy it to a directory that does not exist yet. ControlError if that cannot be written."""
        with new_directory(path):
            self._copy(path, may_link=False)
            if self.nodes is not None:
                _write_state(path, self.nodes.cluster_id, self.nodes.directories)

    def _copy(self, target: Path, *, may_link: bool) -> None:
        if self.nodes is None:
            copy_data(self.folder, target, may_link=may_link)
            return
        for name in self.nodes.directories.values():
            (target / name).mkdir(mode=0o700)
            copy_data(self.folder / name, target / name, may_link=may_link)


def _write_state(path: Path, cluster_id: str, directories: Mapping[int, str]) -> None:
    """Write `cluster.json`: with it the directory is one of `barnabas serve --brokers N --data-dir`. OSError.

    None of the nodes runs.
    """
    state = ClusterState(cluster_id, OURS, os.getpid(), control="")
    for node_id, name in directories.items():
        role = name.partition("-")[0]
        state.nodes.append(NodeState(node_id, role, "", str(path / name), str(path / f"{name}.log")))
    write(str(path), state)


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

    def numbers(self) -> list[int]:
        """The numbers of all snapshots, the oldest first."""
        return list(self._snapshots)

    async def take(
        self,
        options: Options,
        clock: ClockState,
        copy: Callable[[Path, EmptyLogs], None],
        nodes: NodesState | None = None,
    ) -> int:
        """Take a snapshot of a cluster in which no work is in progress; its number.

        `copy` fills the new directory in this turn, but for logs without data. ControlError if that cannot be written:
        nothing is left then.
        """
        folder = new_path()
        with new_directory(folder):
            empty = EmptyLogs()
            copy(folder, empty)
            await trio.to_thread.run_sync(empty.make)
        number = next(self._numbers)
        self._snapshots[number] = Snapshot(folder, options, clock, nodes)
        return number

    def remove(self, number: int) -> None:
        """Remove a snapshot with its directory."""
        folder = self[number].folder
        del self._snapshots[number]
        remove(folder)

    async def remove_at_end(self) -> None:
        """Wait to be cancelled, and remove all."""
        try:
            await trio.sleep_forever()
        finally:
            for number in list(self._snapshots):
                self.remove(number)
