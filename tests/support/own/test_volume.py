"""Sizes and seeds come from the environment, and small fixed ones are the default."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support import volume

ROOT = Path(__file__).parents[2]
PROBE = """
from hypothesis import given, strategies
from tests.support.volume import for_each_seed, seeds

found = []


@given(strategies.integers())
def test_examples(number):
    found.append(number)


def test_told(request):
    print(f"examples {len(found)} {found} limit {request.config.getoption('--timeout')}")


def test_seeds():
    def run(seed):
        assert seed != 12

    for_each_seed(seeds("BARNABAS_SEEDS", 3), run, "BARNABAS_SEEDS")
"""


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (volume.SEED, *volume.SIZES):
        monkeypatch.delenv(name, raising=False)


def test_sizes_and_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (volume.how_many("BARNABAS_FAULTS", 3), volume.first_seed()) == (3, 1)
    assert volume.seeds("BARNABAS_SEEDS", 2) == range(1, 3)
    assert not volume.is_sized()
    monkeypatch.setenv("BARNABAS_SEED", "70")
    monkeypatch.setenv("BARNABAS_SEEDS", "5")
    assert volume.seeds("BARNABAS_SEEDS", 2) == range(70, 75)
    assert volume.replay("BARNABAS_FAULTS", 3) == "repeat with BARNABAS_SEED=70 BARNABAS_FAULTS=3"
    assert volume.pytest_report_header() == ["sizes and seeds: BARNABAS_SEED=70 BARNABAS_SEEDS=5"]
    assert volume.is_sized()


@pytest.mark.parametrize("text", ["0", "-1", "many", ""])
def test_a_size_is_a_number_above_0(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("BARNABAS_KILLS", text)
    with pytest.raises(ValueError, match="BARNABAS_KILLS must be a number above 0, not"):
        volume.how_many("BARNABAS_KILLS", 3)


def test_brokers_of_tests_do_not_take_the_variables_for_keys() -> None:
    from tests.support.processes.server import TEST_VARIABLES

    assert {volume.SEED, *volume.SIZES} <= TEST_VARIABLES


def probe(tmp_path: Path, **variables: str) -> str:
    """The output of a run of the tests above."""
    (tmp_path / "test_probe.py").write_text(PROBE)
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "tests.support.volume", "-p", "no:cacheprovider"]
    command += [f"--rootdir={tmp_path}", "-c", str(tmp_path / "none.ini"), str(tmp_path / "test_probe.py")]
    (tmp_path / "none.ini").write_text("[pytest]\n")
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", **variables}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def examples(output: str) -> str:
    return next(line for line in output.splitlines() if "examples" in line)


def test_examples_are_the_same_unless_there_is_a_seed(tmp_path: Path) -> None:
    first = probe(tmp_path)
    assert f"examples {volume.EXAMPLES} " in first
    assert "limit None" in first
    assert "3 passed" in first
    assert examples(probe(tmp_path)) == examples(first)
    seeded = probe(tmp_path, BARNABAS_SEED="10", BARNABAS_EXAMPLES="20", BARNABAS_SEEDS="4")
    assert "examples 20 " in seeded
    assert "limit 0" in seeded
    assert "repeat this seed with: BARNABAS_SEED=12 BARNABAS_SEEDS=1" in seeded
    variables = "BARNABAS_SEED=10 BARNABAS_SEEDS=4 BARNABAS_EXAMPLES=20"
    assert f"{variables} python -m pytest test_probe.py::test_seeds\n" in seeded
    again = probe(tmp_path, BARNABAS_SEED="10", BARNABAS_EXAMPLES="20")
    assert examples(again) == examples(seeded)
    assert examples(probe(tmp_path, BARNABAS_SEED="11", BARNABAS_EXAMPLES="20")) != examples(seeded)


def test_the_tests_of_this_project_have_it(request: pytest.FixtureRequest) -> None:
    """Without the plugin a seed would not reach Hypothesis, and large tests would have the limit of small ones."""
    assert request.config.pluginmanager.has_plugin("tests.support.volume")
    assert settings.get_current_profile_name() == volume.PROFILE
