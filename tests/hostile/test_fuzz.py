"""Short runs of the fuzz, through each of its doors. `BARNABAS_FUZZ` sets the number of mutated frames through the
first, of which each other one has a tenth; `BARNABAS_SEED` sets the seed."""

from __future__ import annotations

import os
import subprocess
import sys
from random import SystemRandom

import pytest

from tests.hostile.fuzz.doors import DOORS
from tests.hostile.harness import needs_linux

MUTATED = int(os.environ.get("BARNABAS_FUZZ", "5000"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("door", DOORS)
def test_mutated_and_absurd_requests(tmp_path, pytestconfig, door: str) -> None:
    """No traceback, no stall, no hang, bounded memory; the broker stops, and its data is whole."""
    needs_linux()
    mutated = MUTATED if door == "plain" else MUTATED // 10
    seed = os.environ.get("BARNABAS_SEED", str(SystemRandom().randrange(2**32)))
    command = [sys.executable, "-m", "tests.hostile.fuzz", "--mutated", str(mutated), "--absurd", str(mutated // 5)]
    command += ["--door", door]
    command += ["--seed", seed, "--findings", str(tmp_path / "findings")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=pytestconfig.rootpath, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-8000:]}{done.stderr[-4000:]}"
    assert f"{mutated} mutated and {mutated // 5} absurd requests" in done.stdout
