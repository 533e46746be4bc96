"""`python -m tests.stopping [NAME ...] --moments N --seed S`: stops each command at N moments of its run.

Prints each end that is wrong with its command; exit code 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.stopping.subjects import BY_NAME, fill
from tests.stopping.sweep import moments, stop_at
from tests.support.processes.server import BarnabasServer


def main() -> int:
    """Run the sweep; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.stopping", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BY_NAME)}; default: all")
    parser.add_argument("--moments", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failures = stops = 0
    with tempfile.TemporaryDirectory(prefix="barnabas-stopping-") as name:
        work = Path(name)
        server = BarnabasServer(work / "broker")
        server.start()
        try:
            fill(server.bootstrap)
            for subject in (BY_NAME[wanted] for wanted in options.names or BY_NAME):
                for number, moment in enumerate(moments(subject, options.moments, options.seed)):
                    stops += 1
                    wrong = stop_at(subject, moment, work / f"{subject.name}-{number}", server.bootstrap)
                    if wrong is not None:
                        failures += 1
                        print(
                            f"{subject.name} stopped after {moment:.3f} s (--seed {options.seed}): {wrong}", flush=True
                        )
                print(f"{subject.name}: {options.moments} moments", flush=True)
        finally:
            server.stop()
    print(f"{stops} stops, {failures} of them wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
