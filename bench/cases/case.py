"""The cases of the benchmark: measurements, servers, amounts of load, and goals.

Cases with the same settings of both brokers are a group, with its own servers. For figures in `LOWER_IS_BETTER` lower
values are better, for all others higher ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any

from bench.target import Target
from tests.support.processes.kafka import KafkaServer
from tests.support.processes.ports import free_port
from tests.support.processes.server import BarnabasServer, Server

KINDS = ("barnabas", "kafka")
Figures = dict[str, float]
LOWER_IS_BETTER = frozenset(
    {
        "start s", "idle MB", "p50 ms", "p99 ms", "CPU s/GB", "sync p50 ms", "sync p99 ms", "p99/sync", "MB",
        "clean start s", "clean all s", "kill start s", "kill all s", "kill read MB",
        "load s", "pause ms", "ready s", "page ms", "page kB", "CPU ms", "CPU us/op", "CPU s", "run s", "whole s",
    }
)  # fmt: skip
KAFKA_PAUSE = {"broker.session.timeout.ms": "3600000"}
"""For a Kafka that is paused: by default its controller would fence the broker after 9 s. Not for one that is killed,
because the controller would refuse to register it again for that time."""


@dataclass(frozen=True)
class Scale:
    """The amount of load: `FULL` for the table, `QUICK` for a short run."""

    seconds: float = 0
    warmup_s: float = 0
    records: int = 0  # of 100 bytes; a third as many of 1 KB or more
    max_mb: int = 0  # written by a raw produce case
    fill_mb: int = 0
    synced_records: int = 0  # of 100 bytes with sync=always; a third as many of 1 KB
    partitions_mb: int = 0  # in 1,000 partitions; less if the disk has less free space
    compact_mb: int = 0  # of 1 KB records; a quarter as many of 100-byte records
    copied: int = 0  # records of 1 KB in exactly-once copies
    groups: int = 0  # loaded at start
    shared: int = 0  # records of 100 bytes, read by a share group
    spark_records: int = 0  # of 100 bytes
    spark_large: int = 0  # of 1 KB
    console_records: int = 0  # of 200 bytes of JSON, in the topic that a console reads
    console_topics: int = 0  # in a cluster that a console watches, with a fifth as many groups
    warmup_rounds: int = 1
    idle_wait_s: float = 0  # longest total wait for an idle machine


FULL = Scale(
    seconds=2.5, warmup_s=1.0, records=800_000, max_mb=1200, fill_mb=150,
    synced_records=600_000, partitions_mb=10_000, compact_mb=400, copied=8_000, groups=10_000,
    shared=100_000, spark_records=1_000_000, spark_large=5_000_000,
    console_records=10_000_000, console_topics=10_000, warmup_rounds=2, idle_wait_s=90,
)  # fmt: skip
QUICK = Scale(
    seconds=1.0, warmup_s=0.5, records=200_000, max_mb=300, fill_mb=40,
    synced_records=150_000, partitions_mb=1000, compact_mb=128, copied=5_000, groups=10_000,
    shared=50_000, spark_records=200_000, spark_large=200_000,
    console_records=500_000, console_topics=1000, idle_wait_s=20,
)  # fmt: skip


@dataclass(frozen=True)
class Goal:
    """Bounds of a figure, upper ones if lower is better: `ratio` relative to Kafka's figure, `limit` absolute."""

    ratio: float | None = None
    limit: float | None = None

    def check(self, figure: str, ours: float, theirs: float) -> tuple[str, bool]:
        """The goal as text, and whether it is met."""
        lower = figure in LOWER_IS_BETTER
        parts, met = [], True
        if self.ratio is not None:
            parts.append(f"{'≤' if lower else '≥'} {self.ratio:g}x")
            met = ours <= self.ratio * theirs if lower else ours >= self.ratio * theirs
        if self.limit is not None:
            parts.append(f"{'<' if lower else '≥'} {self.limit:g}")
            met = met and (ours < self.limit if lower else ours >= self.limit)
        return ", ".join(parts), met


class Mode(Enum):
    """On which servers a case runs, and the arguments of its `measure`."""

    SHARED_SERVER = auto()
    """(target, scale): one of the group's two brokers, running and warmed up; the other one is paused."""
    OWN_SERVER = auto()
    """(group, kind, scale): the case starts its own server."""
    OWN_SERVER_ALL_RUNS = auto()
    """(group, kind, scale, runs), yields the figures of every run: for servers that take long to prepare."""


@dataclass(frozen=True)
class Case:
    """One measurement, which gives one or more figures; each may have a goal."""

    name: str
    measure: Callable[..., Any]
    goals: Mapping[str, Goal] = field(default_factory=dict)
    mode: Mode = Mode.SHARED_SERVER
    quick: bool = True  # included in --quick
    repeat: int = 1
    """How many times each of the runs is made, in turn: for differences smaller than the variation of one run."""


@dataclass(frozen=True)
class Group:
    """Cases that are measured with the same settings, which `text` describes."""

    title: str
    text: str
    cases: tuple[Case, ...]
    barnabas: Mapping[str, str]
    kafka: Mapping[str, str]
    warm_up: Callable[[Target, Scale], None] | None = None
    secure: Callable[[Server, Path], None] | None = None
    """Adds listeners to a server that is not started yet, with their settings and files, which are in a folder."""
    sides: tuple[str, str] = ("Barnabas", "Kafka")
    """The headings of the two columns."""
    before: Path | None = None
    """The checkout of another Barnabas to compare with instead of Kafka; `kafka` has its settings."""

    def server(self, kind: str, folder: Path, *, will_pause: bool = False) -> Server:
        """A server with the group's settings, ready to be spawned; Kafka's data directory is formatted."""
        server: Server
        if kind != "barnabas" and self.before is not None:
            config = dict(self.kafka)
            server = BarnabasServer(folder / "before", config=config, port=free_port(), checkout=self.before)
        elif kind == "barnabas":
            server = BarnabasServer(folder / kind, config=dict(self.barnabas), port=free_port())
        else:
            config = {**self.kafka, **(KAFKA_PAUSE if will_pause else {})}
            server = KafkaServer(folder / kind, config=config, port=free_port())
        if self.secure is not None:
            self.secure(server, folder)
        server.prepare()
        return server

    def settings(self) -> str:
        """Both brokers' settings that are not defaults, as text."""
        paused = KAFKA_PAUSE if any(case.mode is Mode.SHARED_SERVER for case in self.cases) else {}
        others = {**self.kafka, **paused} if self.before is None else self.kafka
        ours, theirs = (
            ", ".join(f"`{key}={value}`" for key, value in settings.items()) or "defaults"
            for settings in (self.barnabas, others)
        )
        return f"{self.sides[0]}: {ours}. {self.sides[1]}: {theirs}."
