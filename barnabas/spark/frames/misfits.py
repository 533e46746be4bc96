"""Why a record is a dead letter: the kind of the mistake, which is counted, and what the record held.

The kinds of a job are known before it runs; what a record held is not, and is cut to a length that fits a header.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark.sql import Column

LONGEST_HELD = 100
"""How many characters of what a record held a reason shows."""


@dataclass(frozen=True)
class Misfit:
    """One mistake that a record can have, or several that are looked for only if `when` is true (`inner`)."""

    kind: str
    when: Column
    held: Column | None = None
    """What the record held instead, as text."""
    inner: tuple[Misfit, ...] = ()


def shortened(text: Column) -> Column:
    """The start of a text."""
    cut = f.concat(f.substring(text, 1, LONGEST_HELD), f.lit("..."))
    return f.when(f.length(text) > LONGEST_HELD, cut).otherwise(text)


def first_kind(misfits: Sequence[Misfit]) -> Column:
    """The kind of the first mistake of a record; null if it has none."""
    return _first(
        [f.when(misfit.when, first_kind(misfit.inner) if misfit.inner else f.lit(misfit.kind)) for misfit in misfits]
    )


def first_reason(misfits: Sequence[Misfit]) -> Column:
    """The kind of the first mistake of a record and what it held; null if it has none."""
    return _first(
        [f.when(misfit.when, first_reason(misfit.inner) if misfit.inner else _text(misfit)) for misfit in misfits]
    )


def kinds_of(misfits: Iterable[Misfit]) -> list[str]:
    """Every kind, once, in the order in which they are looked for."""
    kinds = [kind for misfit in misfits for kind in (kinds_of(misfit.inner) if misfit.inner else [misfit.kind])]
    return list(dict.fromkeys(kinds))


def _first(columns: list[Column]) -> Column:
    return f.coalesce(*columns) if columns else f.lit(None).cast("string")


def _text(misfit: Misfit) -> Column:
    if misfit.held is None:
        return f.lit(misfit.kind)
    return f.concat(f.lit(misfit.kind), f.coalesce(f.concat(f.lit(": "), misfit.held), f.lit("")))
