"""A short run of the fuzz. `BARNABAS_FUZZ` sets the number of mutated frames, `BARNABAS_SEED` the seed."""

from __future__ import annotations

import os
import subprocess
import sys
from random import SystemRandom

import pytest

from tests.hostile.harness import needs_linux

MUTATED = int(os.environ.get("BARNABAS_FUZZ", "5000"))


@pytest.mark.scaled
@pytest.mark.timeout(600)
def test_mutated_and_absurd_requests(tmp_path, pytestconfig) -> None:
    """No traceback, no stall, no hang, bounded memory; the broker stops, and its data is whole."""
    needs_linux()
    seed = os.environ.get("BARNABAS_SEED", str(SystemRandom().randrange(2**32)))
    command = [sys.executable, "-m", "tests.hostile.fuzz", "--mutated", str(MUTATED), "--absurd", str(MUTATED // 5)]
    command += ["--seed", seed, "--findings", str(tmp_path / "findings")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=pytestconfig.rootpath, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-8000:]}{done.stderr[-4000:]}"
    assert f"{MUTATED} mutated and {MUTATED // 5} absurd requests" in done.stdout
