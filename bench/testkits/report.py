"""The tables as Markdown, and their place in docs/evidence/comparison.md."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Mapping, Sequence

from bench.report import machine
from bench.testkits import kafka_native
from bench.testkits.behaviours import Behaviour, Outcome
from bench.testkits.measure import Figures
from bench.testkits.product import Product
from tests.support.processes.server import ROOT

PAGE = ROOT / "docs" / "evidence" / "comparison.md"
COLUMNS = {"start s": "start, s", "isolation ms": "isolation, ms", "test ms": "whole test, ms", "memory MB": "MB"}
NOT_TRIED = Outcome(False, "")

Outcomes = Mapping[str, Mapping[str, Outcome]]
"""By product and behaviour."""


def times_table(products: Mapping[str, type[Product]], figures: Mapping[str, Sequence[Figures]]) -> str:
    """A row for each product: medians, and what was not measured."""
    lines = [_row("", "version", *COLUMNS.values(), "a test has"), _row(*["---"] * (3 + len(COLUMNS)))]
    for name, product in products.items():
        if runs := figures.get(name):
            cells = [_number([run[column] for run in runs]) for column in COLUMNS]
            lines.append(_row(product.title, product.version(), *cells, product.isolation))
        else:
            why = product.missing() or "not measured"
            lines.append(_row(product.title, "", why, *[""] * len(COLUMNS)))
    lines.append(_row(kafka_native.TITLE, "", "not run", *[""] * (len(COLUMNS) - 1), "new names, or a new container"))
    return "\n".join(lines)


def _number(values: Sequence[float]) -> str:
    """The median with three digits, and the smallest and largest in brackets."""
    shown = [f"{value:.0f}" if value >= 100 else f"{value:.3g}" for value in values]
    median = statistics.median(values)
    text = f"{median:.0f}" if median >= 100 else f"{median:.3g}"
    return text if len(set(shown)) == 1 else f"{text} ({min(shown, key=float)}–{max(shown, key=float)})"


def behaviours_table(
    products: Mapping[str, type[Product]], behaviours: Mapping[str, Behaviour], outcomes: Outcomes
) -> str:
    """A row for each behaviour: yes, or the number of the reason below."""
    tried = [name for name in products if outcomes.get(name)]
    lines = [_row("", *(products[name].title for name in tried)), _row(*["---"] * (1 + len(tried)))]
    reasons: list[str] = []
    for key, behaviour in behaviours.items():
        cells = []
        for name in tried:
            outcome = outcomes[name].get(key, NOT_TRIED)
            if outcome.passed:
                cells.append("yes")
            else:
                reasons.append(f"{products[name].title}, “{behaviour.title}”: {outcome.reason or 'not tried'}")
                cells.append(f"no ({len(reasons)})")
        lines.append(_row(behaviour.title, *cells))
    totals = [sum(outcomes[name].get(key, NOT_TRIED).passed for key in behaviours) for name in tried]
    lines.append(_row(f"**of {len(behaviours)}**", *(f"**{total}**" for total in totals)))
    numbered = [f"{number}. {_plain(reason)}" for number, reason in enumerate(reasons, 1)]
    return "\n".join([*lines, "", "What the others did:", "", *numbered] if numbered else lines)


def _plain(text: str) -> str:
    """Text of an error as text of a page."""
    for sign in "\\`*_<>[]|":
        text = text.replace(sign, f"\\{sign}")
    return text


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def state_of_the_machine() -> str:
    """A sentence about the machine and its load."""
    return f"{machine()}; Python {platform.python_version()}; load average {os.getloadavg()[0]:.1f} at the end"


def write_page(part: str, text: str) -> None:
    """Replace what stands between two marks of the page: `<!-- PART: begin -->` and `<!-- PART: end -->`."""
    begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    PAGE.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
