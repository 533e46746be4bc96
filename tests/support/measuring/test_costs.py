"""What the figures of a test run are made of: the CPU of a tree of processes, folders, idle workers, the budget."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.measuring.cost_report import Budget, CostReport, PhaseCost
from tests.support.measuring.costs import calibration
from tests.support.measuring.process_tree import PROC, Watcher, kind_of, tree_seconds

BURN = "import time\nwhile time.process_time() < 0.3: pass\nprint('burnt', flush=True)\ninput()"
NESTED = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', sys.argv[1]])"

needs_proc = pytest.mark.skipif(not PROC.is_dir(), reason="needs /proc")


def cost(
    test: str, worker: str = "gw0", cpu_s: float = 0.0, start: float = 0.0, stop: float = 0.0, calibration: float = 1.0
) -> PhaseCost:
    return PhaseCost(test, worker, cpu_s, start, stop, calibration)


def report(*costs: PhaseCost) -> CostReport:
    built = CostReport()
    for phase in costs:
        built.add(phase)
    return built


@needs_proc
def test_the_cpu_of_children_counts_while_they_run_and_after_they_have_ended() -> None:
    before = tree_seconds(os.getpid())
    child = subprocess.Popen(
        [sys.executable, "-c", NESTED, BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == "burnt\n"
    running = tree_seconds(os.getpid())
    child.communicate("\n")
    assert running - before >= 0.3
    assert tree_seconds(os.getpid()) - before >= 0.3


@needs_proc
def test_the_watcher_counts_what_was_started_by_kind() -> None:
    before, watcher = Watcher(), Watcher()
    before.start()
    before.stop()
    others, spent = before.counts().get("broker", (0, 0.0))  # of other tests in this process
    command = [sys.executable, "-c", BURN, "-m", "barnabas", "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == "burnt\n"
        watcher.start()
        watcher.stop()
        child.stdin.write("\n")
    number, seconds = watcher.counts()["broker"]
    assert number == others + 1
    assert seconds - spent >= 0.25  # /proc counts in hundredths, and for each kind of time


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("/usr/bin/java -cp jars org.apache.spark.deploy.SparkSubmit pyspark-shell ", "Spark session"),
        ("/usr/bin/java -cp jars Tool topics ", "JVM"),
        ("/usr/bin/java -classpath plexus-classworlds.jar ", "Maven"),
        ("python -m pip install . ", "pip"),
        ("/venv/bin/python -m pytest -q ", "pytest"),
        ("python -m barnabas serve --port 0 ", "broker"),
        ("/venv/bin/barnabas serve --brokers 3 ", "cluster"),
        ("/venv/bin/barnabas topic list ", "barnabas command"),
        ("python -c pass ", "Python"),
        ("sh -c true ", "other"),
    ],
)
def test_the_kind_of_a_process(command: str, kind: str) -> None:
    assert kind_of(command) == kind


def test_costs_by_folder_are_the_sums_of_all_phases() -> None:
    costs = report(
        cost("tests/wire/test_a.py::test_a", start=0, stop=1),
        cost("tests/wire/test_a.py::test_a", cpu_s=2.0, start=1, stop=2),
        cost("tests/wire/deep/test_b.py::test_b[1]", cpu_s=0.5, start=2, stop=2.5),
        cost("tests/test_c.py::test_c", cpu_s=0.25, start=3, stop=4),
    )
    assert costs.by_folder() == {"tests/wire": (2, 2.5, 2.5), "tests": (1, 0.25, 1.0)}


def test_the_longest_wait_of_a_worker_may_be_at_the_beginning_between_or_at_the_end() -> None:
    tests = [cost("tests/a.py::a", "gw0", start=0, stop=10), cost("tests/b.py::b", "gw1", start=1, stop=3)]
    assert report(*tests).longest_idle() == ("gw1", 7)
    assert report(*tests, cost("tests/b.py::c", "gw1", start=8, stop=10)).longest_idle() == ("gw1", 5)
    assert report().longest_idle() == ("none", 0.0)


@pytest.mark.parametrize(
    ("cpu_s", "calibration", "over"),
    [
        (12.9, 1.0, []),
        (13.1, 1.0, ["tests/wire costs 13 CPU seconds, more than 1.3 times its budget of 10"]),
        (25.9, 2.0, []),
        (27.0, 2.0, ["tests/wire costs 14 CPU seconds, more than 1.3 times its budget of 10"]),
    ],
)
def test_a_folder_over_its_budget_is_said_on_a_slow_machine_too(
    cpu_s: float, calibration: float, over: list[str]
) -> None:
    """Also on one that others have slowed down for a while: each test is measured by the calibration at its time."""
    quick = cost("tests/wire/test_a.py::test_b", cpu_s=0.0, calibration=0.5)
    costs = report(quick, cost("tests/wire/test_a.py::test_a", cpu_s=cpu_s, calibration=calibration))
    assert costs.over(Budget({"tests/wire": 10.0})) == over


def test_a_new_folder_needs_a_budget_when_it_costs_more_than_a_moment() -> None:
    costs = report(cost("tests/new/test_a.py::test_a", cpu_s=1.9), cost("tests/newer/test_b.py::test_b", cpu_s=3.0))
    assert costs.over(Budget({})) == ["tests/newer costs 3 CPU seconds and has no line in the budget"]


def test_the_tables_name_folders_slow_tests_processes_and_what_is_over_the_budget() -> None:
    costs = report(cost("tests/wire/test_a.py::test_a", cpu_s=30.0, stop=40.0, calibration=1.5))
    costs.processes = {"JVM": (3, 12.5)}
    costs.add_worker(3.0, [1.5])
    sections = {title: "\n".join(lines) for title, lines in costs.sections(Budget({"tests/wire": 10.0}))}
    assert "     1     30.0     40.0     20.0       10  tests/wire" in sections["costs by folder"]
    assert "    40.0 s     30.0 CPU s  tests/wire/test_a.py::test_a" in sections["the 1 slowest tests"]
    assert sections["processes started"] == "     3     12.5 CPU s  JVM"
    assert "1.50 s" in sections["workers"]
    assert "20 CPU seconds, more than 1.3 times" in sections["over the budget"]


def test_a_budget_without_its_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "budget.toml").write_text("tests = 3\n")
    with pytest.raises(ValueError, match="there is no table cpu_seconds"):
        Budget.read(tmp_path / "budget.toml")


def test_the_calibration_is_the_time_of_a_loop() -> None:
    assert 0.05 < calibration() < 30
