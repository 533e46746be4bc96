"""Runs of the suites in `compat` over secured listeners."""

from __future__ import annotations

import subprocess

from compat import suite

RUN_TIMEOUT_S = 280


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(suite.ROOT / "compat" / "run"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
