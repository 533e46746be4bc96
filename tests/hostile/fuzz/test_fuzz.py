"""Short runs of the fuzz, through each of its doors. `BARNABAS_FUZZ` sets the number of mutated frames through the
first, of which each other one has a tenth; `BARNABAS_SEED` sets the seed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.fuzz.doors import DOORS
from tests.hostile.fuzz.job import Task, run_job
from tests.hostile.harness import needs_linux
from tests.support.volume import first_seed, how_many, limited, replay

MUTATED = how_many("BARNABAS_FUZZ", 1500)


@limited(300)
@pytest.mark.parametrize("door", [door for door in DOORS if door != "plain"])
def test_mutated_and_absurd_requests_through_other_doors(tmp_path: Path, door: str) -> None:
    """As below; in this process, which writes what the command prints."""
    needs_linux()
    print(replay("BARNABAS_FUZZ", MUTATED))
    mutated = max(10, MUTATED // 10)
    outcome = run_job(Task(first_seed(), 0, mutated, mutated // 5, tmp_path, tmp_path / "findings", door))
    assert outcome.findings == 0, f"the findings are in the output; their frames are in {tmp_path / 'findings'}"
    assert outcome.counts["connections"] > 0


@limited(300)
def test_mutated_and_absurd_requests(tmp_path, pytestconfig) -> None:
    """No traceback, no stall, no hang, bounded memory; the broker stops, and its data is whole."""
    needs_linux()
    door, mutated, seed = "plain", MUTATED, str(first_seed())
    command = [sys.executable, "-m", "tests.hostile.fuzz", "--mutated", str(mutated), "--absurd", str(mutated // 5)]
    command += ["--door", door]
    command += ["--seed", seed, "--findings", str(tmp_path / "findings")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=pytestconfig.rootpath, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-8000:]}{done.stderr[-4000:]}"
    assert f"{mutated} mutated and {mutated // 5} absurd requests" in done.stdout
