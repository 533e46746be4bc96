"""Summary tables of the results, for the terminal and the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from barnabas.spark.demo.aircraft import LATE_MINUTES
from barnabas.spark.demo.checks import Results

ROWS = 5


@dataclass(frozen=True)
class SummaryTable:
    """One table: its title, the job whose results it shows, and its rows."""

    title: str
    job: str
    rows: list[dict[str, object]]


def summary_tables(results: Results, airlines: dict[str, str]) -> list[SummaryTable]:
    """All tables."""
    return [
        SummaryTable("The busiest days", "analytics", _days(results, lambda day: -day["flights"])),
        SummaryTable(
            "The days with the most cancellations", "analytics", _days(results, lambda day: -day["cancelled"])
        ),
        SummaryTable("Airlines by the share of flights an hour late or more", "etl", _airlines(results, airlines)),
        SummaryTable(
            "Alerts: half of an airline's flights of a day were cancelled", "logs", _alerts(results, airlines)
        ),
        SummaryTable("The aircraft with the most miles", "events", _aircraft(results)),
    ]


def days(results: Results) -> dict[str, dict[str, Any]]:
    """The figures of each day, over all airports."""
    by_day: dict[str, dict[str, Any]] = {}
    for (day, _), figures in sorted(results.by_day.items()):
        total = by_day.setdefault(day, {"flights": 0, "cancelled": 0, "minutes": 0.0})
        total["flights"] += figures["flights"]
        total["cancelled"] += figures["cancelled"]
        total["minutes"] += figures.get("mean_delay", 0.0) * (figures["flights"] - figures["cancelled"])
    for total in by_day.values():
        total["mean_delay"] = total["minutes"] / max(total["flights"] - total["cancelled"], 1)
    return by_day


def _days(results: Results, rank: Any) -> list[dict[str, object]]:
    chosen = sorted(days(results).items(), key=lambda item: rank(item[1]))[:ROWS]
    return [
        {"day": day, "flights": total["flights"], "cancelled": total["cancelled"],
         "mean_delay_min": round(total["mean_delay"], 1)}
        for day, total in chosen
    ]  # fmt: skip


def _airlines(results: Results, airlines: dict[str, str]) -> list[dict[str, object]]:
    """Computed from the Parquet files."""
    frame = results.parquet.assign(late=results.parquet["dep_delay"] >= LATE_MINUTES)
    by_carrier = frame.groupby("carrier").agg(
        flights=("late", "size"), late=("late", "mean"), cancelled=("cancelled", "mean")
    )
    return [
        {"airline": airlines.get(carrier, carrier), "flights": int(row.flights), "late": f"{row.late:.1%}",
         "cancelled": f"{row.cancelled:.1%}"}
        for carrier, row in by_carrier.sort_values("late", ascending=False).head(ROWS).iterrows()
    ]  # fmt: skip


def _alerts(results: Results, airlines: dict[str, str]) -> list[dict[str, object]]:
    by_day: dict[str, list[dict[str, Any]]] = {}
    for (day, _), alert in sorted(results.alerts.items()):
        by_day.setdefault(day, []).append(alert)
    return [
        {"day": day, "alerts": len(own), "worst": airlines.get(worst["service"], worst["service"]),
         "cancelled": f"{worst['errors']} of {worst['requests']}"}
        for day, own in by_day.items()
        for worst in [max(own, key=lambda alert: alert["error_rate"])]
    ]  # fmt: skip


def _aircraft(results: Results) -> list[dict[str, object]]:
    ranked = sorted(results.aircraft.items(), key=lambda item: -item[1]["miles"])[:ROWS]
    return [{"aircraft": tail, **{name: state[name] for name in ("flights", "miles", "late", "last_dest")}}
            for tail, state in ranked]  # fmt: skip
