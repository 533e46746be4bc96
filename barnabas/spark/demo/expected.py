"""The expected results, computed from the data file with pandas, without a broker or Spark."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from barnabas.spark.demo.aircraft import LATE_MINUTES
from barnabas.spark.demo.flights import events, latency_ms

DailyFigures = dict[tuple[str, str], dict[str, Any]]
"""Figures by day and airport, or by day and airline."""


def by_day(flights: pd.DataFrame) -> DailyFigures:
    """flights, cancelled and mean_delay of each day and airport; mean_delay is None if all were cancelled."""
    grouped = _grouped(flights, "origin")["dep_delay"]
    figures = pd.DataFrame({"flights": grouped.size(), "departed": grouped.count(), "mean_delay": grouped.mean()})
    return {
        key: {
            "flights": row.flights,
            "cancelled": row.flights - row.departed,
            "mean_delay": round(float(row.mean_delay), 6) if row.departed else None,
        }
        for key, row in zip(figures.index, figures.itertuples(), strict=True)
    }


def log_by_day(flights: pd.DataFrame) -> DailyFigures:
    """requests, errors, error_rate and the percentiles of delay (milliseconds) of each day and airline."""
    figures_by_day: DailyFigures = {}
    for key, delays in _grouped(flights, "carrier")["dep_delay"]:
        latencies = sorted(latency_ms(int(delay)) for delay in delays.dropna())
        errors = len(delays) - len(latencies)
        figures_by_day[key] = {
            "requests": len(delays), "errors": errors, "error_rate": round(errors / len(delays), 6),
            "p50_ms": _percentile(latencies, 0.5), "p95_ms": _percentile(latencies, 0.95),
            "p99_ms": _percentile(latencies, 0.99),
        }  # fmt: skip
    return figures_by_day


def alerts(log: DailyFigures, error_rate: float, min_requests: int) -> set[tuple[str, str]]:
    """The days and airlines for which an alert is expected."""
    return {
        key
        for key, figures in log.items()
        if figures["requests"] >= min_requests and figures["errors"] >= error_rate * figures["requests"]
    }


def aircraft(flights: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """The state of each aircraft: flights, miles, cancelled, late and last_dest."""
    with_aircraft = flights[flights["tailnum"].notna()]
    departed = with_aircraft[with_aircraft["dep_delay"].notna()]
    table = pd.DataFrame(
        {
            "flights": departed.groupby("tailnum").size(),
            "miles": departed.groupby("tailnum")["distance"].sum(),
            "late": departed[departed["dep_delay"] >= LATE_MINUTES].groupby("tailnum").size(),
            "last_dest": departed.groupby("tailnum")["dest"].last(),
        },
        index=sorted(with_aircraft["tailnum"].unique()),
    )
    counts = table.drop(columns="last_dest").fillna(0).astype(int)
    counts["cancelled"] = with_aircraft.groupby("tailnum").size() - counts["flights"]
    states: dict[str, dict[str, Any]] = counts.to_dict("index")
    last = table["last_dest"].astype(object).where(table["last_dest"].notna(), None)
    return {tail: state | {"last_dest": last[tail]} for tail, state in states.items()}


def late(flights: pd.DataFrame) -> Counter[tuple[bytes, bytes]]:
    """Each flight with a delay of an hour or more, once: its airline and the value that was produced."""
    chosen = flights[(flights["dep_delay"] >= LATE_MINUTES).fillna(value=False)]
    return Counter(
        (carrier.encode(), event.value.encode())
        for carrier, event in zip(chosen["carrier"], events(chosen), strict=False)  # the broken records follow
        if event.value is not None
    )


def _grouped(flights: pd.DataFrame, column: str) -> Any:
    return flights.groupby([flights["scheduled"].dt.strftime("%Y-%m-%d"), column])


def _percentile(ordered: list[int], share: float) -> float | None:
    """The smallest value that is at least as large as this share of the values."""
    return float(ordered[math.ceil(np.round(share * len(ordered), 9)) - 1]) if ordered else None
