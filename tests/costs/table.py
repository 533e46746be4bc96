"""The committed table of costs, and the failures when counts differ from it."""

from __future__ import annotations

import importlib.metadata
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.costs.count import Cost
from tests.costs.layers import by_layer

PATH = Path(__file__).with_name("table.toml")
WRITE = "python -m tests.costs --write"
ABOVE = 1.02
"""A count may be so many times the table's."""
BELOW = 0.95
"""A count below so many times the table's wants a new table, so that what was gained is not lost again."""
LIBRARIES = ("trio", "attrs", "outcome")
"""Libraries in Python whose code is part of some counts: those with a round through trio's scheduler, mostly."""
OF_LIBRARIES = "trio"
"""Their layer."""
_HEAD = f"""\
# What one request costs: the bytecodes that CPython executes for it in the broker, and the system calls.
# Written by `{WRITE}`; a commit that changes it says why. docs/contributing/project-tests.md explains it.
"""


@dataclass(frozen=True)
class Row:
    """The cost of one kind of request, rounded: the bytecodes, system calls by name, bytecodes by layer."""

    bytecodes: float
    calls: dict[str, float]
    layers: dict[str, float]


Table = dict[str, Row]


def row_of(cost: Cost, checkout: Path) -> Row:
    """The row of a cost that was counted."""
    return Row(
        round(cost.bytecodes, 2),
        {name: round(number, 2) for name, number in sorted(cost.calls.items())},
        {layer: round(number, 2) for layer, number in by_layer(cost.functions, checkout).items()},
    )


def text_of(table: Table) -> str:
    """The table as TOML, one line a kind in each of its parts."""
    versions = {name: importlib.metadata.version(name) for name in LIBRARIES}
    lines = [_HEAD.rstrip(), "", "[versions]", f'python = "{sys.version_info[0]}.{sys.version_info[1]}"']
    lines += [f'{name} = "{version}"' for name, version in versions.items()]
    lines += ["", "[costs]"]
    for kind, row in table.items():
        lines.append(f'"{kind}" = {{ bytecodes = {_number(row.bytecodes)}, calls = {_inline(row.calls)} }}')
    lines += ["", "[layers] # bytecodes"]
    lines += [f'"{kind}" = {_inline(row.layers)}' for kind, row in table.items()]
    return "\n".join(lines) + "\n"


def _number(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _inline(numbers: Mapping[str, float]) -> str:
    return "{ " + ", ".join(f"{name} = {_number(number)}" for name, number in numbers.items()) + " }"


def read(path: Path = PATH) -> Table:
    """The committed table."""
    document = tomllib.loads(path.read_text())
    return {
        kind: Row(cost["bytecodes"], dict(cost["calls"]), dict(document["layers"][kind]))
        for kind, cost in document["costs"].items()
    }


def other_versions(path: Path = PATH) -> str:
    """The libraries that have another version than those the table was written with; empty if there are none."""
    written = tomllib.loads(path.read_text())["versions"]
    differing = [
        f"{name} {importlib.metadata.version(name)} in place of {written[name]}"
        for name in LIBRARIES
        if importlib.metadata.version(name) != written[name]
    ]
    return ", ".join(differing)


def failure(found: Iterable[str], path: Path = PATH) -> str:
    """The text of a failure: what has moved, and what to do."""
    lines = ["the costs differ from tests/costs/table.toml:", "", *found, ""]
    if other := other_versions(path):
        lines.append(f"Other libraries than those of the table are installed: {other}.")
    lines.append(f"If that is meant, `{WRITE}` writes a new table; its commit says why.")
    return "\n".join(lines)


def problems(before: Table, after: Table, *, same_libraries: bool = True) -> list[str]:
    """The kinds whose counts are wrong, one text each: too high, or so low that the table has to be written again.

    With other versions of libraries their bytecodes are not compared: changes of the broker do not cause them.
    """
    lines = []
    for kind, row in after.items():
        if kind not in before:
            lines.append(f"{kind}: is not in the table")
            continue
        verdicts = list(_verdicts(before[kind], row, same_libraries))
        if verdicts:
            lines.append(f"{kind}: {'; '.join(verdicts)}\n{_moved(before[kind], row)}")
    return lines


def _verdicts(before: Row, after: Row, same_libraries: bool) -> Iterable[str]:
    old, new = (row.bytecodes - (0 if same_libraries else row.layers.get(OF_LIBRARIES, 0)) for row in (before, after))
    share = new / old
    change = f"bytecodes {_number(old)} -> {_number(new)} ({share - 1:+.1%})"
    if share > ABOVE:
        yield f"{change}, more than the table allows"
    elif share < BELOW:
        yield f"{change}, write a new table to keep that"
    for name in sorted(before.calls.keys() | after.calls.keys()):
        was, now = before.calls.get(name, 0.0), after.calls.get(name, 0.0)
        if now != was:
            meaning = "more than the table allows" if now > was else "write a new table to keep that"
            yield f"{name} {_number(was)} -> {_number(now)}, {meaning}"


def _moved(before: Row, after: Row) -> str:
    """What each layer's share of a difference is, the largest first."""
    layers = before.layers.keys() | after.layers.keys()
    pairs = {layer: (before.layers.get(layer, 0.0), after.layers.get(layer, 0.0)) for layer in layers}
    moved = sorted((pair[0] - pair[1], layer) for layer, pair in pairs.items() if pair[0] != pair[1])
    moved.sort(key=lambda change: -abs(change[0]))
    lines = [
        f"    {layer:<10} {_number(pairs[layer][0]):>9} -> {_number(pairs[layer][1]):>9}  ({-difference:+.2f})"
        for difference, layer in moved
    ]
    return "\n".join(lines)
