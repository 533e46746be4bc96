"""The behaviours that all products are asked for, and how one of them is tried, in a process of its own.

A check is a function of `Clients` that raises when the behaviour is another one than that of Apache Kafka 4.4.0. Each
runs in a process of its own, which is ended when it takes too long: some products never answer what they do not know.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from typing import NamedTuple

from bench.testkits.clients import Clients
from bench.testkits.product import Place, Setup
from tests.support.processes.server import ROOT

LIMIT_S = 75.0
REASON_LENGTH = 160
Check = Callable[[Clients], None]


class Behaviour(NamedTuple):
    """What is checked, in words, and what the broker must be set up for."""

    name: str
    title: str
    setup: Setup
    check: Check


class Outcome(NamedTuple):
    """Whether a product behaves as Kafka, and if not, what it did."""

    passed: bool
    reason: str = ""


MODULES = ("records", "groups", "transactions", "admin", "security")
"""In the order of the table."""
BEHAVIOURS: dict[str, Behaviour] = {}
"""By the name of the function, in the order of the table."""


def behaviour(title: str, setup: Setup = Setup.USUAL) -> Callable[[Check], Check]:
    """Mark a function as a check."""

    def add(check: Check) -> Check:
        BEHAVIOURS[check.__name__] = Behaviour(check.__name__, title, setup, check)
        return check

    return add


def all_behaviours() -> dict[str, Behaviour]:
    """All of them, by name."""
    for module in MODULES:
        import_module(f"bench.testkits.check_{module}")
    return BEHAVIOURS


def attempt(name: str, place: Place) -> Outcome:
    """Try a behaviour at a place, in a new process."""
    command = [sys.executable, "-m", "bench.testkits.one_check", name, json.dumps(asdict(place))]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return Outcome(False, f"no outcome within {LIMIT_S:.0f} s")
    if done.returncode == 0:
        return Outcome(True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    said = lines[-1].removeprefix("FAILED ") if lines else f"the process ended with {done.returncode}"
    return Outcome(False, said[:REASON_LENGTH])
