"""`python -m tests.simulation --kind KIND --seeds N --seed S`: N runs of a kind from seed S on; prints failures.

At the end it prints the hash of all traces, with --verbose also that of each: equal seeds give equal hashes anywhere.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback

from tests.simulation.kinds import KINDS, SimulationFailure, run
from tests.simulation.trace import combined


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--kind", choices=[*sorted(KINDS), "all"], required=True)
    parser.add_argument("--seeds", type=int, default=100, help="how many runs of the kind")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first run")
    parser.add_argument("--failures", type=int, default=1, help="stop after this many failures of a kind")
    parser.add_argument("--disk-errors", type=int, default=0, help="how often one operation of the disk fails in a run")
    parser.add_argument("--verbose", action="store_true", help="print every event, and the trace of each run")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    kinds = sorted(KINDS) if options.kind == "all" else [options.kind]
    return 1 if sum([run_kind(kind, options) for kind in kinds]) else 0


def run_kind(kind: str, options: argparse.Namespace) -> int:
    """Run the seeds of a kind; how many have failed."""
    began, cpu_began = time.monotonic(), time.process_time()
    digests: list[str] = []
    failures = 0
    for seed in range(options.seed, options.seed + options.seeds):
        try:
            simulation = run(kind, seed, is_verbose=options.verbose, disk_errors=options.disk_errors)
            trace = simulation.world.trace
        except SimulationFailure as failure:
            trace = failure.run.world.trace
            failures += 1
            if options.verbose:
                print("\n".join(trace.lines))
            traceback.print_exception(failure.__cause__)
            print(failure)
        digests.append(trace.digest())
        if options.verbose:
            print(f"{kind} seed {seed} trace {trace.digest()}")
        if failures == options.failures:
            break
    elapsed, cpu, done = time.monotonic() - began, time.process_time() - cpu_began, len(digests)
    print(
        f"{kind}: {done} runs from seed {options.seed} in {elapsed:.1f} s "
        f"({1000 * cpu / done:.0f} ms of CPU a run), {failures} failures, traces {combined(digests)}",
        flush=True,
    )
    return failures


if __name__ == "__main__":
    sys.exit(main())
