"""A node of a run: a real broker or controller on a recording disk, which loses what a power failure may take.

Everything happens in turns, as in the broker's own loop: bytes are received, a timer fires or a sync completes, then
the work deferred to the end of the turn is done, then the responses are sent. `tests.simulation.broker.node` is a
broker that is its own controller, `tests.simulation.cluster.node` a node of a cluster.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from math import inf
from typing import TYPE_CHECKING

from barnabas.storage import layout
from tests.support.disks.faulty_disk import FaultyDisk
from tests.support.disks.survivors import Kind, Survivors
from tests.support.world import simulated_world

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.broker.world import World
    from tests.simulation.environment import Environment

SYNC_S = (0.0002, 0.02)
PATHS = ("/data",)


class Node(ABC):
    """One node and its restarts."""

    checkpoint_s: float
    """How often checkpoints are written."""
    disk_errors: type[Exception]
    """The errors of work for the disk that the broker is told; others end the run."""

    def __init__(self, environment: Environment, settings: Mapping[str, str], errors: Errors) -> None:
        self._environment = environment
        self._clock = environment.clock
        self._settings = settings
        self.errors = errors
        self.incarnation = 0
        """Changes with each start."""
        self.broker: Broker | None = None
        self._disk = FaultyDisk()
        self._resumes_at = 0.0

    @abstractmethod
    def _run_turn(self, broker: Broker, work: Callable[[], object]) -> None:
        """Do the work, end the turn, and send the responses."""

    @property
    def is_up(self) -> bool:
        """Whether the process is running."""
        return self.broker is not None

    def _world(self) -> World:
        """The run's clock and randomness, the node's disk; work for the disk is done in parallel to the loop."""
        environment = self._environment
        return simulated_world(environment, self, files=self._disk, random_bytes=environment.random.randbytes)

    def _keep_on_disk(self, kind: Kind, operations: int | None = None) -> None:
        """Have a disk with what this kind of failure leaves of the operations, or of the first ones."""
        survivors = Survivors(self._disk)
        for operation in self._disk.operations[:operations]:
            survivors.take(operation)
        self._disk = FaultyDisk(survivors.image(kind, self._environment.random))

    def pause(self, seconds: float) -> None:
        """Suspend the process for `seconds` (SIGSTOP)."""
        self._resumes_at = max(self._resumes_at, self._clock.now + seconds)

    # ---- turns

    def turn_with(self, work: Callable[[], object]) -> None:
        """Run one turn of the node's loop with this work, when it is not paused."""
        if self.broker is None:
            return
        if self._clock.now < self._resumes_at:
            incarnation = self.incarnation
            later = self._resumes_at - self._clock.now
            self._clock.after(later, lambda: self.turn_with(work) if self.incarnation == incarnation else None)
            return
        self._run_turn(self.broker, work)

    def next_deadline(self) -> float:
        """When the next timer of the node is due, or infinity."""
        return inf if self.broker is None else max(self.broker.loop.timers.next_deadline(), self._resumes_at)

    def fire_timers(self) -> None:
        """Fire the timers that are due."""
        broker = self.broker
        if broker is not None:
            self.turn_with(lambda: broker.loop.timers.fire(self._clock.now))

    def submit(self, work: Callable[[], None], then: Callable[[Exception | None], None]) -> None:
        """Run work that waits for the disk in parallel to the loop, with a random duration."""
        incarnation = self.incarnation

        def run() -> None:
            if self.incarnation == incarnation and self.broker is not None:
                failure: Exception | None = None
                try:
                    work()
                except self.disk_errors as error:
                    failure = error
                self.turn_with(lambda: then(failure))

        self._clock.after(self._environment.random.uniform(*self._sync_s()), run)

    def _sync_s(self) -> tuple[float, float]:
        """The shortest and the longest duration of work for the disk, seconds."""
        return SYNC_S

    def _write_checkpoints_later(self) -> None:
        """Write recovery points and high watermarks periodically, as the broker does, until the process ends."""
        incarnation = self.incarnation
        self._clock.after(self.checkpoint_s, lambda: self._write_checkpoints(incarnation))

    def _write_checkpoints(self, incarnation: int) -> None:
        broker = self.broker
        if self.incarnation != incarnation or broker is None:
            return
        for name in (layout.RECOVERY_POINT_CHECKPOINT, layout.REPLICATION_CHECKPOINT):
            for log_dir, write in broker.log_dirs.plan_checkpoint(name):
                try:
                    write()
                except OSError as error:
                    broker.log_dir_failures.report(log_dir, f"checkpoint {name}", error)
        self.turn_with(self._check_disk)
        self._clock.after(self.checkpoint_s, lambda: self._write_checkpoints(incarnation))

    def _check_disk(self) -> None:
        """Close directories that have failed, and open partitions again, as the broker's background jobs do."""
        assert self.broker is not None
        self.broker.log_dir_failures.check()
        self.broker.partitions.reopen(self.broker.image)


class Errors(logging.Handler):
    """Collects unexpected exceptions that the broker logs during a run."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._bug: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Store the first one."""
        if record.exc_info is not None and self._bug is None:
            self._bug = record.exc_info[1]

    def __enter__(self) -> None:
        logging.getLogger("kafka").addHandler(self)

    def __exit__(self, *_: object) -> None:
        logging.getLogger("kafka").removeHandler(self)

    def check(self) -> None:
        """Raise AssertionError for a logged exception."""
        if self._bug is not None:
            bug, self._bug = self._bug, None
            raise AssertionError(f"the broker failed: {bug!r}") from bug
