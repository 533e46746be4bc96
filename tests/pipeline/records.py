"""Records in the form of Spark's Kafka source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from barnabas.spark.errors import MistakeError
from barnabas.spark.failures import sentence_of
from tests.support.spark.session import frame_of

TYPES = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
"""The columns of Spark's source, in its order."""
AT = datetime(2026, 1, 31, 12, tzinfo=UTC)


def record(value: bytes | str | None, offset: int = 0, **more: Any) -> tuple[Any, ...]:
    """One row; `more`: key, topic, partition, timestamp, headers."""
    encoded = value.encode() if isinstance(value, str) else value
    return (
        more.get("key"), encoded, more.get("topic", "in"), more.get("partition", 0), offset, more.get("timestamp", AT),
        0, more.get("headers"),
    )  # fmt: skip


def records(spark: Any, values: Sequence[bytes | str | tuple[Any, ...] | None]) -> Any:
    """A DataFrame of records: value n has offset n; rows are taken unchanged."""
    rows = [value if isinstance(value, tuple) else record(value, offset) for offset, value in enumerate(values)]
    return frame_of(spark, [(*row[:-1], _headers(row[-1])) for row in rows], TYPES)


def _headers(headers: Sequence[tuple[str, bytes | None]] | None) -> list[dict[str, Any]] | None:
    return None if headers is None else [{"key": key, "value": value} for key, value in headers]


def plain(row: Any) -> dict[str, Any]:
    """A row as a dict, binary as bytes, without the position columns."""
    columns = row.asDict(recursive=True)
    return {
        name: bytes(value) if isinstance(value, bytearray) else value
        for name, value in columns.items()
        if not name.startswith("_")
    }


@contextmanager
def mistake(message: str) -> Iterator[None]:
    """Expect a MistakeError whose one-line text matches `message`."""
    from pyspark.errors import PySparkException

    with pytest.raises(MistakeError, match=message) as caught:  # noqa: PT012 - as a run does it
        try:
            yield
        except PySparkException as error:
            raise sentence_of(error, "here") from error
    text = str(caught.value)
    assert "\n" not in text
    assert "SQLSTATE" not in text
    assert "_record" not in text
