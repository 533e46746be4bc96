"""`python -m tests.crash --faults`: every case of the fault sweep, or a sample, in several processes."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Sequence
from random import Random

from tests.crash.faults.histories import HISTORIES
from tests.crash.faults.sweep import Case, SweepFailure, cases, check


def sample(history: str, count: int, seed: int) -> list[Case]:
    """`count` random cases of a history, or all of them."""
    every = list(cases(history))
    return every if count >= len(every) else Random(f"{seed}:{history}").sample(every, count)


def outcome(case: Case) -> str | None:
    """Why a case fails, None if it does not."""
    try:
        check(case)
    except SweepFailure as failure:
        return str(failure)
    return None


def sweep(histories: Sequence[str], *, count: int, seed: int, jobs: int) -> int:
    """Check the cases of these histories, `count` of each at most; the exit code."""
    began = time.monotonic()
    chosen = [case for history in histories or HISTORIES for case in sample(history, count, seed)]
    tried: Counter[str] = Counter()
    failures: list[str] = []
    with multiprocessing.Pool(jobs) as pool:
        for case, failure in zip(chosen, pool.imap(outcome, chosen, chunksize=20), strict=True):
            tried[case.history] += 1
            if failure is not None:
                failures.append(failure)
            if sys.stderr.isatty():
                print(f"\r{tried.total()} of {len(chosen)} cases, {len(failures)} failures", end="", file=sys.stderr)
    for failure in failures[:20]:
        print(failure)
    print(
        f"{tried.total()} cases in {time.monotonic() - began:.0f} s, {len(failures)} failures; "
        + ", ".join(f"{history} {number}" for history, number in tried.items())
    )
    return 1 if failures else 0
