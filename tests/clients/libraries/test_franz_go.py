"""franz-go 1.22: producer, groups of both protocols, exactly-once copies and share groups, by `compat/franz-go`."""

from __future__ import annotations

import json
import subprocess

import pytest

from compat import suite
from compat.go_program import built, has_go
from tests.support.processes.server import ROOT, Server

FOLDER = ROOT / "compat" / "franz-go"
SCENARIOS = [name.partition("[")[2].rstrip("]") for name in suite.allowed("franz-go") if "[" in name]
RUN_TIMEOUT_S = 400


pytestmark = [
    pytest.mark.timeout(RUN_TIMEOUT_S + 300),
    pytest.mark.skipif(not has_go(), reason="needs Go 1.21 or later"),
]


@pytest.fixture(scope="module")
def outcomes(broker: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The result line of each scenario, from one run of the program: `PASS name` or `FAIL name reason`."""
    secure = tmp_path_factory.mktemp("franz-go") / "secure.json"
    secure.write_text(json.dumps(broker.clients.franz_go()))
    command = [str(built(FOLDER)), "-secure", str(secure), broker.bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("PASS ", "FAIL "))]
    assert lines, done.stdout + done.stderr
    return {line.split()[1]: line for line in lines}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_franz_go(scenario: str, outcomes: dict[str, str]) -> None:
    assert outcomes.get(scenario) == f"PASS {scenario}"


def test_every_scenario_is_expected(outcomes: dict[str, str]) -> None:
    assert list(outcomes) == SCENARIOS
