"""Runs the calls of a stage that are not in the ledger yet, one after the other or some at a time."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

from tests.prove.ledger import ROOT, Call, Ledger, product_version
from tests.prove.steps import Step

TIMED_OUT = -1
WITHOUT_COUNTS = -2
TAIL = 20


@dataclass(frozen=True, slots=True)
class Planned:
    """A call that is to be run."""

    step: Step
    number: int
    seed: int

    @property
    def command(self) -> str:
        """The command, with its seed."""
        return self.step.command.format(seed=self.seed, number=self.number)


def plan(steps: Sequence[Step], stage: str, first_seed: int) -> list[Planned]:
    """All calls of a stage: first one of each step, then the second ones, so that what is run early covers all."""
    most = max((step.calls_of(stage) for step in steps), default=0)
    return [
        Planned(step, number, first_seed + (number - 1) * step.seeds)
        for number in range(1, most + 1)
        for step in steps
        if number <= step.calls_of(stage)
    ]


class Runner:
    """Runs planned calls and enters them into the ledger."""

    def __init__(self, ledger: Ledger, jobs: int = 1) -> None:
        self._ledger, self._jobs = ledger, jobs
        self._version = product_version()
        self._lock = threading.Lock()
        self._logs = ROOT / "build" / "proof" / "logs"

    def __call__(self, planned: Sequence[Planned]) -> int:
        """Run what has not passed yet; how many calls failed."""
        todo = [one for one in planned if not self._ledger.has_passed(one.step.name, one.seed, self._version)]
        print(f"{len(planned)} calls, {len(planned) - len(todo)} of them done; product version {self._version}")
        self._logs.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(self._jobs) as pool:
            calls = list(pool.map(self._run, todo))
        return sum(call.code != 0 for call in calls)

    def _run(self, planned: Planned) -> Call:
        began, since = datetime.now(UTC), time.monotonic()
        code, output = run_command(planned.command, planned.step.limit_s)
        counts = {count.name: count.read(output) for count in planned.step.counts}
        missing = [count.name for count in planned.step.counts if count.is_required and counts[count.name] is None]
        if code == 0 and missing:
            code = WITHOUT_COUNTS
            output += f"\nthe output does not say: {', '.join(missing)}"
        call = Call(
            planned.step.name,
            planned.number,
            planned.seed,
            planned.command,
            self._version,
            began.isoformat(timespec="seconds"),
            round(time.monotonic() - since, 1),
            code,
            {name: number for name, number in counts.items() if number is not None},
            output.splitlines()[-TAIL:] if code else [],
        )
        with self._lock:
            self._ledger.add(call)
            (self._logs / f"{call.step}-{call.seed}.log").write_text(output)
            said = ", ".join(f"{number:,} {name}" for name, number in call.counts.items())
            print(f"{'ok' if code == 0 else 'FAILED':6} {call.seconds:7.1f} s  {call.command}  {said}", flush=True)
        return call


def run_command(command: str, limit_s: float) -> tuple[int, str]:
    """Run a command in the project's folder; its exit code and output.

    At the limit it is stopped with all that it has started, and the code is -1.
    """
    words = shlex.split(command)
    assert words[0] == "python"
    process = subprocess.Popen(
        [sys.executable, *words[1:]],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return TIMED_OUT, output
    except BaseException:  # Ctrl-C: what it has started ends with it
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return process.returncode, output
