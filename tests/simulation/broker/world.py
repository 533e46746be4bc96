"""One run: a broker, a network and clients, in one thread, on one clock, from one seed.

After every turn of the broker the invariants are checked. After at most `ACTIVE_S` all faults stop, and after another
`HEALED_S` everything must be complete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from barnabas.wire.errors import KafkaError
from tests.simulation.broker.network import Network
from tests.simulation.broker.node import SimulatedNode
from tests.simulation.clients.processes import Processes
from tests.simulation.faults import Faults
from tests.support.disks.faulty_disk import Fault

ACTIVE_S = 30.0
HEALED_S = 60.0
SLICE_S = 5.0


class World(Processes):
    """The broker, the network and the client processes of a run."""

    def __init__(
        self, name: str, settings: Mapping[str, str], faults: Faults | None = None, *, is_verbose: bool = False
    ) -> None:
        super().__init__(name, faults, is_verbose=is_verbose)
        self.node = SimulatedNode(self, settings)
        self.network = self.links = Network(self, self.node)
        self.disk_errors = 0
        """How often one operation of the broker's disk fails."""

    # ---- time

    def run(self, seconds: float, is_over: Callable[[], bool] = lambda: False) -> None:
        """Advance time by `seconds`, or until `is_over`."""
        clock, node = self.clock, self.node
        end = clock.now + seconds
        while not is_over():
            due, moment = node.next_deadline(), clock.next_moment()
            if min(due, moment) > end:
                clock.now = end
                return
            if due <= moment:
                clock.now = max(clock.now, due)
                node.fire_timers()
            else:
                clock.step()

    def plan_faults(self) -> None:
        """Schedule crashes, kills and pauses at random moments before the run heals."""
        faults, random = self.faults, self.random
        plans: list[tuple[int, Callable[[], None]]] = [
            (faults.broker_crashes, self._crash_broker),
            (faults.client_kills, self.kill_a_process),
            (faults.client_pauses, self.pause_a_process),
            (faults.broker_pauses, lambda: self.node.pause(random.choice((0.5, 3.0)))),
            (self.disk_errors, self._fail_disk),
        ]
        for count, fault in plans:
            for _ in range(count):
                self.clock.after(random.expovariate(1 / 4.0), self._unless_healed(fault))

    def _unless_healed(self, fault: Callable[[], None]) -> Callable[[], None]:
        return lambda: None if self.is_healed else fault()

    def _fail_disk(self) -> None:
        error = self.random.choice(("EMFILE", "ENOSPC", "short", "EIO"))
        self.node.fail_disk(Fault(self.random.randint(1, 8), error))

    def _crash_broker(self) -> None:
        if self.node.is_up and self.random.random() < 0.5:
            self.node.crash()
        else:
            self.node.crashes_in_next_turn = True

    def settle(self, check: Callable[[], None], still_s: float = 0.0) -> None:
        """Heal, wait until `check` passes, at most `HEALED_S`, and `still_s` later check again."""
        self.heal()
        end = self.clock.now + HEALED_S
        while self.clock.now < end:
            self.run(SLICE_S)
            try:
                check()
            except (AssertionError, KafkaError):
                continue
            if self._is_quiet():
                break
        self.run(still_s)
        check()

    def _is_quiet(self) -> bool:
        """Whether no fault has effects any more."""
        return self.processes_run and self.clock.now >= self.network.quiet_at

    def heal(self) -> None:
        """Stop all faults; paused processes resume."""
        self.is_healed = True
        self.faults.heal()
        self.node.crashes_in_next_turn = False
        self.node.heal()
        self.trace.note("healed")
