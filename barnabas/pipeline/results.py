"""Results of aggregations: as records of a topic, and as a table on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from barnabas.pipeline.sql import named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def as_json_records(batch: DataFrame, name: str, identity: Sequence[str], version: str) -> DataFrame:
    """One JSON object per row, with a key and an event id made of `identity`; the id includes the `version` column.

    A result has the same id each time it is written; a changed result has another.
    """
    key = f.to_json(f.struct(*map(named, identity)))
    return batch.select(
        key.alias("key"),
        f.to_json(f.struct(*[named(column) for column in batch.columns if column != version])).alias("value"),
        f.sha2(f.concat_ws("|", f.lit(name), key, f.col(version).cast("string")), 256).alias("event_id"),
    )


_shown_by: list[Callable[[Table], None]] = []


def show_by(printer: Callable[[Table], None] | None) -> None:
    """Print tables with this function, which does not overwrite a live display; None: on stdout again."""
    _shown_by[:] = [printer] if printer else []


def show(batch: DataFrame, rows: int, order: Sequence[str]) -> None:
    """Print the last `rows` rows of a batch in this order; nothing if it is empty."""
    found = batch.orderBy(*[named(column).desc() for column in order]).limit(rows).collect()
    if not found:
        return
    table = Table(*map(escape, batch.columns))
    for row in reversed(found):
        table.add_row(*(Text(_cell(value)) for value in row))
    printer = _shown_by[0] if _shown_by else Console(file=sys.stdout).print
    printer(table)


def _cell(value: object) -> str:
    return "-" if value is None else f"{value:,.4g}" if isinstance(value, float) else str(value)
