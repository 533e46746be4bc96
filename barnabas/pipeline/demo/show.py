"""The results as small tables, for the terminal and the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from barnabas.pipeline.demo.aircraft import LATE_MINUTES
from barnabas.pipeline.demo.checks import Results

LONGEST = 5


@dataclass(frozen=True)
class Answer:
    """A table: its title, its job, and its rows."""

    title: str
    job: str
    rows: list[dict[str, object]]


def answers(results: Results, airlines: dict[str, str]) -> list[Answer]:
    """All tables."""
    return [
        Answer("The busiest days", "analytics", _days(results, lambda day: -day["flights"])),
        Answer("The days with most cancellations", "analytics", _days(results, lambda day: -day["cancelled"])),
        Answer("Airlines, by the share of flights that were late by an hour", "etl", _airlines(results, airlines)),
        Answer("Alerts: half of an airline's flights of a day cancelled", "logs", _alerts(results, airlines)),
        Answer("The aircraft with most miles", "events", _aircraft(results)),
    ]


def days(results: Results) -> dict[str, dict[str, Any]]:
    """The values of each day, over all airports."""
    found: dict[str, dict[str, Any]] = {}
    for (day, _), values in sorted(results.by_day.items()):
        whole = found.setdefault(day, {"flights": 0, "cancelled": 0, "minutes": 0.0})
        whole["flights"] += values["flights"]
        whole["cancelled"] += values["cancelled"]
        whole["minutes"] += values.get("mean_delay", 0.0) * (values["flights"] - values["cancelled"])
    for whole in found.values():
        whole["mean_delay"] = whole["minutes"] / max(whole["flights"] - whole["cancelled"], 1)
    return found


def _days(results: Results, rank: Any) -> list[dict[str, object]]:
    chosen = sorted(days(results).items(), key=lambda item: rank(item[1]))[:LONGEST]
    return [
        {"day": day, "flights": values["flights"], "cancelled": values["cancelled"],
         "mean_delay_min": round(values["mean_delay"], 1)}
        for day, values in chosen
    ]  # fmt: skip


def _airlines(results: Results, airlines: dict[str, str]) -> list[dict[str, object]]:
    """From the Parquet files."""
    frame = results.parquet.assign(late=results.parquet["dep_delay"] >= LATE_MINUTES)
    values = frame.groupby("carrier").agg(
        flights=("late", "size"), late=("late", "mean"), cancelled=("cancelled", "mean")
    )
    return [
        {"airline": airlines.get(carrier, carrier), "flights": int(row.flights), "late": f"{row.late:.1%}",
         "cancelled": f"{row.cancelled:.1%}"}
        for carrier, row in values.sort_values("late", ascending=False).head(LONGEST).iterrows()
    ]  # fmt: skip


def _alerts(results: Results, airlines: dict[str, str]) -> list[dict[str, object]]:
    by_day: dict[str, list[dict[str, Any]]] = {}
    for (day, _), values in sorted(results.alerts.items()):
        by_day.setdefault(day, []).append(values)
    return [
        {"day": day, "alerts": len(own), "worst": airlines.get(worst["service"], worst["service"]),
         "cancelled": f"{worst['errors']} of {worst['requests']}"}
        for day, own in by_day.items()
        for worst in [max(own, key=lambda values: values["error_rate"])]
    ]  # fmt: skip


def _aircraft(results: Results) -> list[dict[str, object]]:
    ranked = sorted(results.aircraft.items(), key=lambda item: -item[1]["miles"])[:LONGEST]
    return [{"aircraft": tail, **{name: values[name] for name in ("flights", "miles", "late", "last_dest")}}
            for tail, values in ranked]  # fmt: skip
