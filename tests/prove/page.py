"""Writes docs/proof.md from the ledger: figures, what each step counted, failures, and the anomalies found so far."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.prove.ledger import ROOT, Call
from tests.prove.steps import FIGURES, STEPS, Figure, Step

PAGE = ROOT / "docs" / "proof.md"
HERE = Path(__file__).parent


def page(calls: Sequence[Call], version: str, steps: Sequence[Step] = STEPS) -> str:
    """The page for these calls; those of other versions of the product are only counted."""
    now = [call for call in calls if call.version == version]
    before = [call for call in calls if call.version != version]
    parts = [
        (HERE / "introduction.md").read_text().strip(),
        _provenance(now, version),
        _figures(now, before),
        _steps(steps, now),
        _failures(now, version),
        (HERE / "runs_beside.md").read_text().strip(),
        (HERE / "anomalies.md").read_text().strip(),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def totals(calls: Iterable[Call]) -> Counter[tuple[str, str]]:
    """The sums of the counts of calls that passed, by step and name."""
    sums: Counter[tuple[str, str]] = Counter()
    for call in calls:
        if call.code == 0:
            sums.update({(call.step, name): number for name, number in call.counts.items()})
    return sums


def _provenance(calls: Sequence[Call], version: str) -> str:
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    if not calls:
        return f"Version of the product: {version}; nothing was run on it yet."
    first, last = min(call.began for call in calls), max(call.began for call in calls)
    hours = sum(call.seconds for call in calls) / 3600
    return (
        f"Version of the product (a hash of its source): {version}. {len(calls)} calls, {hours:.1f} hours in all, "
        f"begun between {first} and {last}, on {machine}."
    )


def _figures(now: Sequence[Call], before: Sequence[Call]) -> str:
    sums, earlier = totals(now), totals(before)
    lines = [
        "## Figures",
        "",
        "| figure | goal | on this version | on earlier versions | steps |",
        "|---|---:|---:|---:|---|",
    ]
    lines += [
        f"| {figure.name} | {figure.goal:,} | {_sum(figure, sums):,} | {_sum(figure, earlier):,} | "
        f"{', '.join(figure.steps)} |"
        for figure in FIGURES
    ]
    return "\n".join(lines)


def _sum(figure: Figure, sums: Counter[tuple[str, str]]) -> int:
    return sum(sums[step, figure.count] for step in figure.steps)


def _steps(steps: Sequence[Step], calls: Sequence[Call]) -> str:
    sums = totals(calls)
    lines = ["## What was run", ""]
    for step in steps:
        mine = [call for call in calls if call.step == step.name]
        if not mine:
            lines.append(f"- **{step.name}** ({step.shows}): not run on this version.")
            continue
        said = ", ".join(f"{sums[step.name, count.name]:,} {count.name}" for count in step.counts)
        seeds = f"seeds {min(call.seed for call in mine)} to {max(call.seed for call in mine) + step.seeds - 1}"
        lines.append(
            f"- **{step.name}** ({step.shows}): {len(mine)} calls, {sum(call.code != 0 for call in mine)} failed, "
            f"{seeds}: {said}. The first one: `{mine[0].command}`"
        )
    return "\n".join(lines)


def _failures(calls: Sequence[Call], version: str) -> str:
    passed = {(call.step, call.seed) for call in calls if call.code == 0}
    failed = [call for call in calls if call.code != 0]
    lines = ["## Failures", ""]
    if not failed:
        return "\n".join([*lines, f"None on version {version}."])
    for call in failed:
        again = ", passed when it was run again" if (call.step, call.seed) in passed else ""
        lines.append(f"- `{call.command}`: exit code {call.code}{again}")
        lines += [f"  > {line.strip()[:200]}" for line in call.tail[-5:] if line.strip()]
    return "\n".join(lines)
