"""Runs the Java programs of this folder, which ask Kafka's own classes."""

from __future__ import annotations

from pathlib import Path

from tests.support.jvm import host
from tests.support.jvm.jars import jars
from tests.support.jvm.sources import compiled

FOLDER = Path(__file__).resolve().parent
POM = FOLDER / "pom.xml"
TIMEOUT_S = 900.0


def run_program(main_class: str, *arguments: str, stdin: str = "", class_path: list[Path] | None = None) -> list[str]:
    """The lines that a program prints, which must succeed; the class path is Kafka's unless given."""
    entries = [compiled(FOLDER, POM), *(jars(POM) if class_path is None else class_path)]
    done = host.run(entries, main_class, *arguments, stdin=stdin, timeout_s=TIMEOUT_S)
    if done.code != 0:
        raise RuntimeError(f"{main_class} ended with {done.code}:\n{done.errors}")
    return done.out.splitlines()
