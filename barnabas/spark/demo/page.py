"""The report of the demonstration: one HTML page with tables, checks, times and plots; the plots also as files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jinja2
import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from barnabas.spark.demo.checks import Check, Results
from barnabas.spark.demo.summary import SummaryTable, days
from barnabas.spark.report.report import COLORS, SIZE, as_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TEMPLATE = Path(__file__).with_name("page.html")
BLUE, RED, GREEN, _ = COLORS
STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "barnabas", "font.size": 9}
"""SVG keeps text as text, and equal plots give equal files."""


class Timing(NamedTuple):
    """The duration of one step."""

    step: str
    records: int
    seconds: float

    @property
    def rate(self) -> float:
        """Records per second."""
        return self.records / max(self.seconds, 0.001)


def write_page(
    directory: Path,
    checks: Sequence[Check],
    tables: Sequence[SummaryTable],
    timings: Sequence[Timing],
    results: Results,
) -> Path:
    """Write `index.html`, and each plot as SVG and PNG; returns the page's path."""
    directory.mkdir(parents=True, exist_ok=True)
    plots = []
    with rc_context(STYLE):
        for name, draw in PLOTS.items():
            figure = Figure(figsize=SIZE, layout="constrained")
            draw(figure.subplots(), results, timings)
            figure.savefig(directory / f"{name}.png", dpi=110)
            figure.savefig(directory / f"{name}.svg", metadata={"Date": None})
            plots.append(as_svg(figure))
    page = directory / "index.html"
    template = jinja2.Environment(autoescape=True).from_string(TEMPLATE.read_text())
    page.write_text(template.render(checks=checks, tables=tables, timings=timings, plots=plots))
    return page


def _through_the_year(axes: Axes, results: Results, _: Sequence[Timing]) -> None:
    by_day = days(results)
    dates = _dates(by_day)
    axes.fill_between(
        dates, [day["flights"] for day in by_day.values()], color=BLUE, alpha=0.25, step="mid", label="flights"
    )
    axes.fill_between(dates, [day["cancelled"] for day in by_day.values()], color=RED, step="mid", label="cancelled")
    alert_days = sorted({key[0] for key in results.alerts})
    axes.plot(_dates(alert_days), [by_day[day]["cancelled"] for day in alert_days], "v", color=RED,
              markersize=5, label="alerts of the logs job")  # fmt: skip
    most = max(by_day, key=lambda day: by_day[day]["cancelled"])
    label = f"{most}: {by_day[most]['cancelled']} cancelled"
    axes.annotate(label, (_dates([most])[0], by_day[most]["cancelled"]), (8, 0), textcoords="offset points", fontsize=8)
    _finish(axes, "flights per day (analytics), and days with alerts (logs)")


def _delays(axes: Axes, results: Results, _: Sequence[Timing]) -> None:
    for origin, color in zip(sorted({origin for _, origin in results.by_day}), COLORS, strict=False):
        own = [(day, figures) for (day, airport), figures in sorted(results.by_day.items()) if airport == origin]
        weeks = [own[n : n + 7] for n in range(0, len(own), 7)]
        means = [_mean(week) for week in weeks]
        line = "-" if len(weeks) > 1 else "o"  # a line through one point would not be seen
        axes.plot(_dates(week[0][0] for week in weeks), means, line, color=color, label=origin)
    _finish(axes, "mean delay of departures in minutes, by week and airport (analytics)")


def _dates(texts: Iterable[str]) -> Any:
    return np.array(list(texts), dtype="datetime64[D]")


def _mean(week: Sequence[tuple[str, dict[str, float]]]) -> float:
    departed = [(day.get("mean_delay", 0.0), day["flights"] - day["cancelled"]) for _, day in week]
    return sum(mean * count for mean, count in departed) / max(sum(count for _, count in departed), 1)


def _hours(axes: Axes, results: Results, _: Sequence[Timing]) -> None:
    hours = results.parquet.groupby(results.parquet["scheduled"].dt.hour)["dep_delay"]
    for share, color in zip((0.5, 0.75, 0.9), (GREEN, BLUE, RED), strict=True):
        delays = hours.quantile(share)
        axes.plot(delays.index, delays.to_numpy(), "o-", markersize=3, color=color, label=f"{share:.0%} are within")
    axes.set_xticks(range(0, 24, 3))
    axes.set_xlabel("hour of the day")
    _finish(axes, "delay of departures in minutes, by hour (from the Parquet files of etl)", bottom=None)


def _steps(axes: Axes, _: Results, timings: Sequence[Timing]) -> None:
    names = [timing.step for timing in reversed(timings)]
    bars = axes.barh(names, [timing.seconds for timing in reversed(timings)], color=BLUE, height=0.6)
    axes.bar_label(bars, [f"{timing.rate:,.0f} records/s" for timing in reversed(timings)], padding=3, fontsize=8)
    axes.margins(x=0.2)
    axes.set_xlabel("seconds")
    axes.set_title("duration of each step", loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)


def _finish(axes: Axes, title: str, bottom: float | None = 0) -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_ylim(bottom=bottom)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False)


PLOTS: dict[str, Callable[[Axes, Results, Sequence[Timing]], None]] = {
    "year": _through_the_year,
    "delays": _delays,
    "hours": _hours,
    "steps": _steps,
}
"""The plots, by file name."""
