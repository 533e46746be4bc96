"""The Java client 4.4.0: producer, consumer groups and admin, by the program in `compat/java`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest

import pytest

from compat import suite
from compat.java import program
from tests.support.processes.server import Server

PARTS = 4
SCENARIOS = [name.partition("[")[2].rstrip("]") for name in suite.allowed("java") if "[" in name]
pytestmark = [pytest.mark.jvm, pytest.mark.timeout(program.RUN_TIMEOUT_S)]


@pytest.fixture(scope="module")
def outcomes(
    broker: Server, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, str]:
    """The result line of each scenario: `PASS name` or `FAIL name reason`.

    The scenarios of the selected tests only run; all, if the test that compares the lists is among them. These are
    several runs of the program at the same time, since most scenarios wait.
    """
    names = [item.name for item in request.session.items if item.path == request.path]
    chosen = [[name.partition("[")[2][:-1] for name in names]]
    if test_every_scenario_is_expected.__name__ in names:
        chosen = [[f"{number}/{PARTS}"] for number in range(PARTS)]
    settings = broker.clients
    config = settings.write(tmp_path_factory.mktemp("java") / "client.properties")

    def run(part: list[str]) -> list[str]:
        options = settings.java_options()
        done = program.run_scenarios(broker.bootstrap, "--command-config", str(config), *part, jvm_options=options)
        lines = [line for line in done.out.splitlines() if line.startswith(("PASS ", "FAIL "))]
        assert lines, done.out + done.errors
        return lines

    with ThreadPoolExecutor(len(chosen)) as pool:
        parts = list(pool.map(run, chosen))
    in_order = [line for turn in zip_longest(*parts) for line in turn if line is not None]
    return {line.split()[1]: line for line in in_order}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_java_client(scenario: str, outcomes: dict[str, str]) -> None:
    assert outcomes.get(scenario) == f"PASS {scenario}"


def test_every_scenario_is_expected(outcomes: dict[str, str]) -> None:
    assert list(outcomes) == SCENARIOS
