"""The report of a run: how much was sent, what differed, which fields were not varied or had no effect."""

from __future__ import annotations

from collections import Counter

from compat.twin.plain import request_fields
from compat.twin.runner import Tally


def report(tally: Tally, kinds: Counter[str], seconds: float, *, with_fields: bool = False) -> str:
    """The lines of the report."""
    lines = [
        f"{tally.sequences} sequences, {tally.requests} requests, {tally.requests / max(seconds, 0.001):.0f} a second",
        f"{sum(kinds.values())} sequences' differences of {len(kinds)} kinds",
        *[f"  {count:5} {kind}" for kind, count in kinds.most_common()],
    ]
    if with_fields:
        lines += _fields(tally)
    return "\n".join(lines)


def _fields(tally: Tally) -> list[str]:
    lines = []
    for what in sorted(tally.answers):
        api, _, version = what.partition(" v")
        paths = request_fields(api, int(version))
        untouched = [path for path in paths if not tally.varied[api, int(version), path]]
        idle = [
            path
            for path in paths
            if tally.varied[api, int(version), path] and (api, int(version), path) not in tally.effective
        ]
        if untouched:
            lines.append(f"{what}: never varied: {', '.join(untouched)}")
        if idle:
            lines.append(f"{what}: never changed an answer: {', '.join(idle)}")
    return lines
