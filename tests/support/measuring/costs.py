"""A pytest plugin: the CPU seconds of each test, including the processes that it has started.

Each test's figure is the property `cpu_s` in its report and in the JUnit file. `--costs` prints the figures at the end
(`cost_report.py`); `--budget FILE` fails the run if a folder costs more than 1.3 times its line in the file.
CPU seconds and not seconds on the clock: a busy machine makes those longer. A slower machine, and one whose CPUs are
shared with others for a while, makes CPU seconds longer as well: each process runs a loop of known length now and then
(`calibration`), and what a test has cost is divided by the last of them.
Reading /proc takes a millisecond or two, so what tests of less than 0.1 s cost is counted with the next one's.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.measuring.cost_report import Budget, CostReport, PhaseCost
from tests.support.measuring.process_tree import PROC, Watcher, tree_seconds

AT_LEAST_S = 0.1
CALIBRATE_EVERY_S = 20.0
LOOP = compile("x = 0\nfor i in range(1_000_000): x += i", "<calibration>", "exec")


def calibration() -> float:
    """The CPU seconds of ten million additions at the top of a module, from a tenth of them."""
    began = time.thread_time()
    exec(LOOP, {})
    return (time.thread_time() - began) * 10


def _seconds() -> float:
    """The CPU seconds of this process and those below it, and of what the JVM of all processes has run for this one."""
    if (host := sys.modules.get("tests.support.jvm.host")) is None:
        return tree_seconds(os.getpid())
    return tree_seconds(os.getpid(), host.Host.started()) + host.Host.spent_s()


class Meter:
    """Measures the tests of this process."""

    def __init__(self) -> None:
        self.collected_s = self._last_s = tree_seconds(os.getpid())
        self._last_at = time.monotonic()
        self._calibrated_at = 0.0
        self.calibrations: list[float] = []
        self.calibrate()

    def spent(self) -> float:
        """The CPU seconds since the last call; 0.0 if that was just now."""
        now = time.monotonic()
        if now - self._last_at < AT_LEAST_S:
            return 0.0
        total = _seconds()
        # An orphan takes its past away from the tree: the sum may become smaller.
        spent, self._last_s, self._last_at = max(0.0, total - self._last_s), total, now
        return spent

    def calibrate(self) -> None:
        """Run the loop of known length, unless it was run a moment ago."""
        if time.monotonic() - self._calibrated_at > CALIBRATE_EVERY_S:
            self.calibrations.append(calibration())
            self._calibrated_at = time.monotonic()


class CostPlugin:
    """The hooks, in the controlling process of the run and in its workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._runs_tests = not config.getoption("numprocesses", None)
        self._is_worker = hasattr(config, "workerinput")
        self._meter: Meter | None = None
        self._watcher: Watcher | None = None
        self.report = CostReport()

    def pytest_sessionstart(self) -> None:
        """Begin to look which processes are started."""
        if not self._is_worker:
            self._watcher = Watcher()
            self._watcher.start()

    def pytest_runtestloop(self) -> None:
        """Begin to count when the tests are collected."""
        if self._runs_tests:
            self._meter = Meter()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        """Calibrate between tests: in one, its time limit could end the loop."""
        result = yield
        if self._meter is not None:
            self._meter.calibrate()
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Add the property to the last report of a test, before it is made."""
        if call.when == "teardown" and self._meter is not None:
            item.user_properties.append(("cpu_s", round(self._meter.spent(), 3)))
            item.user_properties.append(("calibration", round(self._meter.calibrations[-1], 3)))
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect what the processes that run tests have measured."""
        if self._is_worker:
            return
        worker = getattr(getattr(report, "node", None), "gateway", None)
        figures = dict(report.user_properties) if report.when == "teardown" else {}
        cost = PhaseCost(
            report.nodeid,
            worker.id if worker is not None else "main",
            figures.get("cpu_s", 0.0),
            report.start,
            report.stop,
            figures.get("calibration", 1.0),
        )
        self.report.add(cost)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand this process's figures over; in the directing one, compare with the budget."""
        if self._meter is not None:
            figures = (self._meter.collected_s, self._meter.calibrations)
            if self._is_worker:
                session.config.workeroutput["costs"] = figures  # type: ignore[attr-defined]
            else:
                self.report.add_worker(*figures)
        if self._is_worker:
            return
        if self._watcher is not None:
            self._watcher.stop()
            self.report.processes = self._watcher.counts()
        if (budget := self._budget()) is not None and self.report.over(budget) and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take over the figures of a process that has ended."""
        if (figures := getattr(node, "workeroutput", {}).get("costs")) is not None:
            self.report.add_worker(*figures)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the figures."""
        for title, lines in self.report.sections(self._budget()):
            terminalreporter.section(title, sep="-")
            for line in lines:
                terminalreporter.write_line(line)

    def _budget(self) -> Budget | None:
        path = self._config.getoption("--budget")
        return None if path is None else Budget.read(Path(path))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options."""
    parser.addoption("--costs", action="store_true", help="print CPU seconds by folder, slow tests, processes")
    parser.addoption("--budget", metavar="FILE", help="with --costs: fail if a folder costs more than its budget")


def pytest_configure(config: pytest.Config) -> None:
    """Measure, where it is asked for and there is a /proc."""
    if (config.getoption("--costs") or config.getoption("--budget")) and PROC.is_dir() and sys.platform == "linux":
        config.pluginmanager.register(CostPlugin(config), "barnabas-costs")
