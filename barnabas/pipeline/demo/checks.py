"""Compares results with expected values: each check says what was compared and whether it passed."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from barnabas.pipeline.demo import topics, truth
from barnabas.pipeline.demo.flights import BROKEN_EVENTS, BROKEN_LINES, FIELDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ERROR_RATE, MIN_REQUESTS = 0.5, 20
"""The condition for alerts in `logs.toml`."""
BY_DAY = ("flights", "cancelled", "mean_delay")
LOG = ("requests", "errors", "error_rate", "p50_ms", "p95_ms", "p99_ms")


@dataclass(frozen=True)
class Check:
    """One comparison."""

    job: str
    says: str
    holds: bool


def matching(job: str, what: str, found: Mapping[Any, Any], wanted: Mapping[Any, Any]) -> Check:
    """Check that all expected values were found, and no others."""
    equal = sum(key in found and found[key] == value for key, value in wanted.items())
    more = len(found.keys() - wanted.keys())
    says = f"{equal:,} of {len(wanted):,} {what}" + (f", and {more:,} that should not be" if more else "")
    return Check(job, says, equal == len(wanted) and not more)


def counted(job: str, what: str, found: int, wanted: int) -> Check:
    """Check a number."""
    return Check(job, f"{found:,} of {wanted:,} {what}", found == wanted)


@dataclass(frozen=True)
class Results:
    """The results of the jobs."""

    parquet: pd.DataFrame
    by_day: truth.Days
    log_by_day: truth.Days
    alerts: truth.Days
    aircraft: dict[str, dict[str, Any]]
    late: Counter[tuple[bytes, bytes]]
    """The number of copies of each airline and flight."""
    log_copies: int
    """Number of window records of the log; equals the number of windows if none was written twice."""
    dead: dict[str, int]
    """Number of records by dead-letter topic."""
    digests: tuple[dict[int, str], dict[int, str]]
    """Hashes of `flights` and `flights-restored`, by partition."""


def collect(spark: SparkSession, bootstrap: str, work: Path) -> Results:
    """Read the results: files with Spark, topics with confluent-kafka."""
    log = list(_objects(bootstrap, "log-by-day"))
    dead = [topic for topic in topics.WRITTEN if topic.endswith("dead-letters")]
    return Results(
        parquet=spark.read.parquet(str(work / "flights.parquet")).toPandas(),
        by_day=_days(_objects(bootstrap, "flights-by-day"), "origin"),
        log_by_day=_days(log, "service"),
        alerts=_days(_objects(bootstrap, "log-alerts"), "service"),
        aircraft={m.key().decode(): json.loads(m.value()) for m in topics.read(bootstrap, "aircraft")},
        late=Counter((message.key(), message.value()) for message in topics.read(bootstrap, "flights-late")),
        log_copies=len(log),
        dead={topic: sum(1 for _ in topics.read(bootstrap, topic)) for topic in dead},
        digests=(_digests(bootstrap, "flights"), _digests(bootstrap, "flights-restored")),
    )


def _objects(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    return [json.loads(message.value()) for message in topics.read(bootstrap, topic)]


def _days(objects: list[dict[str, Any]], what: str) -> truth.Days:
    """The newest value of each day and key; a changed window is written again."""
    return {(row["window_start"][:10], row[what]): row for row in objects}


def _digests(bootstrap: str, topic: str) -> dict[int, str]:
    """A hash of each partition: key, value, headers and timestamp of every record, in order."""
    hashes: dict[int, Any] = {}
    for m in topics.read(bootstrap, topic):
        hashes.setdefault(m.partition(), hashlib.sha256()).update(
            repr((m.key(), m.value(), m.headers() or [], m.timestamp())).encode()
        )
    return {partition: found.hexdigest() for partition, found in hashes.items()}


def compare(results: Results, flights: pd.DataFrame) -> list[Check]:
    """All checks, in the order of the jobs."""
    log = truth.log_by_day(flights)
    wanted_alerts = dict.fromkeys(truth.alerts(log, ERROR_RATE, MIN_REQUESTS), True)
    nameless = int(flights["tailnum"].isna().sum())
    total, broken = len(flights), len(BROKEN_EVENTS)
    return [
        counted("etl", "flights in Parquet", len(results.parquet), total),
        counted("etl", "flights with every column as in the data file", _equal(results.parquet, flights), total),
        counted("etl", "broken records in the dead-letter topic", results.dead["etl-dead-letters"], broken),
        matching(
            "analytics", "days and airports with the right numbers", _only(results.by_day, BY_DAY),
            truth.by_day(flights),
        ),
        counted("analytics", "flights in them", sum(row["flights"] for row in results.by_day.values()), total),
        counted("logs", "lines in final windows", sum(row["requests"] for row in results.log_by_day.values()), total),
        matching("logs", "days and airlines with the right rates and percentiles", _only(results.log_by_day, LOG), log),
        counted("logs", "records with windows, each written once", results.log_copies, len(log)),
        matching("logs", "alerts, the right ones", dict.fromkeys(results.alerts, True), wanted_alerts),
        counted("logs", "broken lines in the dead-letter topic", results.dead["log-dead-letters"], len(BROKEN_LINES)),
        matching("events", "aircraft with the right state", results.aircraft, truth.aircraft(flights)),
        counted(
            "events", "flights without an aircraft, and broken ones, in the dead-letter topic",
            results.dead["events-dead-letters"], nameless + broken,
        ),
        matching("restore", "partitions restored byte for byte", *reversed(results.digests)),
        matching("copy", "late flights copied, each once, byte for byte", results.late, truth.late(flights)),
    ]  # fmt: skip


def _only(found: truth.Days, names: tuple[str, ...]) -> truth.Days:
    """The values with these names; None if missing in JSON, rounded like the expected values."""
    return {key: {name: _rounded(row.get(name)) for name in names} for key, row in found.items()}


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def _equal(found: pd.DataFrame, flights: pd.DataFrame) -> int:
    """The number of flights with the same value in every column."""
    wanted = flights[list(FIELDS)]
    return len(wanted.merge(found[list(FIELDS)].astype(wanted.dtypes.to_dict()), on=list(FIELDS)))
