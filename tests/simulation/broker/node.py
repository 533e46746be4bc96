"""The broker of a run: the real one on a recording disk. It crashes at any operation and restarts on what remains.

Everything happens in turns, as in the broker's own loop: bytes are received, a timer fires or a sync completes, then
the work deferred to the end of the turn is done, then the responses are sent. A crash in the middle of a turn leaves
some of the turn's operations on the disk and sends none of its responses.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from math import inf
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.builder import open_broker
from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.config.load import load
from barnabas.storage import layout
from barnabas.wire.errors import KafkaError
from tests.support.disks.disk import Image
from tests.support.disks.faulty_disk import Fault, FaultyDisk
from tests.support.disks.survivors import Kind, Survivors
from tests.support.world import simulated_world

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from tests.simulation.environment import Environment

SYNC_S = (0.0002, 0.02)
CHECKPOINT_S = 5.0
PATHS = ("/data",)


class Connections(Protocol):
    """The connections of the broker's clients."""

    def send_responses(self) -> None:
        """Send what the broker has written to the connections in this turn."""

    def break_all(self) -> None:
        """Break every connection, because the broker has crashed."""


class SimulatedNode:
    """One broker and its restarts."""

    def __init__(self, environment: Environment, settings: Mapping[str, str]) -> None:
        self._environment = environment
        self._config = {"listeners": "PLAINTEXT://127.0.0.1:0", "barnabas.log.sync": "always", **settings}
        self.incarnation = 0
        """Number of starts."""
        self.broker: Broker | None = None
        self.crashes_in_next_turn = False
        self.after_turn: list[Callable[[], None]] = []
        self.at_start: list[Callable[[], None]] = []
        self.at_crash: list[Callable[[], None]] = []
        self.connections: Connections | None = None
        self._resumes_at = 0.0
        self.errors = Errors()
        self._disk = FaultyDisk()

    @property
    def is_up(self) -> bool:
        """Whether the broker is running."""
        return self.broker is not None

    # ---- start and crash

    def start(self) -> None:
        """Open the broker on the current disk."""
        environment = self._environment
        while environment.random.random() < environment.faults.crashes_at_start:
            self._try_to_open()
            self._power_failure(environment.random.randint(0, len(self._disk.operations)))
        if not self._try_to_open():
            self._power_failure(len(self._disk.operations))
            environment.clock.after(0.05, self.start)
            return
        environment.trace.note("broker started", self.incarnation)
        incarnation = self.incarnation
        environment.clock.after(CHECKPOINT_S, lambda: self._checkpoint(incarnation))
        with self._disk.paused():
            for callback in self.at_start:
                callback()

    def _try_to_open(self) -> bool:
        """Open the broker; False if the disk has failed meanwhile."""
        try:
            self._open()
        except (OSError, KafkaError) as error:
            if not self._disk.failed:
                raise
            self._environment.trace.note("broker cannot start", repr(error))
            return False
        assert self.broker is not None
        return self.broker.halt_reason is None

    def _open(self) -> None:
        environment = self._environment
        self.incarnation += 1
        self.broker = open_broker(
            load(self._config, {}, None, "dev"),
            PATHS,
            simulated_world(environment, self, files=self._disk, random_bytes=environment.random.randbytes),
        )
        self.broker.controller.register_broker([Endpoint("PLAINTEXT", "127.0.0.1", 9092)])
        self.broker.loop.end_turn()
        self.errors.check()

    def crash(self, at_operation: int | None = None) -> None:
        """The machine or the process stops. Clients notice it later."""
        environment = self._environment
        with self._disk.paused():
            for callback in self.at_crash:
                callback()
        operations = len(self._disk.operations)
        self._power_failure(operations if at_operation is None else at_operation)
        environment.trace.note("broker crashed", self.incarnation, operations)
        self.crashes_in_next_turn = False
        if self.connections is not None:
            self.connections.break_all()
        environment.clock.after(environment.random.choice((0.05, 1.0, 4.0)), self.start)

    def _power_failure(self, cut: int) -> None:
        random = self._environment.random
        survivors = Survivors(self._disk)
        for operation in self._disk.operations[:cut]:
            survivors.take(operation)
        kind = random.choice(list(Kind))
        image: Image = survivors.image(kind, random)
        self.broker = None
        self._disk = FaultyDisk(image)

    def pause(self, seconds: float) -> None:
        """Suspend the broker process for `seconds`."""
        self._resumes_at = max(self._resumes_at, self._environment.clock.now + seconds)

    def fail_disk(self, fault: Fault) -> None:
        """Let one of the next operations of the disk fail."""
        self._environment.trace.note("disk fails", *fault)
        self._disk.arm(fault)

    def heal(self) -> None:
        """No operation of the disk fails any more; offline partitions are served again after a restart."""
        self._disk.heal()
        if self.broker is not None and self.broker.partitions.offline:
            self.crash()

    # ---- turns

    def turn(self, work: Callable[[Broker], None]) -> None:
        """Run one turn of the broker's loop with this work."""
        environment = self._environment
        if self.broker is None:
            return
        if environment.clock.now < self._resumes_at:
            incarnation = self.incarnation
            later = self._resumes_at - environment.clock.now
            environment.clock.after(later, lambda: self.turn(work) if self.incarnation == incarnation else None)
            return
        before = len(self._disk.operations)
        work(self.broker)
        self.broker.loop.end_turn()
        self.errors.check()
        if self.crashes_in_next_turn and len(self._disk.operations) > before:
            self.crash(environment.random.randint(before, len(self._disk.operations)))
            return
        if self.broker.halt_reason is not None and self._disk.failed:
            environment.trace.note("broker halted", self.broker.halt_reason)
            self.crash()
            return
        assert self.broker.halt_reason is None, self.broker.halt_reason
        if self.connections is not None:
            self.connections.send_responses()
        with self._disk.paused():
            for callback in self.after_turn:
                callback()

    def next_deadline(self) -> float:
        """When the next timer of the broker is due, or infinity."""
        return inf if self.broker is None else max(self.broker.loop.timers.next_deadline(), self._resumes_at)

    def fire_timers(self) -> None:
        """Fire the timers that are due."""
        now = self._environment.clock.now
        self.turn(lambda broker: broker.loop.timers.fire(now) and None)

    def submit(self, work: Callable[[], None], then: Callable[[Exception | None], None]) -> None:
        """Run a sync in parallel to the loop, with a random duration."""
        incarnation = self.incarnation
        seconds = self._environment.random.uniform(*SYNC_S)

        def run() -> None:
            if self.incarnation == incarnation and self.broker is not None:
                failure = None
                try:
                    work()
                except OSError as error:
                    failure = error
                self.turn(lambda _: then(failure))

        self._environment.clock.after(seconds, run)

    def _checkpoint(self, incarnation: int) -> None:
        """Write recovery points and high watermarks periodically, as the broker does."""
        if self.incarnation != incarnation or self.broker is None:
            return
        write_checkpoints(self.broker)
        self.turn(check_disks)
        self._environment.clock.after(CHECKPOINT_S, lambda: self._checkpoint(incarnation))


def write_checkpoints(broker: Broker) -> None:
    """Write recovery points and high watermarks of all log directories; report the directories that fail."""
    for name in (layout.RECOVERY_POINT_CHECKPOINT, layout.REPLICATION_CHECKPOINT):
        for log_dir, write in broker.log_dirs.plan_checkpoint(name):
            try:
                write()
            except OSError as error:
                broker.log_dir_failures.report(log_dir, f"checkpoint {name}", error)


def check_disks(broker: Broker) -> None:
    """As the broker's background jobs do."""
    broker.log_dir_failures.check()
    broker.partitions.reopen(broker.image)


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
