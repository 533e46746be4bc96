"""Compares the results of the jobs with the expected ones (`expected.py`)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from barnabas.spark.demo import expected, topics
from barnabas.spark.demo.flights import BROKEN_EVENTS, BROKEN_LINES, FIELDS
from barnabas.spark.topics.kafka import EVENT_ID

if TYPE_CHECKING:
    from confluent_kafka import Message
    from pyspark.sql import SparkSession

ERROR_RATE, MIN_REQUESTS = 0.5, 20
"""The conditions for alerts in `logs.toml`."""
BY_DAY = ("flights", "cancelled", "mean_delay")
LOG = ("requests", "errors", "error_rate", "p50_ms", "p95_ms", "p99_ms")


@dataclass(frozen=True)
class Check:
    """One comparison."""

    job: str
    description: str
    passed: bool


def matching(job: str, what: str, results: Mapping[Any, Any], reference: Mapping[Any, Any]) -> Check:
    """Check that `found` has exactly the expected items."""
    correct = sum(key in results and results[key] == value for key, value in reference.items())
    more = len(results.keys() - reference.keys())
    description = f"{correct:,} of {len(reference):,} {what}" + (f", and {more:,} unexpected" if more else "")
    return Check(job, description, correct == len(reference) and not more)


def equal(job: str, what: str, result: int, reference: int) -> Check:
    """Check that a number is as expected."""
    return Check(job, f"{result:,} of {reference:,} {what}", result == reference)


@dataclass(frozen=True)
class Results:
    """The results of the jobs."""

    parquet: pd.DataFrame
    by_day: expected.DailyFigures
    log_by_day: expected.DailyFigures
    alerts: expected.DailyFigures
    aircraft: dict[str, dict[str, Any]]
    late: Counter[tuple[bytes, bytes]]
    """How often each pair of airline and flight is in the copied topic."""
    log_copies: int
    """Number of records in log-by-day; equal to the number of windows if none was written twice."""
    dead: dict[str, int]
    """Number of records by dead-letter topic; a repeated one, which at-least-once delivery allows, counts once."""
    digests: tuple[dict[int, str], dict[int, str]]
    """Hashes of the partitions of `flights` and `flights-restored`."""


def collect(spark: SparkSession, bootstrap: str, work: Path) -> Results:
    """Read the results: files with Spark, topics with confluent-kafka."""
    log = list(_objects(bootstrap, "log-by-day"))
    dead = [topic for topic in topics.OUTPUTS if topic.endswith("dead-letters")]
    return Results(
        parquet=spark.read.parquet(str(work / "flights.parquet")).toPandas(),
        by_day=_days(_objects(bootstrap, "flights-by-day"), "origin"),
        log_by_day=_days(log, "service"),
        alerts=_days(_objects(bootstrap, "log-alerts"), "service"),
        aircraft={m.key().decode(): json.loads(m.value()) for m in topics.read(bootstrap, "aircraft")},
        late=Counter((message.key(), message.value()) for message in topics.read(bootstrap, "flights-late")),
        log_copies=len(log),
        dead={topic: len({_event_id(m) for m in topics.read(bootstrap, topic)}) for topic in dead},
        digests=(_digests(bootstrap, "flights"), _digests(bootstrap, "flights-restored")),
    )


def _event_id(message: Message) -> object:
    return dict(message.headers() or []).get(EVENT_ID)


def _objects(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    return [json.loads(message.value()) for message in topics.read(bootstrap, topic)]


def _days(objects: list[dict[str, Any]], key: str) -> expected.DailyFigures:
    """The newest result of each day and key; a window is written again when it changes."""
    return {(result["window_start"][:10], result[key]): result for result in objects}


def _digests(bootstrap: str, topic: str) -> dict[int, str]:
    """A hash of each partition, over key, value, headers and timestamp of its records in order."""
    hashes: dict[int, Any] = {}
    for m in topics.read(bootstrap, topic):
        hashes.setdefault(m.partition(), hashlib.sha256()).update(
            repr((m.key(), m.value(), m.headers() or [], m.timestamp())).encode()
        )
    return {partition: digest.hexdigest() for partition, digest in hashes.items()}


def compare(results: Results, flights: pd.DataFrame) -> list[Check]:
    """All checks, in the order of the jobs."""
    log = expected.log_by_day(flights)
    expected_alerts = dict.fromkeys(expected.alerts(log, ERROR_RATE, MIN_REQUESTS), True)
    without_aircraft = int(flights["tailnum"].isna().sum())
    total, broken = len(flights), len(BROKEN_EVENTS)
    return [
        equal("etl", "flights in Parquet", len(results.parquet), total),
        equal("etl", "flights with every column as in the data file", _equal_rows(results.parquet, flights), total),
        equal("etl", "broken records in the dead-letter topic", results.dead["etl-dead-letters"], broken),
        matching(
            "analytics", "days and airports with the right figures", _only(results.by_day, BY_DAY),
            expected.by_day(flights),
        ),
        equal("analytics", "flights in the windows", sum(day["flights"] for day in results.by_day.values()), total),
        equal("logs", "lines in final windows", sum(day["requests"] for day in results.log_by_day.values()), total),
        matching("logs", "days and airlines with the right rates and percentiles", _only(results.log_by_day, LOG), log),
        equal("logs", "windows, each written once", results.log_copies, len(log)),
        matching("logs", "alerts as expected", dict.fromkeys(results.alerts, True), expected_alerts),
        equal("logs", "broken lines in the dead-letter topic", results.dead["log-dead-letters"], len(BROKEN_LINES)),
        matching("events", "aircraft with the right state", results.aircraft, expected.aircraft(flights)),
        equal(
            "events", "flights without an aircraft and broken records in the dead-letter topic",
            results.dead["events-dead-letters"], without_aircraft + broken,
        ),
        matching("restore", "partitions restored byte for byte", *reversed(results.digests)),
        matching("copy", "late flights copied, each once, byte for byte", results.late, expected.late(flights)),
    ]  # fmt: skip


def _only(results: expected.DailyFigures, names: tuple[str, ...]) -> expected.DailyFigures:
    """Only these figures; None for those that JSON omits, fractions rounded as in `expected.py`."""
    return {key: {name: _rounded(figures.get(name)) for name in names} for key, figures in results.items()}


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def _equal_rows(results: pd.DataFrame, flights: pd.DataFrame) -> int:
    """The number of flights with equal values in every column."""
    reference = flights[list(FIELDS)]
    return len(reference.merge(results[list(FIELDS)].astype(reference.dtypes.to_dict()), on=list(FIELDS)))
