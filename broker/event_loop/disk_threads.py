"""Waiting for disks: blocking work runs in threads, which report its end to the event loop through a pipe.

Whatever may wait for a disk while the broker serves (syncs, checkpoints, removal of large files) is submitted here.
Tests and simulations replace it by an executor that they control.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

import trio

from barnabas.broker.event_loop.guarded import call_guarded


class DiskExecutor(Protocol):
    """Runs work that waits for a disk outside of the event loop."""

    def submit(self, work: Callable[[], None], then: Callable[[Exception | None], None]) -> None:
        """Run `work` somewhere, then call `then` in the event loop, with the exception that `work` has raised."""


class DiskThreads:
    """Threads that wait for disks, and a pipe that wakes the reactor, which may be waiting outside of trio."""

    def __init__(self) -> None:
        self._done: deque[tuple[Callable[[Exception | None], None], Exception | None, float]] = deque()
        self.on_waited: Callable[[float], None] | None = None
        """Called with the time that each work has taken, seconds; for metrics."""
        self._running = 0
        self._read_end, self._write_end = os.pipe()  # not inherited; pipe2 is not on every system
        os.set_blocking(self._read_end, False)
        os.set_blocking(self._write_end, False)

    def submit(self, work: Callable[[], None], then: Callable[[Exception | None], None]) -> None:
        """Run `work` in a thread."""

        def run() -> None:
            failure = None
            began = 0.0 if self.on_waited is None else time.monotonic()
            try:
                work()
            except Exception as error:
                failure = error
            self._done.append((then, failure, began and time.monotonic() - began))
            os.write(self._write_end, b"\0")

        trio.lowlevel.start_thread_soon(run, _ignore, "barnabas-disk")
        self._running += 1

    @property
    def is_idle(self) -> bool:
        """Whether no work is in progress."""
        return not self._running

    def fileno(self) -> int:
        """The descriptor that is readable when `collect` has something to do."""
        return self._read_end

    def collect(self) -> None:
        """Call the callbacks of the work that is done."""
        try:
            os.read(self._read_end, 4096)
        except BlockingIOError:
            pass
        while self._done:
            self._running -= 1
            then, failure, seconds = self._done.popleft()
            if self.on_waited is not None:
                self.on_waited(seconds)
            call_guarded("What follows work in a thread", then, failure)

    def close(self) -> None:
        """Close the pipe; while a thread is still running it stays open until the process ends."""
        if not self._running:
            os.close(self._read_end)
            os.close(self._write_end)


def _ignore(_: object) -> None:
    """The thread reports through the pipe."""
