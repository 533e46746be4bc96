"""The evidence's own parts: plans, counts, the ledger and the page, with commands that are quick."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prove.ledger import Call, Ledger, product_version
from tests.prove.page import page, totals
from tests.prove.run import TIMED_OUT, WITHOUT_COUNTS, Runner, plan, run_command
from tests.prove.steps import FAULTS, FIGURES, STAGES, STEPS, Count, Step
from tests.support.cases import for_each

SAYS = Step("says", "a number", "python -c \"print('{seed} things')\"", (1, 2, 3), (Count("things", r"^(\d+) things"),))


def call(step: str = "says", seed: int = 1, code: int = 0, version: str = "v", **counts: int) -> Call:
    return Call(step, seed, seed, f"python {step}", version, "2026-01-01T00:00:00+00:00", 1.0, code, counts, ["oh no"])


def test_stages_contain_one_another_and_seeds_do_not_overlap() -> None:
    for step in STEPS:
        assert list(step.calls) == sorted(step.calls)
    planned = [plan(STEPS, stage, 1) for stage in STAGES]
    assert set(planned[0]) < set(planned[1]) < set(planned[2])
    commands = [one.command for one in planned[2]]
    assert len(commands) == len(set(commands))


@for_each("figure", FIGURES, ids=lambda figure: figure.name)
def test_each_figure_is_the_sum_of_counts_of_steps(figure) -> None:
    steps = {step.name: step for step in STEPS}
    for name in figure.steps:
        assert figure.count in [count.name for count in steps[name].counts]


def test_faults_are_read_from_the_last_line_only() -> None:
    output = "1/3 kill\n2/3 kill\nseed 7: 2 cut, 115 kill, 1 whole; 203346 acknowledged in 78 s; 0 findings\n"
    assert [count.read(output) for count in FAULTS[:5]] == [203346, 115, None, 1, 2]


def test_what_has_passed_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr("tests.prove.run.ROOT", tmp_path)
    ledger = Ledger(tmp_path)
    assert Runner(ledger)(plan([SAYS], "10min", 5)) == 0
    assert Runner(ledger)(plan([SAYS], "hour", 5)) == 0
    assert [(one.seed, one.counts) for one in Ledger(tmp_path).calls] == [(5, {"things": 5}), (6, {"things": 6})]
    assert "2 calls, 1 of them done" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ('python -c "raise SystemExit(3)"', 3),
        ("python -c \"print('nothing')\"", WITHOUT_COUNTS),
    ],
)
def test_a_call_that_fails_or_counts_nothing_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, code: int
) -> None:
    monkeypatch.setattr("tests.prove.run.ROOT", tmp_path)
    ledger = Ledger(tmp_path)
    step = Step("fails", "nothing", command, (1, 1, 1), SAYS.counts)
    assert Runner(ledger)(plan([step], "10min", 1)) == 1
    assert [one.code for one in ledger.calls] == [code]
    assert not ledger.has_passed("fails", 1, product_version())


def test_a_call_that_takes_too_long_ends_with_what_it_has_started() -> None:
    waits = "import threading; threading.Event().wait()"
    command = f"python -c \"import subprocess, sys; subprocess.run([sys.executable, '-c', '{waits}'])\""
    assert run_command(command, 0.5)[0] == TIMED_OUT


def test_the_page_counts_versions_apart_and_names_failures() -> None:
    calls = [
        call("crash-states", 1, states=2000),
        call("crash-states", 2, code=1, states=500),
        call("crash-states", 3, version="old", states=300),
    ]
    assert totals(calls)["crash-states", "states"] == 2300
    text = page(calls, "v")
    assert "| crash states | 200,000 | 2,000 | 300 | crash-states |" in text
    assert "- `python crash-states`: exit code 1\n  > oh no" in text
    assert "2 calls, 1 failed" in text


def test_a_failure_that_passes_later_is_said_to_have() -> None:
    assert "passed when it was run again" in page([call(code=1), call()], "v", [SAYS])
    assert "None on version v." in page([call()], "v", [SAYS])
