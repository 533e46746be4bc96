"""Parts whose commands are quick, and calls for a record."""

from __future__ import annotations

from typing import Any

from tests.soak.part import Count, Part
from tests.soak.records import Call, Machine

MACHINE = Machine(2, "a CPU", "3.11.7", 1.3)
WAITS = "import threading; threading.Event().wait()"


def part(name: str = "says", script: str = "print('{seed} things')", **options: Any) -> Part:
    """A part whose command runs a script."""
    own = {"shows": "a number", "counts": (Count("things", r"^(\d+) things"),), "seconds": 1.0} | options
    return Part(name=name, command=f'python -c "{script}"', **own)


def call(name: str = "says", *, day: int = 1, code: int = 0, **own: Any) -> Call:
    """A call of a day in January."""
    facts = {
        "turn": "", "seed": day, "command": f"python {name} {day}", "commit": "c", "version": "v", "seconds": 10.0,
        "cpu_seconds": 9.0, "load": 1.0, "machine": MACHINE, "tail": ["oh no"] if code else [],
    }  # fmt: skip
    return Call(part=name, code=code, began=f"2026-01-{day:02}T00:00:00+00:00", **facts | own)
