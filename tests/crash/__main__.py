"""`python -m tests.crash`: make crash states, recover from each, report what was broken and how to replay it.

With `--faults` the fault sweep instead: every operation of the disk fails once (`tests.crash.faults`).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from random import SystemRandom

from tests.crash.explore import CrashFailure, StateName, replay, states
from tests.crash.explore import check as check_state


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--states", type=int, default=100_000, help="how many distinct states to recover from")
    parser.add_argument("--seed", type=int, default=None, help="the seed of the histories (default: a random one)")
    parser.add_argument("--choices", type=int, default=6, help="states to try at every operation of a history")
    parser.add_argument("--failures", type=int, default=1, help="stop after this many histories that failed")
    parser.add_argument("--replay", metavar="STATE", help="only this state or case, as a failure has printed it")
    parser.add_argument("--faults", nargs="*", metavar="HISTORY", help="the fault sweep, over these histories or all")
    parser.add_argument("--cases", type=int, default=1_000_000, help="faults: at most this many cases of each history")
    parser.add_argument("--jobs", type=int, default=2, help="faults: how many processes")
    options = parser.parse_args()
    if options.faults is not None:
        return sweep_faults(options)
    if options.replay is not None:
        replay(StateName.parse(options.replay))
        print(f"state {options.replay} is as it should be")
        return 0
    return explore(options)


def sweep_faults(options: argparse.Namespace) -> int:
    """The fault sweep; the exit code."""
    from tests.crash.faults.run import sweep
    from tests.crash.faults.sweep import Case, check

    if options.replay is not None:
        check(Case.parse(options.replay))
        print(f"case {options.replay} is as it should be")
        return 0
    seed = options.seed if options.seed is not None else 1
    return sweep(options.faults, count=options.cases, seed=seed, jobs=options.jobs)


def explore(options: argparse.Namespace) -> int:
    """Check histories until enough states were checked; the exit code."""
    seed = options.seed if options.seed is not None else SystemRandom().randrange(2**32)
    kinds: Counter[str] = Counter()
    began = time.monotonic()
    failures = history = 0
    while kinds.total() < options.states and failures < options.failures:
        try:
            for state in states(seed, history, options.choices):
                check_state(*state)
                kinds[state[1].name] += 1
                if kinds.total() == options.states:
                    break
        except CrashFailure as failure:
            print(failure)
            failures += 1
        history += 1
        if sys.stderr.isatty():
            print(f"\r{kinds.total()} states of {history} histories", end="", file=sys.stderr)
    elapsed = time.monotonic() - began
    print(
        f"{kinds.total()} states of {history} histories from seed {seed} in {elapsed:.0f} s "
        f"({kinds.total() / elapsed:.0f} a second), {failures} failures; "
        + ", ".join(f"{name} {count}" for name, count in sorted(kinds.items()))
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
