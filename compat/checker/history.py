"""Histories of clients: the requests and responses of each process, one JSON object a line, as described in README.md.

The file of a killed process may have an incomplete last line, which is ignored; a request without a response may or
may not have succeeded. `at` is the machine's monotonic clock in seconds, so that the files of several processes can be
merged.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Position = tuple[str, int, int]
"""Topic, partition, offset."""

FIELDS: dict[str, dict[str, type]] = {
    "send": {"topic": str, "partition": int, "value": str},
    "sent": {"topic": str, "partition": int, "value": str, "offset": int},
    "failed": {"topic": str, "partition": int, "value": str},
    "begin": {"txn": str},
    "committing": {"txn": str},
    "committed": {"txn": str},
    "aborted": {"txn": str},
    "poll": {"records": list},
    "assigned": {"partitions": list},
    "revoked": {"partitions": list},
    "seek": {"topic": str, "partition": int, "offset": int},
    "end": {"topic": str, "partition": int, "offset": int},
    "committing_offsets": {"group": str, "offsets": list},
    "committed_offsets": {"group": str, "offsets": list},
    "fetched_offsets": {"group": str, "offsets": list, "since": float},
    "copy": {"source": str, "target": str},
    "share_group": {"group": str, "topic": str, "delivery_limit": int, "lock_s": float},
    "acquired": {"group": str, "records": list},
    "acknowledging": {"group": str, "records": list},
    "acknowledged": {"group": str, "records": list},
    "drained": {"group": str, "topic": str},
    "closed": {},
    "killed": {"victim": str},
    "restarted": {},
    "note": {"text": str},
}
ROWS: dict[tuple[str, str], tuple[type, ...]] = {
    ("poll", "records"): (str, int, int, str),
    ("assigned", "partitions"): (str, int),
    ("revoked", "partitions"): (str, int),
    ("committing_offsets", "offsets"): (str, int, int),
    ("committed_offsets", "offsets"): (str, int, int),
    ("fetched_offsets", "offsets"): (str, int, int),
    ("acquired", "records"): (str, int, int, str, int),
    ("acknowledging", "records"): (str, int, int, str),
    ("acknowledged", "records"): (str, int, int, str),
}


class HistoryError(ValueError):
    """A line is not a valid event; the message has the file, the line and the reason."""


@dataclass(frozen=True, slots=True)
class Event:
    """One line. `where` is `file:line`; `values` are the validated fields of its type."""

    at: float
    process: str
    type: str
    where: str
    values: dict[str, Any]

    def __getitem__(self, field: str) -> Any:
        return self.values[field]

    @property
    def txn(self) -> str | None:
        """The transaction that the event belongs to, or None."""
        return self.values.get("txn")

    @property
    def is_committed_read(self) -> bool:
        """Whether it is a poll with read_committed."""
        return self.values.get("isolation") == "read_committed"

    def __str__(self) -> str:
        return f"{self.process} at {self.where}"


def _fits(value: object, kind: type) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def _check_rows(where: str, name: str, rows: list[Any], kinds: tuple[type, ...]) -> None:
    for row in rows:
        if not isinstance(row, list) or len(row) != len(kinds) or not all(map(_fits, row, kinds)):
            types = ", ".join(kind.__name__ for kind in kinds)
            raise HistoryError(f"{where}: row {row!r} of {name} is not [{types}]")


def _event(where: str, line: str) -> Event:
    try:
        values = json.loads(line)
    except json.JSONDecodeError as error:
        raise HistoryError(f"{where}: not JSON: {error}") from None
    if not isinstance(values, dict) or values.get("type") not in FIELDS:
        raise HistoryError(f"{where}: not an event of a known type")
    for name, kind in {"at": float, "process": str, **FIELDS[values["type"]]}.items():
        if not _fits(values.get(name), kind):
            raise HistoryError(f"{where}: {values['type']} needs {name!r} as {kind.__name__}")
        if (values["type"], name) in ROWS:
            _check_rows(where, name, values[name], ROWS[values["type"], name])
    return Event(float(values["at"]), values["process"], values["type"], where, values)


def events_of(name: str, text: str) -> Iterator[Event]:
    """The events in the text of one file; HistoryError for an invalid line."""
    complete, newline, _ = text.rpartition("\n")
    for number, line in enumerate(complete.split("\n") if newline else [], 1):
        if line.strip():
            yield _event(f"{name}:{number}", line)


def read(paths: Iterable[Path]) -> list[Event]:
    """The events of files, and of each `*.jsonl` in directories, ordered by time; HistoryError, OSError."""
    files = [file for path in paths for file in (sorted(path.glob("*.jsonl")) if path.is_dir() else [path])]
    events = [event for file in files for event in events_of(file.name, file.read_text())]
    return sorted(events, key=lambda event: event.at)


class Writer:
    """Writes the history of one process. A written event survives the process."""

    def __init__(self, path: Path, process: str) -> None:
        self.process = process
        self._file = path.open("ab", buffering=0)

    def write(self, kind: str, **values: Any) -> None:
        """Add an event of a type in FIELDS."""
        event = {"at": time.monotonic(), "process": self.process, "type": kind} | values
        self._file.write(json.dumps(event).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
