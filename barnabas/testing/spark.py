"""A helper for tests of Spark's streams: it processes all available records at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def process_available(stream: Any, checkpoint: str | Path, *, timeout: float = 120.0) -> list[Any]:
    """Let a streaming DataFrame process all available records, and stop; the rows of its output.

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
