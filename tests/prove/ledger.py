"""The ledger of calls that were run: one JSON object a line, appended as each call ends, so that a stage can go on.

A call counts for the version of the product that it ran on: a hash of its source. Changes of tests and pages leave it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("barnabas", "broker", "coord", "storage", "wire")


@dataclass(slots=True)
class Call:
    """One run of a step's command."""

    step: str
    number: int
    seed: int
    command: str
    version: str
    """Of the product (`product_version`)."""
    began: str
    """UTC, ISO 8601."""
    seconds: float
    code: int
    """The command's exit code; -1: it was stopped at its time limit; -2: its output lacks a count."""
    counts: dict[str, int] = field(default_factory=dict)
    tail: list[str] = field(default_factory=list)
    """The last lines of the output of a call that failed."""


def product_version() -> str:
    """A hash of the source of the product."""
    digest = blake2b(digest_size=6)
    for folder in PRODUCT:
        for path in sorted((ROOT / folder).resolve().rglob("*.py")):
            digest.update(f"{folder}/{path.relative_to((ROOT / folder).resolve())}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


class Ledger:
    """The calls in a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "calls.jsonl"
        self.calls: list[Call] = []
        if self._path.exists():
            self.calls = [Call(**json.loads(line)) for line in self._path.read_text().splitlines()]

    def add(self, call: Call) -> None:
        """Append a call."""
        self.calls.append(call)
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(call)) + "\n")

    def has_passed(self, step: str, seed: int, version: str) -> bool:
        """Whether this call found nothing on this version."""
        return any((call.step, call.seed, call.version, call.code) == (step, seed, version, 0) for call in self.calls)
