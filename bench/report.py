"""The table: medians, ratios, what the project wants, on the terminal and in `bench/RESULTS.md`."""

from __future__ import annotations

import datetime as dt
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from bench.cases import LOWER_IS_BETTER, Case, Goal
from bench.real_kafka import VERSION as KAFKA_VERSION

HEADINGS = ("case", "figure", "Barnabas", "Kafka", "ratio", "to reach", "", "load")
WIDTHS = (42, 9, 11, 11, 7, 16, 5, 5)
READING = (
    "Medians of {runs}; ratio is Barnabas to Kafka; everything on the loopback, brokers and load on the same cores."
    " Both have Kafka's default settings (nothing waits for the disk); Kafka runs with a 1 GB heap and G1, and both are"
    " warmed up first. CPU is the broker's own, per 10^9 bytes of payload. Load is the machine's one-minute load"
    " average when the row was done."
)
PACKAGES = ("barnabas", "trio", "confluent-kafka", "construct", "crc32c")


@dataclass(frozen=True)
class Line:
    """One row: medians of both brokers; `met` is None where nothing was promised."""

    case: str
    figure: str
    barnabas: float
    kafka: float
    spread: tuple[float, float]
    goal: str
    met: bool | None
    load: float

    @property
    def ratio(self) -> float:
        """Barnabas to Kafka."""
        return self.barnabas / self.kafka if self.kafka else float("inf")

    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        met = {None: "", True: "yes", False: "NO"}[self.met]
        return (
            self.case, self.figure, number(self.barnabas), number(self.kafka), f"{self.ratio:.2f}x", self.goal, met,
            f"{self.load:.1f}",
        )  # fmt: skip


def number(value: float) -> str:
    """Three significant digits, thousands apart."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def lines_of(case: Case, samples: Mapping[str, Mapping[str, list[float]]], load: float) -> Iterator[Line]:
    """One line a figure of a case."""
    for figure, by_kind in samples.items():
        ours, theirs = (statistics.median(by_kind[kind]) for kind in ("barnabas", "kafka"))
        spread = (min(by_kind["barnabas"]), max(by_kind["barnabas"]))
        goal = case.goals.get(figure)
        text, met = ("", None) if goal is None else _judged(goal, figure, ours, theirs)
        yield Line(case.name, figure, ours, theirs, spread, text, met, load)


def _judged(goal: Goal, figure: str, ours: float, theirs: float) -> tuple[str, bool]:
    lower = figure in LOWER_IS_BETTER
    text = f"{'≤' if lower else '≥'} {goal.ratio:g}x"
    met = ours <= goal.ratio * theirs if lower else ours >= goal.ratio * theirs
    if goal.limit is not None:
        text += f", < {goal.limit:g}"
        met = met and ours < goal.limit
    return text, met


def print_header() -> None:
    """The headings of the table on the terminal."""
    _print_cells(HEADINGS)


def print_line(line: Line) -> None:
    """One row on the terminal."""
    _print_cells(line.cells())


def _print_cells(cells: tuple[str, ...]) -> None:
    left = {0, 1, 5, 6}
    pairs = zip(cells, WIDTHS, strict=True)
    print(" ".join(f"{c:<{w}}" if n in left else f"{c:>{w}}" for n, (c, w) in enumerate(pairs)).rstrip(), flush=True)


def machine() -> str:
    """Cores, memory, kernel; no names."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    model = found[1].strip() if found else platform.machine()
    memory = psutil.virtual_memory().total / 2**30
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB, {platform.system()} {platform.release()}"


def versions() -> str:
    """What took part."""
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()
    parts = [f"Python {platform.python_version()}", f"Apache Kafka {KAFKA_VERSION}", (java or ["no Java"])[0]]
    for package in PACKAGES:
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(parts)


def write_markdown(path: Path, lines: list[Line], runs: int, *, quick: bool) -> None:
    """Write the table with what one has to know to read it."""
    today = dt.datetime.now(dt.UTC).date().isoformat()
    text = [
        "# Barnabas beside Apache Kafka",
        "",
        f"{today}, `python -m bench{' --quick' if quick else ''}`. {machine()}. {versions()}.",
        "",
        READING.format(runs=f"{runs} alternating run{'s' if runs > 1 else ''}"),
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "|---|---|---:|---:|---:|---|---|---:|",
    ]
    text += ["| " + " | ".join(line.cells()) + " |" for line in lines]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(text) + "\n")
