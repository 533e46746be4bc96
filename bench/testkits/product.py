"""A product of the comparison: how it is started, what a test of its users begins with, and its memory.

One object is one running instance, as a context manager. What a product cannot be set up for raises `UnsupportedError`
with the reason, which the table shows.
"""

from __future__ import annotations

import itertools
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType
from typing import ClassVar

import psutil


class Setup(Enum):
    """What a check needs of the broker's configuration."""

    USUAL = "usual"
    NO_AUTO_CREATION = "no auto creation"
    AUTHORIZER = "authorizer"
    LOG_IN = "log-in"
    TLS = "TLS"


class UnsupportedError(Exception):
    """The product cannot be set up so; the reason."""


KEYS: Mapping[Setup, Mapping[str, str]] = {
    Setup.USUAL: {},
    Setup.NO_AUTO_CREATION: {"auto.create.topics.enable": "false"},
    Setup.AUTHORIZER: {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    },
}
"""Kafka's keys for what needs no further listener."""
IMPATIENT: Mapping[str, str] = {
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "200",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
"""What a broker does from time to time, it does soon. For the checks; the times are measured without."""


@dataclass(frozen=True)
class Place:
    """Where the clients of a test connect, and as whom."""

    bootstrap: str
    library: str = "confluent-kafka"
    """Or `mockafka`: the classes that are used instead of a client."""
    creates_topics: bool = True
    """Whether CreateTopics is answered; else a topic is made by asking for it."""
    admin: Mapping[str, str] = field(default_factory=dict)
    """Further settings of an administrator's client."""
    client: Mapping[str, str] = field(default_factory=dict)
    """Those of other clients."""
    principal: str = "User:ANONYMOUS"
    """Who these other clients are."""


@dataclass(frozen=True)
class Test:
    """What one test has: a place, and names that nobody has used before there."""

    place: Place
    topic: str
    group: str


class Product(ABC):
    """One instance of a product."""

    name: ClassVar[str]
    """On the command line."""
    title: ClassVar[str]
    """In the table."""
    isolation: ClassVar[str]
    """What a test gets that others do not disturb."""
    tests = 20
    """How many tests a run measures."""
    in_process = False
    """Whether it is in the process of the tests, whose growth is its memory then."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    @classmethod
    @abstractmethod
    def missing(cls) -> str:
        """Why it cannot run here, "" if it can."""

    @classmethod
    @abstractmethod
    def version(cls) -> str:
        """Its version."""

    @classmethod
    @abstractmethod
    def prepare(cls) -> None:
        """Download and build what it needs; this is not measured."""

    @abstractmethod
    def start(self, setup: Setup = Setup.USUAL, keys: Mapping[str, str] | None = None) -> Place:
        """Start it, with further keys of Kafka's. UnsupportedError if it cannot be set up so."""

    @abstractmethod
    def stop(self) -> None:
        """End it."""

    @abstractmethod
    def begin(self) -> Test:
        """What its users do at the begin of a test."""

    def end(self, test: Test) -> None:  # noqa: B027 - most do nothing
        """What they do at its end."""

    def processes(self) -> list[psutil.Process]:
        """The processes that it consists of."""
        return []

    def memory_mb(self) -> float:
        """Resident memory of its processes."""
        return sum(process.memory_info().rss for process in self.processes()) / 1e6

    def names(self, place: Place) -> Test:
        """A test at a place that others use too: a topic and a group with new names."""
        number = next(self._numbers)
        return Test(place, f"orders-{number}-{uuid.uuid4().hex[:8]}", f"group-{number}-{uuid.uuid4().hex[:8]}")

    def __enter__(self) -> Product:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def family(pid: int) -> list[psutil.Process]:
    """A process and its descendants."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def own_memory_mb() -> float:
    """Resident memory of this process."""
    return float(psutil.Process(os.getpid()).memory_info().rss) / 1e6
