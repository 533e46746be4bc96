"""`python -m tests.hostile`: the long form of the suite: every attack in full size, every flood, then a long fuzz.

The attacks are made on a listener without security, and again after TLS and a log-in; the floods on all kinds.
"""

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
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each flood goes on")
    options, pytest_arguments = parser.parse_known_args()
    attacks = [sys.executable, "-m", "pytest", "-q", "tests/hostile", "--deselect", "tests/hostile/fuzz/test_fuzz.py"]
    without_floods = ["--deselect", "tests/hostile/floods/test_floods.py", "--deselect", "tests/hostile/test_costs.py"]
    commands = [
        [*attacks, "--listener", listener, *without_floods, *pytest_arguments] for listener in ("PLAINTEXT", "SASL_SSL")
    ]
    commands.append([sys.executable, "-m", "tests.hostile.floods", "--seconds", str(options.seconds)])
    fuzz = [sys.executable, "-m", "tests.hostile.fuzz", "--jobs", str(options.jobs)]
    fuzz += ["--mutated", str(options.mutated), "--absurd", str(options.absurd)]
    fuzz += [] if options.seed is None else ["--seed", str(options.seed)]
    commands.append(fuzz)
    codes = [subprocess.run(command, check=False).returncode for command in commands]  # all of them, whatever fails
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
