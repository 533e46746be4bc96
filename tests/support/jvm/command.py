"""The command line of a Java process, with the options that all of them have, and how loud its clients' logs are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
    "-Duser.timezone=UTC",
)
"""Programs of tests are short: they cost less without the optimizing compiler and without the checks of class files."""
HEAP = "-Xmx256m"
KAFKA_NODE = ("-Xmx384m", *OPTIONS)
"""For a node of Apache Kafka in a test; in a benchmark it has Kafka's own options."""


def logging(level: str) -> Path:
    """A folder for the class path: programs that log with slf4j-simple write this level and above, to stderr."""
    return Path(__file__).parent / "logging" / level


def java(
    class_path: Iterable[Path | str], main_class: str, *arguments: str, options: Sequence[str] = (), heap: str = HEAP
) -> list[str]:
    """The command line of a program. `options` come last, so that they win."""
    return ["java", heap, *OPTIONS, *options, "-cp", os.pathsep.join(map(str, class_path)), main_class, *arguments]
