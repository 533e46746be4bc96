"""What a part needs that a machine may not have."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache

from tests.soak.records import ROOT

HISTORY = "history"
NETWORK = "network"


def missing(needs: Sequence[str], *, has_network: bool) -> str:
    """A sentence about the first need that is not met; empty if all are."""
    for need in needs:
        if need == NETWORK:
            if not has_network:
                return "it needs the network: ARGS=--network runs it too"
        elif need == HISTORY:
            if not _has_history():
                return "it needs the history of the repository, and this is no whole clone"
        elif shutil.which(need) is None:
            return f"{need} is not installed"
    return ""


@cache
def _has_history() -> bool:
    command = ["git", "rev-parse", "--is-shallow-repository"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout.strip() == "false"
