"""python -m compat.twin --sequences 100 [--seed 1] [--families topics,produce] [--fresh 300] [--scripts DIR]

Prints a line for each difference and a report at the end. Exit code 1 if there are differences.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from compat.twin.generate import FAMILIES, sequence
from compat.twin.nodes import NodePair
from compat.twin.report import report
from compat.twin.runner import Runner, Tally
from compat.twin.shrink import script, shrunk

MOST_SHRUNK = 30
"""Differences of different kinds that are shrunk in a run."""


def main() -> int:
    """Run sequences from a seed."""
    parser = argparse.ArgumentParser(prog="python -m compat.twin")
    parser.add_argument("--sequences", type=int, default=100, help="how many sequences to run")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first sequence; others have the next ones")
    parser.add_argument(
        "--families", default="", help=f"families of requests, comma-separated, of {', '.join(FAMILIES)}"
    )
    parser.add_argument("--fresh", type=int, default=300, help="sequences until both brokers are replaced by new ones")
    parser.add_argument("--scripts", type=Path, help="write a script for each kind of difference into this directory")
    parser.add_argument("--no-shrink", action="store_true", help="print differences as they are found")
    parser.add_argument("--fields", action="store_true", help="report fields that were not varied or had no effect")
    args = parser.parse_args()
    families = args.families.split(",") if args.families else None
    if unknown := set(families or ()) - set(FAMILIES):
        parser.error(f"no such family: {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")
    tally, kinds = Tally(), Counter[str]()
    began = time.monotonic()
    spent_shrinking = 0.0
    for first in range(0, args.sequences, args.fresh):
        with NodePair() as pair:
            runner = Runner(pair, tally)
            for number in range(first, min(first + args.fresh, args.sequences)):
                seed = args.seed + number
                steps = sequence(seed, families)
                found = runner.run(steps)
                for kind in sorted({difference.kind for difference in found}):
                    kinds[kind] += 1
                    if kinds[kind] > 1:
                        continue
                    shown = next(difference for difference in found if difference.kind == kind)
                    print(f"seed {seed} step {shown.step}: {shown}", flush=True)
                    if args.no_shrink or len(kinds) > MOST_SHRUNK:
                        continue
                    start = time.monotonic()
                    _show_shrunk(runner, steps, kind, seed, args.scripts)
                    spent_shrinking += time.monotonic() - start
            runner.close()
    print(report(tally, kinds, time.monotonic() - began - spent_shrinking, with_fields=args.fields))
    return 1 if kinds else 0


def _show_shrunk(runner: Runner, steps: list, kind: str, seed: int, folder: Path | None) -> None:
    few = shrunk(steps, lambda fewer: any(difference.kind == kind for difference in Runner.run(runner, fewer)))
    text = script(few, f"Seed {seed}: {kind}")
    if folder is None:
        for step in few:
            print(f"    {step!r}", flush=True)
        return
    folder.mkdir(parents=True, exist_ok=True)
    name = "".join(letter if letter.isalnum() else "-" for letter in kind)
    (folder / f"{name}.py").write_text(text)
    print(f"    {len(few)} steps in {folder / f'{name}.py'}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
