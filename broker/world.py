"""What a broker uses of the machine, and a test replaces: clocks, files, threads that wait for disks, randomness.

`Server` and the builders take one `World`; no part below them has a clock, files or randomness of its own.
The network is no part of it: connections to other nodes have the TLS of a listener, so the builders of members take
`connect` beside it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import trio

from barnabas.broker.event_loop.disk_threads import DiskExecutor, DiskThreads
from barnabas.broker.event_loop.loop import Loop
from barnabas.storage.files import Files


def wall_clock_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def running_clock() -> Callable[[], float]:
    """The clock of the running event loop, at half the cost of `trio.current_time`, which looks it up at each call."""
    return trio.lowlevel.current_clock().current_time


@dataclass(frozen=True, eq=False, repr=False)
class World:
    """The real one without arguments, which needs a running event loop unless `now` is another clock."""

    files: Files = field(default_factory=Files)
    disk: DiskExecutor = field(default_factory=DiskThreads)
    """Runs what waits for a disk. A server closes its threads."""
    flushes: DiskExecutor | None = None
    """Runs the flushes of partitions; None: as `disk`."""
    now: Callable[[], float] = field(default_factory=running_clock)
    """The monotonic clock of deadlines, seconds."""
    now_ms: Callable[[], int] = wall_clock_ms
    """The wall clock of record timestamps, ms since 1970."""
    random_bytes: Callable[[int], bytes] = os.urandom
    """The source of the ids, salts and nonces that the broker creates."""
    make_loop: Callable[[Callable[[], float], Callable[[], int]], Loop] = Loop
    """Makes the loop of both clocks: one whose clock is controlled, in place of the usual one."""
