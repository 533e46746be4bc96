"""franz-go 1.22: producer, groups of both protocols, exactly-once copies and share groups, by `compat/franz-go`."""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bench.servers import ROOT, Server
from compat import suite

FOLDER = ROOT / "compat" / "franz-go"
SCENARIOS = [name.partition("[")[2].rstrip("]") for name in suite.allowed("franz-go") if "[" in name]
RUN_TIMEOUT_S = 400


def has_go() -> bool:
    """Whether Go 1.21 or later is installed, which downloads the toolchain that go.mod names."""
    if not shutil.which("go"):
        return False
    output = subprocess.run(["go", "version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"go(\d+)\.(\d+)", output)
    return found is not None and (int(found[1]), int(found[2])) >= (1, 21)


pytestmark = [
    pytest.mark.timeout(RUN_TIMEOUT_S + 300),
    pytest.mark.skipif(not has_go(), reason="needs Go 1.21 or later"),
]


def built() -> Path:
    """The path of the program, built unless it has been built from the same sources before."""
    sources = [*sorted(FOLDER.glob("*.go")), FOLDER / "go.mod"]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    program = ROOT / ".cache" / "go" / f"franz-go-{digest}"
    program.parent.mkdir(parents=True, exist_ok=True)
    with program.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            subprocess.run(["go", "build", "-o", str(program), "."], cwd=FOLDER, check=True)
    return program


@pytest.fixture(scope="module")
def outcomes(broker: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The result line of each scenario, from one run of the program: `PASS name` or `FAIL name reason`."""
    secure = tmp_path_factory.mktemp("franz-go") / "secure.json"
    secure.write_text(json.dumps(broker.clients.franz_go()))
    command = [str(built()), "-secure", str(secure), broker.bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("PASS ", "FAIL "))]
    assert lines, done.stdout + done.stderr
    return {line.split()[1]: line for line in lines}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_franz_go(scenario: str, outcomes: dict[str, str]) -> None:
    assert outcomes.get(scenario) == f"PASS {scenario}"


def test_every_scenario_is_expected(outcomes: dict[str, str]) -> None:
    assert list(outcomes) == SCENARIOS
