"""`python -m tests.hostile`: the long form of the suite: every attack in full size, then a long fuzz."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys


def main() -> int:
    """The command; the exit code is 1 if an attack or the fuzz has a finding."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--mutated", type=int, default=1_000_000, help="how many mutated frames the fuzz sends")
    parser.add_argument("--absurd", type=int, default=100_000, help="how many absurd requests the fuzz sends")
    parser.add_argument("--seed", type=int, default=None, help="the seed of the fuzz (default: a random one)")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="brokers of the fuzz")
    options, pytest_arguments = parser.parse_known_args()
    attacks = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/hostile", "--deselect", "tests/hostile/test_fuzz.py",
         *pytest_arguments],
        check=False,
    )  # fmt: skip
    fuzz = [sys.executable, "-m", "tests.hostile.fuzz", "--jobs", str(options.jobs)]
    fuzz += ["--mutated", str(options.mutated), "--absurd", str(options.absurd)]
    fuzz += [] if options.seed is None else ["--seed", str(options.seed)]
    return 1 if attacks.returncode | subprocess.run(fuzz, check=False).returncode else 0


if __name__ == "__main__":
    sys.exit(main())
