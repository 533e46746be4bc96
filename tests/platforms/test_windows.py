"""On Windows every command is refused with one sentence, before an import fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.cases import for_each
from tests.support.processes.server import ROOT

WIN32 = str(Path(__file__).parent / "win32")
ENTRIES = {
    "script": ["-c", "import sys; from barnabas.cli import main; sys.exit(main())"],
    "module": ["-m", "barnabas"],
    "broker": ["-m", "barnabas.broker"],
}


@for_each("arguments", [["serve"], ["topic", "list"], ["storage", "check", "x"], ["kafka-topics"], []])
@for_each("entry", ENTRIES)
def test_every_command_is_refused_with_one_sentence(entry: str, arguments: list[str]) -> None:
    ran = subprocess.run(
        [sys.executable, *ENTRIES[entry], *arguments],
        env={**os.environ, "PYTHONPATH": WIN32},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.count("\n") == 1
    assert "Windows is not supported" in ran.stderr
    assert "WSL" in ran.stderr
