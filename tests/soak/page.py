"""Writes docs/evidence/proof.md from the record.

The page has figures, the newest proof of each part, open failures, and anomalies found.

The page follows from the record and the parts alone, so that it is the same on every machine: its version of the
product is the version of the newest call, and parts that were never run are not on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from scripts.pages.prose import format_page
from tests.soak.choice import by_age
from tests.soak.part import Part
from tests.soak.parts import FIGURES, Figure
from tests.soak.records import ROOT, Call, open_failures
from tests.soak.run import counted

PAGE = ROOT / "docs" / "evidence" / "proof.md"
HERE = Path(__file__).parent


def page(calls: Sequence[Call], parts: Sequence[Part]) -> str:
    """The page for these calls."""
    calls = sorted(calls, key=lambda call: call.began)
    sections = [
        (HERE / "introduction.md").read_text().strip(),
        _figures(calls),
        _parts(calls, parts),
        _failures(calls, parts),
        (HERE / "anomalies.md").read_text().strip(),
    ]
    return format_page("\n\n".join(sections) + "\n")


def total(figure: Figure, calls: Iterable[Call]) -> int:
    """The number of a figure: the sum over the calls that passed."""
    return sum(
        call.counts.get(figure.count, 0)
        for call in calls
        if call.has_passed and (not figure.parts or call.part in figure.parts)
    )


def _figures(calls: Sequence[Call]) -> str:
    if not calls:
        return "## Figures\n\nNothing was run yet."
    version = calls[-1].version
    now = [call for call in calls if call.version == version]
    of_commit = f", of commit {now[-1].commit}" if now[-1].commit else ""
    newest = (
        f"The newest version of the product that something was run on is {version}, a hash of its source{of_commit}."
    )
    lines = [
        "## Figures",
        "",
        f"{newest} {_effort('On it', now)} {_effort('On all versions', calls)}",
        "",
        "| | newest version | all versions |",
        "|---|---:|---:|",
    ]
    lines += [f"| {figure.name} | {total(figure, now):,} | {total(figure, calls):,} |" for figure in FIGURES]
    return "\n".join(lines)


def _effort(on: str, calls: Sequence[Call]) -> str:
    failed = sum(not call.has_passed for call in calls)
    hours = sum(call.seconds or 0.0 for call in calls) / 3600
    machines = {f"{call.machine.cores} CPUs, {call.machine.cpu}, Python {call.machine.python}" for call in calls}
    on_machines = machines.pop() if len(machines) == 1 else f"{len(machines)} kinds of machines"
    effort = f", {hours:.1f} hours" if hours else ""
    return f"{on}: {len(calls)} calls, {failed} of them failed{effort}, {_days(calls)}, on {on_machines}."


def _days(calls: Sequence[Call]) -> str:
    first, last = calls[0].began[:10], calls[-1].began[:10]
    return f"on {first}" if first == last else f"from {first} to {last}"


def _parts(calls: Sequence[Call], parts: Sequence[Part]) -> str:
    lines = [
        "## Newest proofs",
        "",
        "The part whose newest proof is oldest comes first.",
        "",
        "| part | newest proof | calls | failed | counted in all |",
        "|---|---|---:|---:|---|",
    ]
    for part in by_age([part for part in parts if any(call.part == part.name for call in calls)], calls):
        mine = [call for call in calls if call.part == part.name]
        passed = [call for call in mine if call.has_passed]
        newest = f"{passed[-1].began[:10]}, {passed[-1].version}" if passed else "none"
        name = f"{part.name}: {part.shows}" if part.shows else part.name
        lines.append(f"| {name} | {newest} | {len(mine)} | {len(mine) - len(passed)} | {counted(passed)} |")
    return "\n".join(lines)


def _failures(calls: Sequence[Call], parts: Sequence[Part]) -> str:
    names = {part.name for part in parts}
    lines = ["## Open failures", ""]
    failed = [call for call in open_failures(calls) if call.part in names]
    if not failed:
        return "\n".join([*lines, "None: every call that has failed has passed since, with the same seed."])
    for call in failed:
        lines.append(f"- `{call.command}`: exit code {call.code} on {call.began[:10]}, version {call.version}")
        lines += [f"  > {line.strip()[:200]}" for line in call.tail[-5:] if line.strip()]
    return "\n".join(lines)
