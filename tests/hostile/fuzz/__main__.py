"""`python -m tests.hostile.fuzz`: attack brokers with mutated frames and absurd requests, and report findings."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import SystemRandom

from tests.hostile.fuzz.doors import DOORS
from tests.hostile.fuzz.job import Outcome, Task, run_job
from tests.hostile.fuzz.replay import replay

ROOT = Path(__file__).resolve().parent.parent.parent.parent


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.fuzz", description=__doc__)
    parser.add_argument("--mutated", type=int, default=100_000, help="how many mutated frames to send")
    parser.add_argument("--absurd", type=int, default=10_000, help="how many absurd requests to send")
    parser.add_argument("--seed", type=int, default=None, help="the seed of all choices (default: a random one)")
    parser.add_argument("--jobs", type=int, default=1, help="how many brokers, each with attackers in one process")
    parser.add_argument("--findings", type=Path, default=ROOT / ".cache" / "fuzz", help="where frames are written")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="send the frames of a finding to a new broker")
    parser.add_argument("--door", choices=DOORS, default="plain", help="the listener that is attacked")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="barnabas-fuzz-") as directory:
        if options.replay is not None:
            return replay(options.replay, Path(directory), options.door)
        return fuzz(options, Path(directory))


def fuzz(options: argparse.Namespace, directory: Path) -> int:
    """Run all jobs; the exit code is 1 if there are findings."""
    seed = options.seed if options.seed is not None else SystemRandom().randrange(2**32)
    print(f"seed {seed}", flush=True)
    began = time.monotonic()
    tasks = [
        Task(seed, job, share(options.mutated, job, options.jobs), share(options.absurd, job, options.jobs), directory,
             options.findings, options.door, 0 if options.jobs == 1 else os.getpid())
        for job in range(options.jobs)
    ]  # fmt: skip
    if options.jobs == 1:
        outcomes = [run_job(tasks[0])]
    else:
        with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
            outcomes = list(pool.map(run_job, tasks))
    print(summary(options, seed, outcomes, time.monotonic() - began))
    return 1 if any(outcome.findings for outcome in outcomes) else 0


def share(total: int, job: int, jobs: int) -> int:
    """The part of one job."""
    return total // jobs + (job < total % jobs)


def summary(options: argparse.Namespace, seed: int, outcomes: list[Outcome], seconds: float) -> str:
    """One line."""
    counts: Counter[str] = sum((outcome.counts for outcome in outcomes), Counter())
    return (
        f"{options.door}: {options.mutated} mutated and {options.absurd} absurd requests from seed {seed} "
        f"in {seconds:.0f} s with {options.jobs} jobs: {counts['connections']} connections, "
        f"of which the broker closed {counts['closed']} and {counts['parked']} were closed while they waited; "
        f"{sum(outcome.restarts for outcome in outcomes)} restarts; "
        f"at most {max(outcome.peak_memory for outcome in outcomes) >> 20} MB; "
        f"longest stall {max(outcome.stall_s for outcome in outcomes):.3f} s of the broker's CPU; "
        f"{sum(outcome.findings for outcome in outcomes)} findings"
    )


if __name__ == "__main__":
    sys.exit(main())
