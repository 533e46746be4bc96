"""`python -m tests.costs [KIND ...]`: counts requests and prints what they cost; `--write` writes the table again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.costs.broker import ROOT
from tests.costs.count import Cost, NotCounted, count_all
from tests.costs.kind import Kind
from tests.costs.kinds.all import KINDS
from tests.costs.layers import LAYERS, short_path
from tests.costs.python import why_not
from tests.costs.table import PATH, WRITE, Row, Table, read, row_of, text_of

WIDTH = 44


def main(arguments: Sequence[str]) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.costs", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="kinds whose name has this text; default: all")
    parser.add_argument("--layers", action="store_true", help="the bytecodes of each layer of the broker")
    parser.add_argument("--functions", action="store_true", help="the bytecodes of each function")
    parser.add_argument("--checkout", type=Path, metavar="DIR", help="count the code of another checkout as well")
    parser.add_argument("--write", action="store_true", help=f"write {PATH.name} with what is counted")
    options = parser.parse_args(arguments)
    reason = why_not()
    if reason:
        parser.error(reason)
    kinds = [kind for kind in KINDS if not options.kinds or any(text in kind.name for text in options.kinds)]
    if not kinds:
        parser.error(f"no kind has such a name; there are: {', '.join(kind.name for kind in KINDS)}")
    if options.write and (options.kinds or options.checkout):
        parser.error("--write is for all kinds of this checkout")
    counted = _count(kinds, ROOT)
    table = {kind.name: row_of(cost, ROOT) for kind, cost in counted.items() if isinstance(cost, Cost)}
    if options.checkout:
        others = _count(kinds, options.checkout)
        _compare(others, table, options.checkout, with_layers=options.layers)
        if options.functions:
            _print_functions(others, options.checkout)
    else:
        _print(table, with_layers=options.layers)
    if options.functions:
        _print_functions(counted, ROOT)
    if options.write:
        PATH.write_text(text_of(table))
        print(f"\n{PATH} is written: say in its commit why")
    return 0


def _count(kinds: Sequence[Kind], checkout: Path) -> dict[Kind, Cost | NotCounted]:
    """Count, in the order of the kinds."""
    costs = dict(count_all(kinds, checkout))
    return {kind: costs[kind] for kind in kinds}


def _print(table: Table, *, with_layers: bool) -> None:
    before = read() if PATH.exists() else {}
    print(f"{'':<{WIDTH}} {'bytecodes':>10} {'in the table':>13}  system calls")
    for kind, row in table.items():
        known = before.get(kind)
        was = f"{known.bytecodes:.2f}" if known else "-"
        print(f"{kind:<{WIDTH}} {row.bytecodes:>10.2f} {was:>13}  {_calls(row)}")
        if with_layers:
            for layer, number in row.layers.items():
                print(f"    {layer:<{WIDTH - 4}} {number:>10.2f} {number / row.bytecodes:>13.1%}")


def _calls(row: Row) -> str:
    return ", ".join(f"{name} {number:g}" for name, number in row.calls.items())


def _compare(others: dict[Kind, Cost | NotCounted], table: Table, checkout: Path, *, with_layers: bool) -> None:
    print(
        f"{'bytecodes; system calls':<{WIDTH}} {checkout.name[:14]:>14} {'here':>10} {'ratio':>6}  calls there / here"
    )
    for kind, cost in others.items():
        here = table[kind.name]
        if isinstance(cost, NotCounted):
            print(
                f"{kind.name:<{WIDTH}} {'-':>14} {here.bytecodes:>10.2f} {'':>6}  {cost.reason.splitlines()[-1][:60]}"
            )
            continue
        there = row_of(cost, checkout)
        ratio = here.bytecodes / there.bytecodes
        calls = f"{sum(there.calls.values()):g} / {sum(here.calls.values()):g}"
        print(f"{kind.name:<{WIDTH}} {there.bytecodes:>14.2f} {here.bytecodes:>10.2f} {ratio:>6.2f}  {calls}")
        if with_layers:
            _compare_layers(there, here)


def _compare_layers(there: Row, here: Row) -> None:
    for layer in LAYERS:
        was, now = there.layers.get(layer, 0.0), here.layers.get(layer, 0.0)
        if was or now:
            print(f"    {layer:<{WIDTH - 4}} {was:>14.2f} {now:>10.2f} {now - was:>+9.2f}")


def _print_functions(counted: dict[Kind, Cost | NotCounted], checkout: Path) -> None:
    for kind, cost in counted.items():
        if isinstance(cost, Cost):
            print(f"\n{kind.name}, {checkout.resolve().name}")
            for (file, function), number in sorted(cost.functions.items(), key=lambda item: -item[1]):
                print(f"{number:>10.2f}  {short_path(file, checkout)} {function}")


if __name__ == "__main__":
    if not PATH.exists():
        print(f"there is no table yet: `{WRITE}` writes it", file=sys.stderr)
    sys.exit(main(sys.argv[1:]))
