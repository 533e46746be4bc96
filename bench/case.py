"""The rows of the table: cases in groups, with goals and scale.

A group has settings for both brokers; its cases run on its own servers. A figure's unit determines whether lower is
better (`LOWER_IS_BETTER`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any

from bench.ports import free_port
from bench.real_kafka import KafkaServer
from bench.servers import BarnabasServer, Server
from bench.target import Target

KINDS = ("barnabas", "kafka")
Figures = dict[str, float]
LOWER_IS_BETTER = frozenset(
    {
        "start s", "idle MB", "p50 ms", "p99 ms", "CPU s/GB", "sync p50 ms", "sync p99 ms", "p99/sync", "MB",
        "clean start s", "clean all s", "kill start s", "kill all s", "kill read MB",
        "load s", "CPU ms", "CPU us/op", "CPU s", "run s", "whole s",
    }
)  # fmt: skip
KAFKA_PAUSE = {"broker.session.timeout.ms": "3600000"}
"""For a Kafka that is paused: otherwise its controller would fence its broker after 9 s. Not for one that is killed,
because the controller would refuse the restarted broker for that time."""


@dataclass(frozen=True)
class Scale:
    """The scale of the cases: `full` for the table, `quick` for a first impression."""

    seconds: float = 0
    warmup_s: float = 0
    records: int = 0  # of 100 bytes; a third of it of 1 KB and more
    max_mb: int = 0  # written by a raw produce case
    fill_mb: int = 0
    synced_records: int = 0  # of 100 bytes, each synced before its acknowledgement; a third of 1 KB
    partitions_mb: int = 0  # in 1,000 partitions, if the disk has space
    compact_mb: int = 0  # of 1 KB records; a quarter of 100 bytes
    copied: int = 0  # records of 1 KB, exactly once
    groups: int = 0  # loaded at start
    shared: int = 0  # records of 100 bytes, read by a share group
    spark_records: int = 0  # of 100 bytes
    spark_large: int = 0  # of 1 KB
    warmup_rounds: int = 1
    calm_s: float = 0  # waited in all for other programs to end


FULL = Scale(
    seconds=2.5, warmup_s=1.0, records=800_000, max_mb=1200, fill_mb=150,
    synced_records=600_000, partitions_mb=10_000, compact_mb=400, copied=8_000, groups=10_000,
    shared=100_000, spark_records=1_000_000, spark_large=5_000_000, warmup_rounds=2, calm_s=90,
)  # fmt: skip
QUICK = Scale(
    seconds=1.0, warmup_s=0.5, records=200_000, max_mb=300, fill_mb=40,
    synced_records=150_000, partitions_mb=1000, compact_mb=128, copied=5_000, groups=10_000,
    shared=50_000, spark_records=200_000, spark_large=200_000, calm_s=20,
)  # fmt: skip


@dataclass(frozen=True)
class Goal:
    """`ratio`: at most (or at least) this many times Kafka's figure; `limit`: and below (or at least) this value."""

    ratio: float | None = None
    limit: float | None = None

    def judged(self, figure: str, ours: float, theirs: float) -> tuple[str, bool]:
        """The goal as text, and whether it is reached."""
        lower = figure in LOWER_IS_BETTER
        parts, met = [], True
        if self.ratio is not None:
            parts.append(f"{'≤' if lower else '≥'} {self.ratio:g}x")
            met = ours <= self.ratio * theirs if lower else ours >= self.ratio * theirs
        if self.limit is not None:
            parts.append(f"{'<' if lower else '≥'} {self.limit:g}")
            met = met and (ours < self.limit if lower else ours >= self.limit)
        return ", ".join(parts), met


class On(Enum):
    """What `measure` is given."""

    RUNNING = auto()
    """(target, scale): one of the group's two brokers, warmed up; the other one is paused."""
    OWN = auto()
    """(group, kind, scale): it starts a server of the group itself."""
    SERIES = auto()
    """(group, kind, scale, runs), returning the figures of all runs, for cases whose preparation is expensive."""


@dataclass(frozen=True)
class Case:
    """A measurement of one broker with one or more figures, each with an optional goal."""

    name: str
    measure: Callable[..., Any]
    goals: Mapping[str, Goal] = field(default_factory=dict)
    on: On = On.RUNNING
    quick: bool = True  # included in --quick


@dataclass(frozen=True)
class Group:
    """Cases that are measured with the same settings, which `text` describes."""

    title: str
    text: str
    cases: tuple[Case, ...]
    barnabas: Mapping[str, str]
    kafka: Mapping[str, str]
    warm_up: Callable[[Target, Scale], None] | None = None
    sides: tuple[str, str] = ("Barnabas", "Kafka")
    """The headings of the two columns, if they are not the two brokers."""
    before: Path | None = None
    """Another checkout of Barnabas in place of Kafka, to measure a change."""

    def server(self, kind: str, folder: Path, *, will_pause: bool = False) -> Server:
        """A server of the group that is ready to be started; Kafka's data directory is formatted."""
        server: Server
        if kind != "barnabas" and self.before is not None:
            config = dict(self.barnabas)
            server = BarnabasServer(folder / "before", config=config, port=free_port(), checkout=self.before)
        elif kind == "barnabas":
            server = BarnabasServer(folder / kind, config=dict(self.barnabas), port=free_port())
        else:
            config = {**self.kafka, **(KAFKA_PAUSE if will_pause else {})}
            server = KafkaServer(folder / kind, config=config, port=free_port())
        server.prepare()
        return server

    def settings(self) -> str:
        """Both brokers' settings that are not defaults, as text for the table."""
        paused = KAFKA_PAUSE if any(case.on is On.RUNNING for case in self.cases) else {}
        others = {**self.kafka, **paused} if self.before is None else self.barnabas
        ours, theirs = (
            ", ".join(f"`{key}={value}`" for key, value in settings.items()) or "defaults"
            for settings in (self.barnabas, others)
        )
        return f"{self.sides[0]}: {ours}. {self.sides[1]}: {theirs}."
