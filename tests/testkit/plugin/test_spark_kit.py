"""Spark's streams in tests: existing records are processed, a second call goes on, trimmed records are data loss.

The session is shared with the other tests; the fixture `kafka_spark` is in `test_examples.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.testing import Cluster
from barnabas.testing.spark import process_available
from tests.support.spark.session import MARKS

pytestmark = MARKS


@pytest.fixture(scope="session")
def kafka_spark(spark_session: Any) -> Any:
    """The session of this process."""
    return spark_session


def _stream(spark: Any, options: dict[str, str]) -> Any:
    reader = spark.readStream.format("kafka").options(**options)
    frame = reader.option("subscribe", "orders").option("startingOffsets", "earliest").load()
    return frame.selectExpr("CAST(value AS STRING) AS value")


def _values(rows: list[Any]) -> list[str]:
    return sorted(row.value for row in rows)


def test_what_is_there_is_processed(
    kafka: Cluster, kafka_options: dict[str, str], kafka_spark: Any, tmp_path: Path
) -> None:
    orders, checkpoint = kafka.topic("orders"), tmp_path / "checkpoint"
    orders.create(2)
    for value in ("a", "b", "c"):
        orders.produce(value)
    assert _values(process_available(_stream(kafka_spark, kafka_options), checkpoint)) == ["a", "b", "c"]
    orders.produce("d")
    assert _values(process_available(_stream(kafka_spark, kafka_options), checkpoint)) == ["d"]
    assert process_available(_stream(kafka_spark, kafka_options), checkpoint) == []


@pytest.mark.soak
def test_a_start_by_time(kafka: Cluster, kafka_options: dict[str, str], kafka_spark: Any, tmp_path: Path) -> None:
    for timestamp in (1000, 2000, 3000):
        kafka.topic("orders").produce(str(timestamp), timestamp=timestamp)
    options = kafka_options | {"startingTimestamp": "2000"}
    assert _values(process_available(_stream(kafka_spark, options), tmp_path / "checkpoint")) == ["2000", "3000"]


@pytest.mark.soak
def test_records_that_are_gone_are_data_loss(
    kafka: Cluster, kafka_options: dict[str, str], kafka_spark: Any, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    orders, checkpoint = kafka.topic("orders"), tmp_path / "checkpoint"
    orders.produce("a")
    assert _values(process_available(_stream(kafka_spark, kafka_options), checkpoint)) == ["a"]
    orders.produce("b")
    orders.trim()
    orders.produce("c")
    with pytest.raises(StreamingQueryException, match="failOnDataLoss"):
        process_available(_stream(kafka_spark, kafka_options), checkpoint)
    tolerant = kafka_options | {"failOnDataLoss": "false"}
    assert _values(process_available(_stream(kafka_spark, tolerant), checkpoint)) == ["c"]


@pytest.mark.soak
@pytest.mark.kafka(auth="scram", tls=True)
def test_a_session_that_logs_in(
    kafka: Cluster, kafka_options: dict[str, str], kafka_spark: Any, tmp_path: Path
) -> None:
    kafka.topic("orders").produce("a")
    assert _values(process_available(_stream(kafka_spark, kafka_options), tmp_path / "checkpoint")) == ["a"]
