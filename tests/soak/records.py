"""The record of all calls: docs/evidence/proof.jsonl, one JSON object a line, appended as each call ends.

A call counts for the version of the product that it ran on: a hash of its source. Changes of tests and pages leave it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docs" / "evidence" / "proof.jsonl"
PRODUCT = ("barnabas", "broker", "coord", "storage", "wire")


@dataclass(frozen=True, slots=True)
class Machine:
    """What a call ran on."""

    cores: int
    cpu: str
    python: str
    calibration: float | None
    """Seconds of CPU that ten million additions take in Python: 1.3 on a slow machine. None: not measured."""


@dataclass(frozen=True, slots=True)
class Call:
    """One run of a part's command."""

    part: str
    turn: str
    seed: int
    command: str
    commit: str
    """Of the repository; empty if it was not known."""
    version: str
    """Of the product (`product_version`)."""
    began: str
    """UTC, ISO 8601."""
    seconds: float | None
    """None: not recorded."""
    cpu_seconds: float | None
    """Of the process and all that it has started and waited for."""
    load: float | None
    """How many processes were ready to run on each CPU, in the last minute of the call."""
    code: int
    """The command's exit code; -1: it was stopped at its time limit; -2: its output lacks a count."""
    machine: Machine
    counts: dict[str, int] = field(default_factory=dict)
    tail: list[str] = field(default_factory=list)
    """The last lines of the output of a call that failed."""

    @property
    def has_passed(self) -> bool:
        """Whether the call proves something: it found nothing."""
        return self.code == 0


def product_version(root: Path = ROOT) -> str:
    """A hash of the source of the product."""
    digest = blake2b(digest_size=6)
    for name in PRODUCT:
        folder = (root / name).resolve()
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{name}/{path.relative_to(folder)}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def commit(root: Path = ROOT) -> str:
    """The commit of the checkout, 12 digits; empty if it is none."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    try:
        done = subprocess.run(
            command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


def open_failures(calls: Sequence[Call]) -> list[Call]:
    """The newest failed call of each command that has not passed since, oldest first."""
    newest = {call.command: call for call in sorted(calls, key=lambda call: call.began)}
    return sorted((call for call in newest.values() if not call.has_passed), key=lambda call: call.began)


class Records:
    """The calls in a file."""

    def __init__(self, path: Path = FILE) -> None:
        """ValueError if a line is no call, except for the last one, which may have been cut off by a kill."""
        self._path = path
        self.calls: list[Call] = []
        if not path.exists():
            return
        text = path.read_text()
        whole, _, rest = text.rpartition("\n")
        if rest:
            path.write_text(whole + "\n" if whole else "")
        self.calls = [self._call(line, number) for number, line in enumerate(whole.splitlines(), 1) if line]

    def add(self, call: Call) -> None:
        """Append a call."""
        self.calls.append(call)
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(call)) + "\n")

    def _call(self, line: str, number: int) -> Call:
        try:
            values = json.loads(line)
            return Call(**values | {"machine": Machine(**values["machine"])})
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{self._path}, line {number}: {error}") from None
