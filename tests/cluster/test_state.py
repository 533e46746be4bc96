"""`cluster.json` and whether the processes that it names run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from barnabas.cluster import state
from tests.cluster.clusters import wait_for


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell it without waiting")
def test_a_process_that_has_ended_and_nobody_waited_for_does_not_run() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    wait_for(lambda: not state.is_alive(process.pid), "its end")
    assert process.returncode is None
    assert process.wait() == 0
    assert not state.is_alive(process.pid)


def test_a_process_runs_until_it_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert state.is_alive(process.pid)
        process.kill()
    assert not state.is_alive(process.pid)
