"""Measures and checks Barnabas' test kit beside what people use instead, and prints both tables.

    python -m bench.testkits [--products NAMES] [--runs N] [--checks [WORDS]] [--write]

Every run of the times measures each product once, in turn, in a process of its own. Products that are not installed are
said so. `--write` puts the tables into docs/evidence/comparison.md.
`--runs 0` and `--checks` without words leave one out.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping

from bench.testkits.behaviours import Behaviour, Outcome, all_behaviours, attempt
from bench.testkits.measure import Figures
from bench.testkits.product import IMPATIENT, Product, Setup, UnsupportedError
from bench.testkits.products import PRODUCTS
from bench.testkits.report import behaviours_table, state_of_the_machine, times_table, write_page
from tests.support.processes.server import ROOT

RUN_LIMIT_S = 180


def check(product: type[Product], behaviours: Iterable[Behaviour]) -> dict[str, Outcome]:
    """The outcome of each behaviour; a new instance of the product for each setup."""
    product.prepare()
    outcomes: dict[str, Outcome] = {}
    by_setup: dict[Setup, list[Behaviour]] = defaultdict(list)
    for behaviour in behaviours:
        by_setup[behaviour.setup].append(behaviour)
    for setup, those in by_setup.items():
        with product() as instance:
            try:
                place = instance.start(setup, IMPATIENT)
            except UnsupportedError as error:
                outcomes |= {one.name: Outcome(False, f"cannot be set up: {error}") for one in those}
                continue
            for one in those:
                outcomes[one.name] = outcome = attempt(one.name, place)
                print(f"{product.name}: {one.name}: {outcome.reason or 'yes'}", file=sys.stderr, flush=True)
    return outcomes


def measure(names: Iterable[str], runs: int) -> Mapping[str, list[Figures]]:
    """The figures of each run, by product; those of a product whose run failed are missing."""
    figures: dict[str, list[Figures]] = defaultdict(list)
    names = list(names)
    for run in range(runs):
        for name in names if run % 2 == 0 else reversed(names):
            command = [sys.executable, "-m", "bench.testkits.measure", name]
            try:
                done = subprocess.run(
                    command, cwd=ROOT, capture_output=True, text=True, timeout=RUN_LIMIT_S, check=True
                )
            except subprocess.SubprocessError as error:
                said = getattr(error, "stderr", "") or ""
                print(f"{name}: could not be measured: {error}\n{said}", file=sys.stderr)
                continue
            figures[name].append(json.loads(done.stdout.splitlines()[-1]))
            print(f"{name}: {figures[name][-1]}", file=sys.stderr, flush=True)
    return figures


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.testkits", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--products", nargs="+", choices=PRODUCTS, default=list(PRODUCTS), metavar="NAME")
    parser.add_argument("--runs", type=int, default=5, help="how often each product is measured; 0: not")
    parser.add_argument(
        "--checks", nargs="*", metavar="WORD", help="only checks with one of these in their names; none: no check"
    )
    parser.add_argument("--write", action="store_true", help="put the tables into docs/evidence/comparison.md")
    return parser.parse_args()


def main() -> int:
    """Print both tables."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the products too
    products = {name: PRODUCTS[name] for name in options.products}
    here = []
    for name, product in products.items():
        if why := product.missing():
            print(f"{product.title}: {why}", file=sys.stderr)
        else:
            here.append(name)
    figures = measure(here, options.runs)
    behaviours = {
        name: one
        for name, one in all_behaviours().items()
        if options.checks is None or any(word in name for word in options.checks)
    }
    parts = {}
    if options.runs:
        parts["times"] = f"{times_table(products, figures)}\n\n{state_of_the_machine()}"
    if behaviours:
        outcomes = {name: check(PRODUCTS[name], behaviours.values()) for name in here}
        parts["behaviours"] = behaviours_table(products, behaviours, outcomes)
    print("\n\n".join(parts.values()))
    if options.write:
        for part, text in parts.items():
            write_page(part, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
