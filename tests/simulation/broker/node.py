"""The broker of a run: the real one on a recording disk. It crashes at any operation and restarts on what remains.

A crash in the middle of a turn leaves some of the turn's operations on the disk and sends none of its responses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.config.load import load
from barnabas.broker.start.builder import open_broker
from barnabas.wire.errors import KafkaError
from tests.simulation.node import PATHS, Errors, Node
from tests.support.disks.faulty_disk import Fault
from tests.support.disks.survivors import Kind

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from tests.simulation.environment import Environment


class Connections(Protocol):
    """The connections of the broker's clients."""

    def send_responses(self) -> None:
        """Send what the broker has written to the connections in this turn."""

    def break_all(self) -> None:
        """Break every connection, because the broker has crashed."""


class SimulatedNode(Node):
    """One broker and its restarts; `incarnation` is the number of starts."""

    checkpoint_s = 5.0
    disk_errors = OSError

    def __init__(self, environment: Environment, settings: Mapping[str, str]) -> None:
        own = {"listeners": "PLAINTEXT://127.0.0.1:0", "barnabas.log.sync": "always", **settings}
        super().__init__(environment, own, Errors())
        self.crashes_in_next_turn = False
        self.after_turn: list[Callable[[], None]] = []
        self.at_start: list[Callable[[], None]] = []
        self.at_crash: list[Callable[[], None]] = []
        self.connections: Connections | None = None

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
        self._write_checkpoints_later()
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
        self.incarnation += 1
        self.broker = open_broker(load(self._settings, {}, None, "dev"), PATHS, self._world())
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
        self._keep_on_disk(self._environment.random.choice(list(Kind)), cut)
        self.broker = None

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

    def _run_turn(self, broker: Broker, work: Callable[[], object]) -> None:
        environment = self._environment
        before = len(self._disk.operations)
        work()
        broker.loop.end_turn()
        self.errors.check()
        if self.crashes_in_next_turn and len(self._disk.operations) > before:
            self.crash(environment.random.randint(before, len(self._disk.operations)))
            return
        if broker.halt_reason is not None and self._disk.failed:
            environment.trace.note("broker halted", broker.halt_reason)
            self.crash()
            return
        assert broker.halt_reason is None, broker.halt_reason
        if self.connections is not None:
            self.connections.send_responses()
        with self._disk.paused():
            for callback in self.after_turn:
                callback()
