"""The expected results, computed from the data file with pandas, without a broker and Spark."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from barnabas.pipeline.demo.aircraft import LATE_MINUTES
from barnabas.pipeline.demo.flights import events, latency_ms

Days = dict[tuple[str, str], dict[str, Any]]
"""Values by day and another key."""


def by_day(flights: pd.DataFrame) -> Days:
    """By day and airport: flights, cancelled and mean_delay (None if all were cancelled)."""
    grouped = _grouped(flights, "origin")["dep_delay"]
    table = pd.DataFrame({"flights": grouped.size(), "left": grouped.count(), "mean_delay": grouped.mean()})
    return {
        key: {
            "flights": row.flights,
            "cancelled": row.flights - row.left,
            "mean_delay": round(float(row.mean_delay), 6) if row.left else None,
        }
        for key, row in zip(table.index, table.itertuples(), strict=True)
    }


def log_by_day(flights: pd.DataFrame) -> Days:
    """By day and airline: requests, errors, error_rate, and percentiles of the delay in milliseconds."""
    found: Days = {}
    for key, delays in _grouped(flights, "carrier")["dep_delay"]:
        latencies = sorted(latency_ms(int(delay)) for delay in delays.dropna())
        errors = len(delays) - len(latencies)
        found[key] = {
            "requests": len(delays), "errors": errors, "error_rate": round(errors / len(delays), 6),
            "p50_ms": _percentile(latencies, 0.5), "p95_ms": _percentile(latencies, 0.95),
            "p99_ms": _percentile(latencies, 0.99),
        }  # fmt: skip
    return found


def alerts(log: Days, error_rate: float, min_requests: int) -> set[tuple[str, str]]:
    """The days and airlines with an alert."""
    return {
        key
        for key, one in log.items()
        if one["requests"] >= min_requests and one["errors"] >= error_rate * one["requests"]
    }


def aircraft(flights: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """By aircraft: flights, miles, cancelled, late and last_dest."""
    known = flights[flights["tailnum"].notna()]
    left = known[known["dep_delay"].notna()]
    table = pd.DataFrame(
        {
            "flights": left.groupby("tailnum").size(),
            "miles": left.groupby("tailnum")["distance"].sum(),
            "late": left[left["dep_delay"] >= LATE_MINUTES].groupby("tailnum").size(),
            "last_dest": left.groupby("tailnum")["dest"].last(),
        },
        index=sorted(known["tailnum"].unique()),
    )
    numbers = table.drop(columns="last_dest").fillna(0).astype(int)
    numbers["cancelled"] = known.groupby("tailnum").size() - numbers["flights"]
    states: dict[str, dict[str, Any]] = numbers.to_dict("index")
    last = table["last_dest"].astype(object).where(table["last_dest"].notna(), None)
    return {tail: state | {"last_dest": last[tail]} for tail, state in states.items()}


def late(flights: pd.DataFrame) -> Counter[tuple[bytes, bytes]]:
    """The flights with a delay of an hour or more, as produced, by airline."""
    chosen = flights[(flights["dep_delay"] >= LATE_MINUTES).fillna(value=False)]
    return Counter(
        (carrier.encode(), event.value.encode())
        for carrier, event in zip(chosen["carrier"], events(chosen), strict=False)  # invalid ones follow
        if event.value is not None
    )


def _grouped(flights: pd.DataFrame, what: str) -> Any:
    return flights.groupby([flights["scheduled"].dt.strftime("%Y-%m-%d"), what])


def _percentile(ordered: list[int], share: float) -> float | None:
    """The smallest number that is not exceeded by this share of the numbers."""
    return float(ordered[math.ceil(np.round(share * len(ordered), 9)) - 1]) if ordered else None
