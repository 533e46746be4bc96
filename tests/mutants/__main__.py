"""`python -m tests.mutants [NAME ...]`: plants each bug in a copy of the tree and checks that its test fails.

The tests must pass without the bugs first. Exit code 1 when a test passes with its bug or fails without it.
"""

from __future__ import annotations

import argparse
import queue
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.all import MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.sample import sample_day, sample_of_day
from tests.mutants.tree import MutantTree


class Trees:
    """Copies of the tree, one for each thread."""

    def __init__(self, directory: Path, count: int) -> None:
        self._free: queue.SimpleQueue[MutantTree] = queue.SimpleQueue()
        self._count = count
        for number in range(count):
            self._free.put(MutantTree(directory / f"tree{number}"))

    def map(self, work: Callable[[MutantTree, Mutant], bool], mutants: Sequence[Mutant]) -> list[bool]:
        """The results of `work(tree, mutant)` for all mutants, in their order."""

        def run(mutant: Mutant) -> bool:
            tree = self._free.get()
            try:
                return work(tree, mutant)
            finally:
                self._free.put(tree)

        with ThreadPoolExecutor(self._count) as pool:
            return list(pool.map(run, mutants))


def passes(tree: MutantTree, mutant: Mutant) -> bool:
    """Whether the mutant's test passes without the bug; prints when it does not."""
    passed = tree.passes(mutant)
    if not passed:
        print(f"{mutant.test} fails without any bug {mutant.env or ''}")
    return passed


def is_caught(tree: MutantTree, mutant: Mutant) -> bool:
    """Whether the mutant's test fails with the bug; prints the outcome."""
    began = time.monotonic()
    result = tree.outcome(mutant)
    print(f"{result:10} {time.monotonic() - began:6.1f} s  {mutant.name:50} {mutant.test}", flush=True)
    return result == "caught"


def main(arguments: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="the mutants to plant; default: all")
    parser.add_argument("--sample", action="store_true", help="the sample of the day (BARNABAS_MUTANTS_DAY)")
    parser.add_argument("--part", metavar="K/N", help="the K-th of N parts of all")
    parser.add_argument("--jobs", type=int, default=1, help="how many run at the same time")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        parser.error(f"unknown mutants: {', '.join(sorted(unknown))}")
    mutants = [mutant for mutant in MUTANTS if not options.names or mutant.name in options.names]
    if options.part:
        part, parts = (int(number) for number in options.part.split("/"))
        if not 1 <= part <= parts:
            parser.error(f"there is no part {options.part}")
        mutants = mutants[part - 1 :: parts]
    if options.sample:
        mutants = sample_of_day(MUTANTS, sample_day())
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        trees = Trees(Path(directory), options.jobs)
        tests = {(mutant.test, *sorted(mutant.env.items())): mutant for mutant in mutants}
        sound = all(trees.map(passes, list(tests.values())))
        caught = trees.map(is_caught, mutants)
    print(f"{sum(caught)} of {len(mutants)} mutants caught")
    return 0 if sound and all(caught) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
