"""The directory of a cluster, as its supervisor takes it: made, locked, and not the log directory of one broker.

A log directory of one broker has `meta.properties`, or partitions. `barnabas serve` refuses a cluster's in turn
(`storage.directories.foreign`). There are two locks, which the kernel releases when their holders have ended.
`.lock` belongs to the supervisor alone. It is the name of a log directory's lock as well, so a broker whose log
directory this is does not run at the same time. `.nodes.lock` belongs to the supervisor and, inherited, to each of its
nodes: nodes end after a supervisor that was killed, and the next one waits for them. Process ids are only shown.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from barnabas.broker.start.holders import holder_of_lock
from barnabas.storage import layout
from barnabas.storage.directories.foreign import partition_in
from barnabas.storage.files import Files
from barnabas.storage.system_calls import lock
from barnabas.supervise.plan import PlanError
from barnabas.terminal.notes import note

NODES = ".nodes.lock"
POLL_S = 0.05
"""How often the lock of nodes that end is tried, seconds."""
NODE_LOCKS = (layout.LOCK, f"logs/{layout.LOCK}")
"""The locks of a node's own log directory: ours, Kafka's."""


def take_directory(directory: str, patience_s: float) -> ClusterLock:
    """Make the directory if it is missing, and lock it; nodes of an earlier supervisor are waited for.

    PlanError if it is the directory of one broker, or another process has it. OSError.
    """
    _make(Path(directory).absolute())
    _refuse_log_directory(directory)
    lock = ClusterLock(directory)
    lock.take(patience_s, lambda text: note(f"barnabas serve: {text}"))
    try:
        _refuse_log_directory(directory)  # a broker may have had the lock until now
    except BaseException:
        lock.release()
        raise
    return lock


def _make(path: Path) -> None:
    """Make a directory durable with those above it, so that a power failure does not remove the cluster."""
    missing = [parent for parent in (path, *path.parents) if not parent.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for created in missing:
        Files().sync_dir(str(created.parent))


def _refuse_log_directory(directory: str) -> None:
    files = Files()
    if files.exists(f"{directory}/{layout.META_PROPERTIES}"):
        data: str | None = layout.META_PROPERTIES
    else:
        data = partition_in(files, directory, may_be_empty=False)
    if data is None:
        return
    if files.exists(f"{directory}/{layout.CLUSTER_STATE}"):
        raise PlanError(
            f"{directory} has the data of one broker ({data}) beside that of a cluster: move {layout.CLUSTER_STATE} "
            "and the directories of the nodes to a directory of their own"
        )
    raise PlanError(
        f"{directory} has the data of one broker ({data}), not of a cluster: give --data-dir another directory, or "
        "start the broker with 'barnabas serve' without --brokers"
    )


class ClusterLock:
    """The locks of one directory; a supervisor has them from `take` to `release`, or until it ends."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        self._own = self._nodes = -1

    def take(self, patience_s: float, say: Callable[[str], object]) -> None:
        """Take both. PlanError if another process has the directory, or nodes do not end in time. OSError."""
        self._own = self._open(layout.LOCK)
        if not lock(self._own):
            self.release()
            path = self._directory / layout.LOCK
            holder = holder_of_lock(str(path)) or _written_in(path)
            raise PlanError(f"a cluster or a broker runs already in {self._directory}{holder}")
        os.ftruncate(self._own, 0)
        os.pwrite(self._own, f"{os.getpid()}\n".encode(), 0)  # for systems that do not name the holder of a lock
        self._nodes = self._open(NODES)
        deadline, is_noted = time.monotonic() + patience_s, False
        while not lock(self._nodes):
            if not is_noted:
                say(f"waiting for the nodes of {self._directory}: they end, since their supervisor was killed")
                is_noted = True
            if time.monotonic() > deadline:
                self.release()
                raise PlanError(
                    f"{self._nodes_that_run()} of {self._directory}, whose supervisor was killed, still run"
                )
            time.sleep(POLL_S)

    def descriptors(self) -> list[int]:
        """The descriptors that nodes must close: they keep the other lock."""
        return [] if self._own < 0 else [self._own]

    def release(self) -> None:
        """Release both locks."""
        for descriptor in (self._own, self._nodes):
            if descriptor >= 0:
                os.close(descriptor)
        self._own = self._nodes = -1

    def _open(self, name: str) -> int:
        return os.open(self._directory / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _nodes_that_run(self) -> str:
        """The nodes whose log directories are locked, with their process ids if the system names them."""
        running = []
        for name in node_directories(self._directory):
            paths = [self._directory / name / lock_file for lock_file in NODE_LOCKS]
            if any(path.exists() and not _is_free(path) for path in paths):
                running.append(name + "".join(holder_of_lock(str(path)) for path in paths))
        return ", ".join(running) or "nodes"


def node_directories(directory: Path) -> list[str]:
    """The names of directories in a cluster's that have the name of a node's, in order."""
    entries = directory.iterdir() if directory.is_dir() else ()
    return sorted(entry.name for entry in entries if layout.is_node_dir(entry.name) and entry.is_dir())


def _is_free(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        return lock(descriptor)
    finally:
        os.close(descriptor)


def _written_in(path: Path) -> str:
    try:
        text = path.read_text().strip()
    except (OSError, ValueError):
        return ""
    return f" (process {text})" if text.isdecimal() else ""
