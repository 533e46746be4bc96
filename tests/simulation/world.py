"""One run: a broker, a network and clients, in one thread, on one clock, from one seed.

After every turn of the broker the invariants are checked. After `ACTIVE_S` at most everything heals, and after further
`HEALED_S` nothing may be under way any more (rules section 5.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from barnabas.wire.errors import KafkaError
from tests.simulation.clock import Clock
from tests.simulation.faults import Faults
from tests.simulation.network import Network
from tests.simulation.node import Node
from tests.simulation.process import Process
from tests.simulation.trace import Trace

ACTIVE_S = 30.0
HEALED_S = 60.0
SLICE_S = 5.0


class World:
    """Everything there is in a run."""

    def __init__(
        self, name: str, settings: Mapping[str, str], faults: Faults | None = None, *, is_told: bool = False
    ) -> None:
        self.random = Random(name)
        self.clock = Clock()
        self.trace = Trace(self.clock, is_kept=is_told)
        self.faults = faults or Faults.chosen(self.random)
        self.network = Network(self)
        self.node = Node(self, settings)
        self.is_healed = False
        self.late_ends_of_generation_1 = False
        """Whether an EndTxn of KIP-98 may meet a later transaction, which nobody can tell apart then (T9)."""
        self.processes: dict[str, Process] = {}
        """The last ones of each name."""
        self.all_processes: list[Process] = []
        """Also those that were replaced, and go on."""
        self.mortal: set[str] = set()
        """Those that nobody has to start again."""
        self.gone: set[str] = set()
        """Those that nobody will start again."""
        self._restarts = 0
        """How many are about to be started again."""
        self._starters: dict[str, Callable[[Process], None]] = {}

    # ---- processes

    def run_process(self, name: str, start: Callable[[Process], None]) -> None:
        """Start a process, and again and again whenever it was killed; `start` gives it its tasks."""
        self._starters[name] = start
        process = self.processes[name] = Process(self, name)
        self.all_processes.append(process)
        start(process)

    def kill(self, name: str, *, restart_s: float) -> None:
        """Kill a process; somebody starts it again."""
        self.processes[name].kill()
        self._restarts += 1

        def restart() -> None:
            self._restarts -= 1
            self.run_process(name, self._starters[name])

        self.clock.after(restart_s, restart)

    def give_up(self, process: Process) -> None:
        """A process finds that it may not go on; if there is no other of its name, somebody starts it again."""
        if self.processes[process.name] is process:
            self.kill(process.name, restart_s=1.0)
        else:
            process.kill()

    def replace(self, name: str) -> None:
        """Start a process anew though the old one, which somebody has taken for dead, goes on."""
        self.run_process(name, self._starters[name])

    # ---- time

    def run(self, seconds: float, is_over: Callable[[], bool] = lambda: False) -> None:
        """Let time pass, until all is over at the latest."""
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
        """Spread crashes, kills and pauses over the time until all heals."""
        faults, random = self.faults, self.random
        plans: list[tuple[int, Callable[[], None]]] = [
            (faults.broker_crashes, self._crash_broker),
            (faults.client_kills, self._kill_somebody),
            (faults.client_pauses, self._pause_somebody),
            (faults.broker_pauses, lambda: self.node.pause(random.choice((0.5, 3.0)))),
        ]
        for count, deed in plans:
            for _ in range(count):
                self.clock.after(random.expovariate(1 / 4.0), self._unless_healed(deed))

    def _unless_healed(self, deed: Callable[[], None]) -> Callable[[], None]:
        return lambda: None if self.is_healed else deed()

    def _crash_broker(self) -> None:
        if self.node.is_up and self.random.random() < 0.5:
            self.node.crash()
        else:
            self.node.crashes_in_next_turn = True

    def _kill_somebody(self) -> None:
        name = self.random.choice(sorted(self._starters))
        if not self.processes[name].is_alive:
            return
        if name in self.mortal and self.random.random() < 0.3:
            self.gone.add(name)
            self.processes[name].kill()
        elif self.random.random() < 0.3:
            self.replace(name)
        else:
            self.kill(name, restart_s=self.random.choice((0.0, 0.5, 5.0)))

    def _pause_somebody(self) -> None:
        self.processes[self.random.choice(sorted(self._starters))].pause(self.random.choice((1.0, 6.0, 20.0)))

    def settle(self, check: Callable[[], None], still_s: float = 0.0) -> None:
        """Heal, and wait until `check` passes, for `HEALED_S` at most; after a while more it must pass again."""
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
        """Whether nothing is left of what went wrong."""
        asleep = any(process.is_asleep for process in self.all_processes)
        return not self._restarts and not asleep and self.clock.now >= self.network.quiet_at

    def heal(self) -> None:
        """From here on nothing goes wrong; who stands still goes on."""
        self.is_healed = True
        self.faults.heal()
        self.node.crashes_in_next_turn = False
        self.trace.note("healed")
