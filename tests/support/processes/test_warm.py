"""Forked brokers are processes like others: they serve, log, are killed and paused, and end with the tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.processes import warm
from tests.support.processes.warm_server import WarmServer
from tests.support.waiting import wait_for

ROOT = Path(__file__).parents[3]
SCRIPT = """
import sys
from pathlib import Path
from tests.support.processes.warm_server import WarmServer

first = WarmServer(Path(sys.argv[1]) / "data")
first.start()
print(first.pid, flush=True)
input()
"""


def test_a_forked_broker_serves_and_is_a_process(tmp_path: Path) -> None:
    server = WarmServer(tmp_path / "data", config={"num.partitions": "3"})
    server.start()
    assert isinstance(server.process, warm.WarmProcess)
    server.pause()
    server.resume()
    assert "started" in server.log()
    assert server.stop() == 0
    assert "shut down completed" in server.log()
    server.restart()
    pid = server.pid
    assert psutil.pid_exists(pid)
    server.kill9()
    assert server.process.poll() == -signal.SIGKILL
    assert not psutil.pid_exists(pid)


def test_a_mistake_ends_it_with_its_code(tmp_path: Path) -> None:
    server = WarmServer(tmp_path / "data", config={"num.partitions": "0"})
    with pytest.raises(RuntimeError, match="exited with 2"):
        server.start()
    assert server.log().count("\n") == 1


def test_its_variables_are_its_own(tmp_path: Path) -> None:
    command = [sys.executable, *warm.SERVE, "--data-dir", str(tmp_path / "data")]
    environment = {"KAFKA_NUM_PARTITIONS": "many", "PATH": os.environ["PATH"]}
    process = warm.launch(command, environment, tmp_path / "log")
    assert process.wait(60) == 2
    assert "num.partitions" in (tmp_path / "log").read_text()
    assert "KAFKA_NUM_PARTITIONS" not in os.environ


def test_they_end_with_the_process_of_the_tests(tmp_path: Path) -> None:
    """Also one that is killed."""
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as tests:
        assert tests.stdout is not None
        pid = int(tests.stdout.readline())
        assert psutil.pid_exists(pid)
        tests.kill()
    wait_for(lambda: not psutil.pid_exists(pid), "the end of the broker whose tests were killed")
