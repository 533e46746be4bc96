"""The pipelines of a folder: checkpoints, the jobs' files, their reports and logs of progress. Read without Spark.

A checkpoint is a directory with `barnabas-job.json`; each query has Spark's own `offsets` and `commits` in it, a file a
batch (docs/pipeline.md). A job's file is a `.toml` whose `checkpoint` is that directory; a report is a page that
`--report` wrote, named as the job, its file or its checkpoint; a log is what `--progress json` wrote, one JSON object a
line. Files may be incomplete, since runs go on while they are read; what cannot be read is left out. The folder is
looked through to a depth of `DEPTH`, with `MAX_FILES` files; links are not followed.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

OWNER: Final = "barnabas-job.json"
DEPTH: Final = 4
MAX_FILES: Final = 5_000
MAX_READ: Final = 1024 * 1024
"""Bytes of one file; of a longer log the end is read."""
LOG_SUFFIXES: Final = (".jsonl", ".json", ".log")
ENDS: Final = ("done", "stopped", "failed")

Offsets = dict[str, dict[int, int]]


@dataclass
class Query:
    """One query of a job."""

    name: str
    batch: int
    """The last one that is completed; -1 before the first."""
    completed_ms: int | None
    unfinished: bool
    """Another batch has begun and is not completed: it runs, or is repeated by the next run."""
    offsets: Offsets
    """Where it continues."""


@dataclass
class Run:
    """One run, from its log of progress."""

    file: str
    name: str
    outcome: str
    """done, stopped, failed, or running: the log has no end yet, or the run was killed."""
    at_ms: int | None
    """The start of the last batch, ms since 1970."""
    seconds: float | None
    error: str
    batches: int
    rows_in: int
    rows_out: int
    late: int
    dead_letters: dict[str, int]
    """By reason."""


@dataclass
class Pipeline:
    """One checkpoint, with what belongs to it."""

    path: str
    """Below the folder."""
    job: str
    """The kind of the job."""
    name: str
    source: str
    output: str
    queries: list[Query] = field(default_factory=list)
    config_file: str = ""
    dead_letter_topic: str = ""
    reports: list[str] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)


def find_pipelines(folder: Path) -> list[Pipeline]:
    """The pipelines of a folder, by name. OSError if the folder cannot be read."""
    files = list(_files(folder))
    jobs = [(file, job) for file in files if file.suffix == ".toml" and (job := _toml(file)) is not None]
    runs = [run for file in files if file.suffix in LOG_SUFFIXES and file.name != OWNER and (run := _run(folder, file))]
    reports = [file for file in files if file.suffix == ".html"]
    found = []
    for file in files:
        if file.name != OWNER or (owner := _json(file)) is None:
            continue
        pipeline = Pipeline(
            path=str(file.parent.relative_to(folder)),
            job=str(owner.get("job", "")),
            name=str(owner.get("name", "")),
            source=str(owner.get("source", "")),
            output=str(owner.get("output", "")),
            queries=list(_queries(file.parent)),
        )
        stems = {pipeline.name, pipeline.job, file.parent.name}
        for job_file, job in jobs:
            if _is_checkpoint(job_file, job.get("checkpoint"), file.parent, folder):
                pipeline.config_file = str(job_file.relative_to(folder))
                letters = job.get("dead_letters")
                pipeline.dead_letter_topic = str(letters.get("topic", "")) if isinstance(letters, dict) else ""
                stems.add(job_file.stem)
        pipeline.runs = [run for run in runs if run.name == pipeline.name]
        pipeline.reports = [str(report.relative_to(folder)) for report in reports if report.stem in stems]
        found.append(pipeline)
    return sorted(found, key=lambda pipeline: (pipeline.name, pipeline.path))


def _files(folder: Path) -> Iterator[Path]:
    """The files that may say something, outer ones first; not those of Spark's state and of outputs."""
    count = 0
    waiting = deque([(folder, 0)])
    while waiting:
        directory, depth = waiting.popleft()
        with os.scandir(directory) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                count += 1
                if count > MAX_FILES:
                    return
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    is_of_checkpoint = (directory / OWNER).exists()
                    if depth < DEPTH and not is_of_checkpoint:
                        waiting.append((Path(entry.path), depth + 1))
                elif entry.is_file(follow_symlinks=False):
                    yield Path(entry.path)


def _is_checkpoint(job_file: Path, checkpoint: object, directory: Path, folder: Path) -> bool:
    """Whether a job's `checkpoint` is a directory: as it is, below the file's directory, or below the folder."""
    if not isinstance(checkpoint, str):
        return False
    return any((base / checkpoint).resolve() == directory.resolve() for base in (job_file.parent, folder))


def _queries(directory: Path) -> Iterator[Query]:
    for query in sorted(directory.iterdir()):
        if not (query / "metadata").exists():
            continue
        done = max(_batches(query / "commits"), default=-1)
        begun = max(_batches(query / "offsets"), default=-1)
        text = _text(query / "offsets" / str(done)) if done >= 0 else ""
        offsets = {topic: own for line in text.splitlines()[2:] for topic, own in _offsets(line).items()}
        yield Query(query.name, done, _modified_ms(query / "commits" / str(done)), begun > done, offsets)


def _batches(directory: Path) -> Iterator[int]:
    try:
        names = [file.name for file in directory.iterdir()]
    except OSError:
        return
    yield from (int(name) for name in names if name.isascii() and name.isdecimal())


def _offsets(text: str) -> Offsets:
    """Offsets as Spark writes them, `{"orders": {"0": 12}}`; empty for anything else."""
    try:
        offsets = json.loads(text)
        return {topic: {int(p): int(offset) for p, offset in own.items()} for topic, own in offsets.items()}
    except (ValueError, AttributeError, TypeError):
        return {}


def _run(folder: Path, file: Path) -> Run | None:
    """The run of a log of progress; None for another file."""
    text = _text(file, from_end=True)
    if '"event"' not in text:
        return None
    events = [event for line in text.splitlines() if (event := _event(line)) is not None]
    batches = [event for event in events if event["event"] == "batch"]
    last = events[-1] if events and events[-1]["event"] in ENDS else None
    if last is None and not batches:
        return None
    try:
        return _ended(folder, file, last, batches) if last is not None else _running(folder, file, batches)
    except (TypeError, ValueError, AttributeError, KeyError):
        return None


def _ended(folder: Path, file: Path, last: dict[str, Any], batches: list[dict[str, Any]]) -> Run:
    queries = [query for query in last["queries"].values() if "batches" in query]
    return Run(
        file=str(file.relative_to(folder)),
        name=str(last["name"]),
        outcome=str(last["event"]),
        at_ms=_ms(batches[-1]["at"]) if batches else None,
        seconds=float(last["seconds"]),
        error=str(last["error"] or ""),
        batches=sum(int(query["batches"]) for query in queries),
        rows_in=sum(int(query["rows_in"]) for query in queries),
        rows_out=sum(int(query["rows_out"]) for query in queries),
        late=sum(int(query["late"]) for query in queries),
        dead_letters=_by_reason(query["dead_letters"] for query in queries),
    )


def _running(folder: Path, file: Path, batches: list[dict[str, Any]]) -> Run:
    return Run(
        file=str(file.relative_to(folder)),
        name=str(batches[-1]["query"]).partition(".")[0],
        outcome="running",
        at_ms=_ms(batches[-1]["at"]),
        seconds=None,
        error="",
        batches=len(batches),
        rows_in=sum(int(batch["rows_in"]) for batch in batches),
        rows_out=sum(int(batch["rows_out"]) for batch in batches),
        late=sum(int(batch["late"]) for batch in batches),
        dead_letters=_by_reason(batch["reasons"] for batch in batches),
    )


def _by_reason(parts: Iterable[dict[str, Any]]) -> dict[str, int]:
    """The dead letters of all parts of a run by their reason."""
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update({str(reason): int(count) for reason, count in part.items()})
    return dict(+counts)


def _ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def _event(line: str) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


def _toml(file: Path) -> dict[str, Any] | None:
    try:
        return tomllib.loads(_text(file))
    except tomllib.TOMLDecodeError:
        return None


def _json(file: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(_text(file))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _text(file: Path, *, from_end: bool = False) -> str:
    """At most `MAX_READ` bytes of a file; empty if it cannot be read."""
    try:
        with file.open("rb") as content:
            if from_end:
                content.seek(max(0, file.stat().st_size - MAX_READ))
            return content.read(MAX_READ).decode("utf-8", "replace")
    except OSError:
        return ""


def _modified_ms(file: Path) -> int | None:
    try:
        return int(file.stat().st_mtime * 1000)
    except OSError:
        return None
