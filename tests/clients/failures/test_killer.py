"""The killer of `compat/run NAME --brokers 3 --kill-every 20`: its plan, its arguments, and one suite under kills."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from compat import suite
from tests.support.processes import killer

RUN = suite.ROOT / "compat" / "run"


def asked(*arguments: str, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
    """What `compat/run` with these arguments does."""
    command = [str(RUN), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)


class Stopped:
    """A cluster that its test has stopped."""

    brokers = 3
    data_dir = Path("nowhere")
    is_running = False


class TestPlan:
    def test_a_seed_gives_the_order(self) -> None:
        first, again, other = killer.Plan(7), killer.Plan(7), killer.Plan(8)
        order = [first.next(3) for _ in range(50)]
        assert [again.next(3) for _ in range(50)] == order
        assert [other.next(3) for _ in range(50)] != order

    def test_every_broker_is_killed_for_a_moment_and_for_longer_than_a_session(self) -> None:
        plan = killer.Plan(7)
        kills = [plan.next(3) for _ in range(200)]
        session_s = int(killer.SETTINGS["broker.session.timeout.ms"]) / 1000
        for broker in (1, 2, 3):
            pauses = [pause_s for killed, pause_s in kills if killed == broker]
            assert min(pauses) == 0
            assert session_s < max(pauses) <= killer.LONGEST_PAUSE_S
        assert {broker for broker, _ in kills} == {1, 2, 3}


class TestClusters:
    def test_a_cluster_that_does_not_run_is_left_alone(self) -> None:
        assert not killer.is_in_sync(Stopped())
        with killer.Killer(0.0, 7) as active_killer:
            cluster = Stopped()
            active_killer.take(cluster)
            active_killer.leave(cluster)
            active_killer.leave(cluster)
        assert active_killer.kills == 0
        assert active_killer.findings == []


class TestArguments:
    @pytest.mark.parametrize("more", [[], ["--brokers", "2"], ["--brokers", "3", "--against", "kafka"]])
    def test_kills_need_three_brokers_of_ours(self, more: list[str]) -> None:
        done = asked("transactions", "--kill-every", "20", *more)
        assert done.returncode == 2
        assert "--kill-every needs --brokers 3 of Barnabas" in done.stderr

    @pytest.mark.parametrize("name", suite.SHARED)
    def test_the_suites_of_several_clients_exist(self, name: str) -> None:
        assert all(file.exists() for file in suite.test_files(name))


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_a_suite_under_kills() -> None:
    """A kill every few seconds, so that this takes not longer than the suite."""
    pytest.importorskip("confluent_kafka")
    options = ["--brokers", "3", "--kill-every", "4", "--kill-seed", "7", "--rounds", "2", "-p", "no:cacheprovider"]
    done = asked("transactions", *options, "-k", "readers_see or exactly_once_copy or zombie")
    assert done.returncode == 0, done.stdout + done.stderr
    match = re.search(r"^transactions: (\d+) kills in 2 rounds$", done.stdout, re.MULTILINE)
    assert match is not None, done.stdout
    assert int(match[1]) >= 1
    assert int(match[1]) == len(re.findall(r"kill \d+: broker [123]", done.stdout))
