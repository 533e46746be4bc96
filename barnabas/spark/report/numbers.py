"""Numbers as text for tables and reports: the numbers of one column have one form.

Thousands are separated. Fractions have as many digits as the smallest one of the column needs for three significant
digits, at most four.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

SIGNIFICANT, MOST_DIGITS = 3, 4


def column_texts(values: Sequence[object]) -> list[str]:
    """The cells of a column; `-` for None."""
    digits = max((_digits(value) for value in values if _is_fraction(value)), default=0)
    return [_text(value, digits) for value in values]


def table_cells(rows: Sequence[Sequence[object]], columns: int) -> tuple[list[list[str]], list[bool]]:
    """The rows of a table as texts, and which of its columns are numbers."""
    texts = [column_texts([row[at] for row in rows]) for at in range(columns)]
    numeric = [all(is_number(row[at]) for row in rows) for at in range(columns)]
    return [list(row) for row in zip(*texts, strict=True)], numeric


def is_number(value: object) -> bool:
    """Whether a cell is aligned to the right."""
    return value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool))


def _is_fraction(value: object) -> bool:
    return isinstance(value, float | Decimal) and math.isfinite(value)


def _digits(value: object) -> int:
    """Digits after the point that this value needs."""
    assert isinstance(value, float | Decimal)
    size = abs(float(value))
    before = math.floor(math.log10(size)) + 1 if size else SIGNIFICANT
    return min(MOST_DIGITS, max(1, SIGNIFICANT - before))


def _text(value: object, digits: int) -> str:
    if value is None:
        return "-"
    if not is_number(value):
        return str(value)
    if isinstance(value, int) and not digits:
        return f"{value:,}"
    return f"{value:,.{digits}f}"
