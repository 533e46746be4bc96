"""`python -m tests.simulation --kind KIND --seeds N --seed S`: N runs of a kind from seed S on; prints failures.

At the end it prints the hash of all traces, with --verbose also that of each: equal seeds give equal hashes anywhere.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback
from hashlib import blake2b

from tests.simulation.kinds import KINDS, SimulationFailure, run


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--kind", choices=sorted(KINDS), required=True)
    parser.add_argument("--seeds", type=int, default=100, help="how many runs")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first run")
    parser.add_argument("--failures", type=int, default=1, help="stop after this many failures")
    parser.add_argument("--disk-errors", type=int, default=0, help="how often one operation of the disk fails in a run")
    parser.add_argument("--verbose", action="store_true", help="print every event, and the trace of each run")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    began, cpu_began = time.monotonic(), time.process_time()
    hashes = blake2b(digest_size=8)
    failures = done = 0
    for seed in range(options.seed, options.seed + options.seeds):
        try:
            simulation = run(options.kind, seed, is_verbose=options.verbose, disk_errors=options.disk_errors)
            trace = simulation.world.trace
        except SimulationFailure as failure:
            trace = failure.run.world.trace
            failures += 1
            if options.verbose:
                print("\n".join(trace.lines))
            traceback.print_exception(failure.__cause__)
            print(failure)
        done += 1
        hashes.update(trace.digest().encode())
        if options.verbose:
            print(f"{options.kind} seed {seed} trace {trace.digest()}")
        if failures == options.failures:
            break
    elapsed, cpu = time.monotonic() - began, time.process_time() - cpu_began
    print(
        f"{options.kind}: {done} runs from seed {options.seed} in {elapsed:.1f} s "
        f"({1000 * cpu / done:.0f} ms of CPU a run), {failures} failures, traces {hashes.hexdigest()}"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
