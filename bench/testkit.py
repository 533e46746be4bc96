"""Measures the test kit: its start, the cost of isolation for a test, a run of pytest over two workers, leftovers.

    python -m bench.testkit [--runs N] [--tests N] [--opens N]

Each figure is beside the goal that it has. Figures of pytest are differences: the same tests with and without the kit.
Those tests do nothing, so that the broker has no time between them to start the next cluster, and two workers and the
broker share the processors: it is the worst case.
Run it on a quiet machine; the load is printed with the figures.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psutil

from barnabas.testing import Broker

START_GOAL_S, OPEN_GOAL_MS, TEST_GOAL_MS, MEMORY_GOAL_MB = 0.35, 2.0, 3.0, 120.0
SETTLE_S = 2.0
"""How long closed clusters have to be gone, seconds."""
TEST_S = 0.01
"""How long a test works, seconds: meanwhile the next cluster is started."""
WORKERS = 2
TESTS = """
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_it(number{fixture}):
    {body}
"""
WITHOUT = "", "assert number >= 0"
ISOLATED = ", kafka", "assert number >= 0"
USED = ", kafka", 'topic = kafka.topic("orders"); topic.produce("x"); assert topic.records()'
SHARED = ", shared", 'topic = shared.topic(f"orders-{number}"); topic.produce("x"); assert topic.records()'
KINDS = (WITHOUT, ISOLATED, USED, SHARED)
ROUNDS = 3
"""How often each kind of tests runs, in turn; medians are compared."""
CONFTEST = """
import os, psutil, pytest

@pytest.fixture(scope="session")
def shared(barnabas_broker):
    with barnabas_broker.open() as kafka:
        yield kafka

def pytest_unconfigure(config):
    if hasattr(config, "workerinput"):
        return
    for child in psutil.Process().children(recursive=True):
        if "--control" in child.cmdline():
            open(os.environ["BENCH_MEMORY"], "w").write(str(child.memory_info().rss))
"""


class Left(NamedTuple):
    """The memory, descriptors, threads and temporary directories of a broker's process."""

    rss_mb: float
    descriptors: int
    threads: int
    directories: int

    @classmethod
    def of(cls, pid: int) -> Left:
        """As it is now."""
        process = psutil.Process(pid)
        folders = len(list(Path(tempfile.gettempdir()).glob("barnabas-*")))
        return cls(process.memory_info().rss / 1e6, process.num_fds(), process.num_threads(), folders)

    def __str__(self) -> str:
        return (
            f"{self.rss_mb:.0f} MB, {self.descriptors} descriptors, {self.threads} threads, "
            f"{self.directories} directories"
        )


def main() -> int:
    """Measure; returns 1 if a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.testkit", description="Measures the test kit.")
    parser.add_argument("--runs", type=int, default=9, help="starts; the median is reported")
    parser.add_argument("--tests", type=int, default=1000, help="tests in the run of pytest")
    parser.add_argument("--opens", type=int, default=500, help="clusters that are opened and closed, one by one")
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} CPUs, data in {tempfile.gettempdir()}", file=sys.stderr)
    met = _row("start", start_s(options.runs), START_GOAL_S, "s")
    with running() as (broker, pid):
        met &= _row("a test waits for its cluster, p50", wait_ms(broker, options.opens), OPEN_GOAL_MS, "ms")
        _row("one cluster after the other, p50", open_ms(broker, options.opens, use=False), None, "ms")
        _row("the same with a topic made on demand", open_ms(broker, options.opens, use=True), None, "ms")
        before = Left.of(pid)
        open_ms(broker, options.opens, use=True)
        time.sleep(SETTLE_S)
        print(f"{2 * options.opens} clusters were opened and closed: {before}; {options.opens} more: {Left.of(pid)}")
    isolated, used, apart, memory = of_pytest(options.tests)
    print(f"what the kit adds to a test, of {options.tests} over {WORKERS} workers:")
    met &= _row("- that has a cluster and does not use it", isolated, TEST_GOAL_MS, "ms")
    _row("- that writes to a topic made on demand, and reads", used, None, "ms")
    met &= _row("- of that for isolation: more than with one cluster and a topic for each", apart, TEST_GOAL_MS, "ms")
    met &= _row("memory of the broker at the end of such a run", memory, MEMORY_GOAL_MB, "MB")
    return 0 if met else 1


def _row(what: str, value: float, goal: float | None, unit: str) -> bool:
    """Print a figure beside its goal; whether that is met."""
    met = goal is None or value <= goal
    aside = "" if goal is None else f", goal {goal:g} {unit}: {'met' if met else 'MISSED'}"
    print(f"{what}: {value:.3g} {unit}{aside}")
    return met


@contextmanager
def running() -> Iterator[tuple[Broker, int]]:
    """A broker, and the id of its process."""
    before = {child.pid for child in psutil.Process().children()}
    broker = Broker()
    broker.start()
    try:
        (pid,) = {child.pid for child in psutil.Process().children()} - before
        yield broker, pid
    finally:
        broker.stop()


def start_s(runs: int) -> float:
    """Seconds until a broker serves, from its constructor."""
    times = []
    for _ in range(runs):
        broker = Broker()
        times.append(_seconds(broker.start))
        broker.stop()
    return median(times)


def wait_ms(broker: Broker, count: int) -> float:
    """Milliseconds that a test waits for its cluster to be opened and closed, if it takes `TEST_S` itself."""
    waits = []
    for _ in range(count):
        started = time.perf_counter()
        kafka = broker.open()
        opened = time.perf_counter()
        time.sleep(TEST_S)
        waits.append(opened - started + _seconds(kafka.close))
    return median(waits) * 1000


def open_ms(broker: Broker, count: int, *, use: bool) -> float:
    """Milliseconds to open and close a cluster; with `use` also to write to a topic that is not there yet."""

    def opened() -> None:
        kafka = broker.open()
        if use:
            kafka.topic("orders").produce("x")
        kafka.close()

    return median(_seconds(opened) for _ in range(count)) * 1000


def of_pytest(count: int, rounds: int = ROUNDS) -> tuple[float, float, float, float]:
    """The additional time of a pytest run with the kit, ms a test, and the memory of its broker, MB.

    With a cluster for each test, unused and used, than without; and used, than with one cluster for all tests.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        (folder / "conftest.py").write_text(CONFTEST)
        for tests in KINDS:
            _run_pytest(folder, 2 * WORKERS, tests)  # the first run reads files that the others find in memory
        runs = [[_run_pytest(folder, count, tests) for tests in KINDS] for _ in range(rounds)]
    without, isolated, used, shared = (median(run[kind][0] for run in runs) for kind in range(len(KINDS)))
    memory = max(run[KINDS.index(USED)][1] for run in runs)
    return (
        *((took - than) * 1000 / count for took, than in ((isolated, without), (used, without), (used, shared))),
        memory,
    )


def _run_pytest(folder: Path, count: int, tests: tuple[str, str]) -> tuple[float, float]:
    """Seconds that a run took, and the memory of its broker at the end, MB."""
    fixture, body = tests
    (folder / "test_it.py").write_text(TESTS.format(count=count, fixture=fixture, body=body))
    memory = folder / "memory"
    memory.write_text("0")
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(WORKERS), "-p", "no:cacheprovider", "test_it.py"]
    started = time.monotonic()
    ended = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"BENCH_MEMORY": str(memory)},
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.monotonic() - started
    if f"{count} passed" not in ended.stdout:
        raise RuntimeError(ended.stdout[-2000:] + ended.stderr[-2000:])
    return took, int(memory.read_text()) / 1e6


def _seconds(function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
