"""Locks a cluster's directory for one supervisor: two locks, which the kernel releases when their holders have ended.

`.lock` belongs to the supervisor alone. It is the name of a log directory's lock as well, so a broker whose log
directory this is does not run at the same time. `.nodes.lock` belongs to the supervisor and, inherited, to each of its
nodes: nodes end after a supervisor that was killed, and the next one waits for them. Process ids are only shown.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from barnabas.broker.holders import holder_of_lock
from barnabas.storage import layout
from barnabas.storage.system_calls import lock
from barnabas.supervise.plan import PlanError

NODES = ".nodes.lock"
POLL_S = 0.05
"""How often the lock of nodes that end is tried, seconds."""
NODE_LOCKS = (layout.LOCK, f"logs/{layout.LOCK}")
"""The locks of a node's own log directory: ours, Kafka's."""


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
        deadline, has_told = time.monotonic() + patience_s, False
        while not lock(self._nodes):
            if not has_told:
                say(f"the nodes of {self._directory} are waited for: they end, since their supervisor was killed")
                has_told = True
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
            paths = [self._directory / name / one for one in NODE_LOCKS]
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
