"""What a test run has cost, as tables: by folder, the slowest tests, processes, idle workers; and the folders' budget.

The budget is a TOML file with a line for each folder: CPU seconds on a machine whose calibration (`costs.py`) is 1.0.
"""

from __future__ import annotations

import statistics
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

TOLERANCE = 1.3
LEAST_S = 2.0
"""A folder may always cost this much: the figures of short tests are coarse."""
SLOWEST = 40


@dataclass(frozen=True, slots=True)
class PhaseCost:
    """A phase of a test (setup, call or teardown); the CPU seconds of all three are in the last one."""

    nodeid: str
    worker: str
    cpu_s: float
    start: float
    stop: float
    """Seconds on the clock, since the epoch."""
    calibration: float = 1.0
    """CPU seconds of the loop of known length, a moment ago."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The budgets of folders, in CPU seconds on the machine of calibration 1.0."""

    folders: dict[str, float]

    @classmethod
    def read(cls, path: Path) -> Budget:
        """From a file. ValueError if it is not TOML with a table `cpu_seconds`."""
        try:
            return cls({name: float(value) for name, value in tomllib.loads(path.read_text())["cpu_seconds"].items()})
        except KeyError as error:
            raise ValueError(f"{path}: there is no table cpu_seconds") from error


def folder_of(nodeid: str) -> str:
    """`tests/wire` for tests/wire/test_frame.py::test_a; `tests` for a file that is in no folder below it."""
    parts = nodeid.partition("::")[0].split("/")
    return "/".join(parts[: min(2, len(parts) - 1)])


@dataclass(slots=True)
class CostReport:
    """The figures of a run."""

    cpu: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """By test."""
    clock: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """By test."""
    calibrated: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """By folder: the CPU seconds that a machine of calibration 1.0 needs."""
    processes: dict[str, tuple[int, float]] = field(default_factory=dict)
    """By kind: how many were started, and their CPU seconds."""
    _busy: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    _collections: list[float] = field(default_factory=list)
    _calibrations: list[float] = field(default_factory=list)

    def add(self, cost: PhaseCost) -> None:
        """Add a phase of a test."""
        self.cpu[cost.nodeid] += cost.cpu_s
        self.calibrated[folder_of(cost.nodeid)] += cost.cpu_s / cost.calibration
        self.clock[cost.nodeid] += cost.stop - cost.start
        self._busy[cost.worker].append((cost.start, cost.stop))

    def add_worker(self, collected_s: float, calibrations: list[float]) -> None:
        """Add the CPU seconds that a process needed until its first test, and its calibrations."""
        self._collections.append(collected_s)
        self._calibrations.extend(calibrations)

    @property
    def calibration(self) -> float:
        """The median of the calibrations, 1.0 if there was none."""
        return statistics.median(self._calibrations) if self._calibrations else 1.0

    def by_folder(self) -> dict[str, tuple[int, float, float]]:
        """For each folder: tests, CPU seconds, seconds on the clock."""
        sums: dict[str, tuple[int, float, float]] = {}
        for nodeid, cpu in self.cpu.items():
            number, cpu_s, clock_s = sums.get(folder_of(nodeid), (0, 0.0, 0.0))
            sums[folder_of(nodeid)] = (number + 1, cpu_s + cpu, clock_s + self.clock[nodeid])
        return sums

    def over(self, budget: Budget) -> list[str]:
        """A sentence for each folder that costs more than it may, or has no budget."""
        sentences = []
        for folder, needed in sorted(self.calibrated.items()):
            if needed <= LEAST_S:
                continue
            if folder not in budget.folders:
                sentences.append(f"{folder} costs {needed:.0f} CPU seconds and has no line in the budget")
            elif needed > max(LEAST_S, budget.folders[folder] * TOLERANCE):
                sentences.append(
                    f"{folder} costs {needed:.0f} CPU seconds, more than {TOLERANCE} times its budget of "
                    f"{budget.folders[folder]:.0f}"
                )
        return sentences

    def longest_idle(self) -> tuple[str, float]:
        """The worker that ran no test for the longest time in one piece, and that time in seconds."""
        everything = [interval for intervals in self._busy.values() for interval in intervals]
        if not everything:
            return ("none", 0.0)
        began, ended = min(start for start, _ in everything), max(stop for _, stop in everything)
        gaps = []
        for worker, intervals in self._busy.items():
            at = began
            for start, stop in sorted(intervals):
                gaps.append((start - at, worker))
                at = max(at, stop)
            gaps.append((ended - at, worker))
        idle, worker = max(gaps)
        return worker, idle

    def sections(self, budget: Budget | None) -> Iterator[tuple[str, list[str]]]:
        """Titles with their lines."""
        folders = self.by_folder()
        yield "costs by folder", list(self._folder_lines(folders, budget))
        slowest = sorted(self.cpu, key=lambda nodeid: self.clock[nodeid], reverse=True)[:SLOWEST]
        yield (
            f"the {len(slowest)} slowest tests",
            [f"{self.clock[nodeid]:8.1f} s {self.cpu[nodeid]:8.1f} CPU s  {nodeid}" for nodeid in slowest],
        )
        yield (
            "processes started",
            [
                f"{number:6} {seconds:8.1f} CPU s  {kind}"
                for kind, (number, seconds) in sorted(self.processes.items(), key=lambda item: -item[1][1])
            ],
        )
        worker, idle = self.longest_idle()
        yield (
            "workers",
            [
                f"processes that ran tests: {len(self._collections)}",
                f"CPU seconds before the first test: {max(self._collections, default=0.0):.1f} at most",
                f"the longest wait of an idle worker: {idle:.1f} s ({worker})",
                f"calibration (ten million additions): {self.calibration:.2f} s",
            ],
        )
        if budget is not None and (over := self.over(budget)):
            yield "over the budget", over

    def _folder_lines(self, folders: dict[str, tuple[int, float, float]], budget: Budget | None) -> Iterator[str]:
        yield f"{'tests':>6} {'CPU s':>8} {'clock s':>8} {'at 1.0':>8} {'budget':>8}  folder"
        for folder, (number, cpu_s, clock_s) in sorted(folders.items(), key=lambda item: -item[1][1]):
            allowed = "" if budget is None else f"{budget.folders.get(folder, 0.0):.0f}"
            yield f"{number:6} {cpu_s:8.1f} {clock_s:8.1f} {self.calibrated[folder]:8.1f} {allowed:>8}  {folder}"
        total = [sum(column) for column in zip(*folders.values(), strict=True)] or [0, 0.0, 0.0]
        yield f"{total[0]:6} {total[1]:8.1f} {total[2]:8.1f} {sum(self.calibrated.values()):8.1f} {'':8}  all"
