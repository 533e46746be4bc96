"""`barnabas health --wait`: what scripts and CI services run between starting a broker and using it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.processes.commands import run_command
from tests.support.processes.ports import free_port
from tests.support.processes.server import BarnabasServer


def test_it_waits_for_a_broker_that_starts_later_and_says_so(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "barnabas", "health", "-b", f"127.0.0.1:{port}", "--wait", "100"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as waiting:
        assert waiting.stderr is not None
        note = waiting.stderr.readline()
        with BarnabasServer(tmp_path / "data", port=port):
            output, rest = waiting.communicate(timeout=100)
    assert note == f"waiting up to 100 s: no broker answers at 127.0.0.1:{port} (connection refused)\n"
    assert (waiting.returncode, rest) == (0, "")
    assert output.startswith("ready: cluster ")


def test_it_ends_with_3_when_there_is_none() -> None:
    ran = run_command("health", "--wait", "0.1", "-b", f"127.0.0.1:{free_port()}")
    assert ran.code == 3
    assert [line.partition(":")[0] for line in ran.stderr.splitlines()] == ["waiting up to 0.1 s", "not ready"]
    quiet = run_command("health", "-q", "--wait", "0.1", "-b", f"127.0.0.1:{free_port()}")
    assert (quiet.code, quiet.stdout, quiet.stderr) == (3, "", "")
