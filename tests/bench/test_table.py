"""The text of a row: medians, goals met or missed, the state of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.cases.case import FULL, QUICK, Case, Goal, Group
from bench.cases.groups import all_groups
from bench.noise import COLUMNS, CpuShares, IdleWait, Noise
from bench.report import lines_of, number, write_markdown
from tests.support.cases import for_each


@pytest.mark.parametrize(("value", "text"), [(1234567.0, "1,234,567"), (0.12345, "0.123"), (12.345, "12.3")])
def test_figures_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text


@for_each(
    ("goal", "figure", "ours", "theirs", "judged"),
    [
        (Goal(3.0), "req/s", 300, 100, ("≥ 3x", True)),
        (Goal(3.0), "req/s", 299, 100, ("≥ 3x", False)),
        (Goal(0.5), "p50 ms", 5, 10, ("≤ 0.5x", True)),
        (Goal(0.5), "p50 ms", 6, 10, ("≤ 0.5x", False)),
        (Goal(limit=50), "MB/s", 50, 0, ("≥ 50", True)),
        (Goal(limit=50), "MB/s", 49, 0, ("≥ 50", False)),
        (Goal(limit=1), "clean start s", 1, 9, ("< 1", False)),
        (Goal(0.1, 0.3), "start s", 0.2, 3, ("≤ 0.1x, < 0.3", True)),
        (Goal(0.1, 0.3), "start s", 0.2, 1, ("≤ 0.1x, < 0.3", False)),
    ],
)
def test_a_goal_knows_which_direction_is_good(
    goal: Goal, figure: str, ours: float, theirs: float, judged: tuple[str, bool]
) -> None:
    assert goal.check(figure, ours, theirs) == judged


def test_the_table_has_medians_goals_and_the_machine_beside_them(tmp_path: Path) -> None:
    case = Case("a row", lambda: None, {"req/s": Goal(3.0)})
    group = Group("Some group", "What it is about.", (case,), barnabas={"our.key": "1"}, kafka={})
    samples = {"req/s": {"barnabas": [400.0, 100.0, 300.0], "kafka": [90.0, 100.0, 110.0]}}
    lines = list(lines_of(case, samples, Noise(steal=0.02, idle=0.4, load=1.5)))
    write_markdown(tmp_path / "table.md", {group.title: (group, lines)}, 3, 125.0, quick=False)
    text = (tmp_path / "table.md").read_text()
    assert "| a row | req/s | 300 | 100 | 3.00x | ≥ 3x | yes | 1.5 | 2% | 40% |" in text
    assert "`our.key=1`" in text
    assert "2 minutes" in text


def test_a_group_may_compare_something_else_than_the_brokers(tmp_path: Path) -> None:
    group = Group("Other", "", (), barnabas={"our.key": "1"}, kafka={}, sides=("one", "other"))
    write_markdown(tmp_path / "table.md", {group.title: (group, [])}, 1, 1.0, quick=False)
    text = (tmp_path / "table.md").read_text()
    assert "| figure | one | other | ratio |" in text
    assert "one: `our.key=1`. other: defaults." in text


@pytest.mark.parametrize("scale", [FULL, QUICK])
def test_every_row_has_a_name_of_its_own_and_goals_of_known_figures(scale: object) -> None:
    names = [case.name for group in all_groups(scale) for case in group.cases]  # type: ignore[arg-type]
    assert len(names) == len(set(names))


def test_shares_of_the_machines_time_are_shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = tmp_path / "stat"
    monkeypatch.setattr("bench.noise.STAT", stat)
    stat.write_text("cpu  100 0 0 1000 0 0 0 0 0 0\ncpu0 1 1\n")
    cpu = CpuShares()
    stat.write_text("cpu  110 0 20 1040 10 0 0 20 7 7\ncpu0 1 1\n")
    noise = cpu.read()
    assert (noise.steal, noise.idle) == (0.2, 0.5)
    stat.unlink()
    assert CpuShares().read().steal == 0
    assert COLUMNS == 8


def test_waiting_for_calm_ends_when_the_time_for_it_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (1e9, 1e9, 1e9))
    monkeypatch.setattr("bench.noise.IDLE_ENOUGH", 2)
    monkeypatch.setattr("bench.noise.SAMPLE_S", 0.01)
    idle_wait = IdleWait(0.02)
    idle_wait.wait()
    monkeypatch.setattr("bench.noise.SAMPLE_S", 1e9)
    idle_wait.wait()
