"""The report: medians, ratios and goals, on the terminal and in `bench/RESULTS.md`."""

from __future__ import annotations

import datetime as dt
import os
import platform
import re
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from bench.cases.case import KINDS, Case, Group
from bench.noise import Noise
from scripts.pages.prose import format_page
from tests.support.processes.kafka import VERSION as KAFKA_VERSION

HEADINGS = ("case", "figure", "{}", "{}", "ratio", "goal", "", "load", "steal", "idle")
WIDTHS = (44, 13, 11, 11, 7, 16, 5, 5, 6, 5)
READING = (
    "Medians of {runs}, with the other broker paused. Ratio is Barnabas divided by Kafka. Broker and load run on the"
    " same cores and use the loopback interface. Settings are defaults except those named at each table. Kafka has a 1"
    " GB heap and G1. Both brokers are warmed up. CPU s/GB is the broker's, per 10^9 bytes of payload. Load is the"
    " machine's one-minute load average after the row (including the row's own), steal the share of CPU time that the"
    " host used, idle the unused share."
)
PACKAGES = ("barnabas", "trio", "confluent-kafka", "construct", "crc32c")


@dataclass(frozen=True)
class Line:
    """One row: the medians of both brokers; `met` is None without a goal."""

    case: str
    figure: str
    barnabas: float
    kafka: float
    goal: str
    met: bool | None
    noise: Noise

    @property
    def ratio(self) -> float:
        """Barnabas divided by Kafka."""
        return self.barnabas / self.kafka if self.kafka else float("inf")

    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        met = {None: "", True: "yes", False: "NO"}[self.met]
        noise = self.noise
        return (
            self.case, self.figure, number(self.barnabas), number(self.kafka), f"{self.ratio:.2f}x", self.goal, met,
            f"{noise.load:.1f}", f"{noise.steal:.0%}", f"{noise.idle:.0%}",
        )  # fmt: skip


def number(value: float) -> str:
    """Three significant digits; thousands separators from 1,000 on."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def lines_of(case: Case, samples: Mapping[str, Mapping[str, list[float]]], noise: Noise) -> Iterator[Line]:
    """One line per figure of a case."""
    for figure, by_kind in samples.items():
        ours, theirs = (statistics.median(by_kind[kind]) for kind in KINDS)
        goal = case.goals.get(figure)
        text, met = ("", None) if goal is None else goal.check(figure, ours, theirs)
        yield Line(case.name, figure, ours, theirs, text, met, noise)


def print_header(group: Group) -> None:
    """Print a group's description and the headings of its table."""
    print(f"\n{group.title}. {group.text}\n{group.settings()}\n")
    _print_cells(_headings(group))


def _headings(group: Group) -> tuple[str, ...]:
    sides = iter(group.sides)
    return tuple(next(sides) if heading == "{}" else heading for heading in HEADINGS)


def print_line(line: Line) -> None:
    """Print one row."""
    _print_cells(line.cells())


def _print_cells(cells: tuple[str, ...]) -> None:
    left_aligned = {0, 1, 5, 6}
    pairs = zip(cells, WIDTHS, strict=True)
    print(
        " ".join(f"{c:<{w}}" if n in left_aligned else f"{c:>{w}}" for n, (c, w) in enumerate(pairs)).rstrip(),
        flush=True,
    )


def machine() -> str:
    """Cores, memory, kernel and file system, as text; without the host's name."""
    info = Path("/proc/cpuinfo")
    match = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    model = match[1].strip() if match else platform.machine()
    memory = psutil.virtual_memory().total / 2**30
    kernel = f"{platform.system()} {platform.release()}"
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB, {kernel}, data on {file_system(tempfile.gettempdir())}"


def file_system(folder: str) -> str:
    """The type of the file system that `folder` is on."""
    mounts = [
        partition for partition in psutil.disk_partitions(all=True) if Path(folder).is_relative_to(partition.mountpoint)
    ]
    return max(mounts, key=lambda partition: len(partition.mountpoint)).fstype if mounts else "an unknown file system"


def versions() -> str:
    """The versions of the software used, as text."""
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()
    parts = [f"Python {platform.python_version()}", f"Apache Kafka {KAFKA_VERSION}", (java or ["no Java"])[0]]
    for package in PACKAGES:
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(parts)


def write_markdown(
    path: Path, tables: Mapping[str, tuple[Group, list[Line]]], runs: int, took_s: float, *, quick: bool
) -> None:
    """Write the tables with a description of the machine, the software and the columns."""
    today = dt.datetime.now(dt.UTC).date().isoformat()
    command = "`python -m bench --quick`" if quick else "`python -m bench`"
    text = [
        "# Barnabas compared with Apache Kafka",
        "",
        f"{today}, {command}, {took_s / 60:.0f} minutes. {machine()}. {versions()}.",
        "",
        READING.format(runs=f"{runs} alternating run{'s' if runs > 1 else ''}"),
    ]
    for group, lines in tables.values():
        text += ["", f"## {group.title}", "", f"{group.text} {group.settings()}", ""]
        text += ["| " + " | ".join(_headings(group)) + " |", "|---|---|---:|---:|---:|---|---|---:|---:|---:|"]
        text += ["| " + " | ".join(line.cells()) + " |" for line in lines]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(format_page("\n".join(text) + "\n"))
