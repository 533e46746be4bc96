"""The client processes of a run, and what happens to them: kills, pauses, successors that start while they run."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.clients.process import Links, Process
from tests.simulation.environment import Environment
from tests.simulation.faults import Faults


class Processes(Environment):
    """A run with client processes."""

    links: Links

    def __init__(self, name: str, faults: Faults | None = None, *, is_verbose: bool = False) -> None:
        super().__init__(name, faults, is_verbose=is_verbose)
        self.processes: dict[str, Process] = {}
        """The newest process of each name."""
        self.all_processes: list[Process] = []
        """All processes, including replaced ones that still run."""
        self.expendable: set[str] = set()
        """Names of processes that may be killed without a restart."""
        self.killed_for_good: set[str] = set()
        """Names of processes that were."""
        self._restarts = 0
        """How many restarts are pending."""
        self._starters: dict[str, Callable[[Process], None]] = {}

    def run_process(self, name: str, start: Callable[[Process], None]) -> None:
        """Start a process; it is restarted whenever it was killed. `start` spawns its tasks."""
        self._starters[name] = start
        process = self.processes[name] = Process(self, self.links, name, on_exit=self._exited)
        self.all_processes.append(process)
        start(process)

    def kill(self, name: str, *, restart_s: float) -> None:
        """Kill a process and restart it after `restart_s`."""
        self.processes[name].kill()
        self._restarts += 1

        def restart() -> None:
            self._restarts -= 1
            self.run_process(name, self._starters[name])

        self.clock.after(restart_s, restart)

    def _exited(self, process: Process) -> None:
        """A process has exited by itself; it is restarted unless there is a newer one of its name."""
        if self.processes[process.name] is process:
            self.kill(process.name, restart_s=1.0)
        else:
            process.kill()

    def replace(self, name: str) -> None:
        """Start another process of the same name while the old one still runs, as if it was considered dead."""
        self.run_process(name, self._starters[name])

    def kill_a_process(self) -> None:
        """Kill one of them: for good, with a restart, or while its successor already runs."""
        name = self.random.choice(sorted(self._starters))
        if not self.processes[name].is_alive:
            return
        if name in self.expendable and self.random.random() < 0.3:
            self.killed_for_good.add(name)
            self.processes[name].kill()
        elif self.random.random() < 0.3:
            self.replace(name)
        else:
            self.kill(name, restart_s=self.random.choice((0.0, 0.5, 5.0)))

    def pause_a_process(self) -> None:
        """Pause one of them."""
        self.processes[self.random.choice(sorted(self._starters))].pause(self.random.choice((1.0, 6.0, 20.0)))

    @property
    def processes_run(self) -> bool:
        """Whether no process is paused or waits for its restart."""
        return not self._restarts and not any(process.is_asleep for process in self.all_processes)
