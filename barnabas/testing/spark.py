"""What tests of Spark's streams need: all that is there, processed now."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def process_available(stream: Any, checkpoint: str | Path, *, timeout: float = 120.0) -> list[Any]:
    """Have a streaming DataFrame process what its sources have, and stop; the rows of its output.

    With the same `checkpoint` the next call goes on where this one has ended. Errors of the query are raised, as
    StreamingQueryException; AssertionError if it does not end within `timeout` seconds.
    """
    rows: list[Any] = []

    def keep(batch: Any, _number: int) -> None:
        rows.extend(batch.collect())

    writer = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    if not query.awaitTermination(timeout):
        query.stop()
        raise AssertionError(f"The query has not processed all that was there within {timeout:g} s: {query.status}")
    return rows
