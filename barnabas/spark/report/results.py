"""Results of aggregations: as records of a topic, and as a table on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from barnabas.spark.frames.sql import named
from barnabas.spark.report.numbers import table_cells
from barnabas.terminal import screen
from barnabas.terminal.layout import lay_out
from barnabas.terminal.tables import printable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


CHANGES = "_changes"
"""The column with the number of records in a window; it grows with each update, so it identifies the update."""


def as_json_records(batch: DataFrame, name: str, identity: Sequence[str]) -> DataFrame:
    """One JSON object per row, with a key and an event id made of `identity` and the column of changes.

    A result has the same id each time it is written; a changed result has another.
    """
    key = f.to_json(f.struct(*map(named, identity)))
    return batch.select(
        key.alias("key"),
        f.to_json(f.struct(*[named(column) for column in batch.columns if column != CHANGES])).alias("value"),
        f.sha2(f.concat_ws("|", f.lit(name), key, f.col(CHANGES).cast("string")), 256).alias("event_id"),
    )


_shown_by: list[Callable[[str], None]] = []


def show_by(printer: Callable[[str], None] | None) -> None:
    """Print tables with this function, which does not overwrite a live display; None: on stdout again."""
    _shown_by[:] = [printer] if printer else []


def show(batch: DataFrame, rows: int, order: Sequence[str]) -> None:
    """Print the last `rows` rows of a batch of results in this order; nothing if it is empty."""
    batch = batch.drop(CHANGES)
    last = batch.orderBy(*[named(column).desc() for column in order]).limit(rows).collect()
    if last:
        text = table_text(batch.columns, [tuple(row) for row in reversed(last)])
        (_shown_by[0] if _shown_by else print)(f"{text}\n")


def table_text(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table that fits the terminal of stdout; off a terminal a row is one line."""
    texts, numeric = table_cells(rows, len(titles))
    width = screen.width() if screen.is_terminal(sys.stdout) else None
    cells = [list(map(printable, row)) for row in texts]
    return "\n".join(lay_out([title.upper() for title in titles], cells, numeric, width))
