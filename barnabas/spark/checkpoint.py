"""The checkpoint of a job: its owner and its progress.

`barnabas-job.json`, beside Spark's own files, names the job that owns the checkpoint and the ids of its topics. Spark
alone would continue from another job's checkpoint, and would not detect that a topic was deleted and created again.
Checked and read without starting Spark. A path is local, or a URL that Arrow can read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from pyarrow import fs

from barnabas.spark.errors import MistakeError
from barnabas.spark.topics.cluster import Offsets, read_offsets

FILE = "barnabas-job.json"
NEW_FILE = f"{FILE}.new"
"""The temporary file, which a crash may leave behind."""


@dataclass(frozen=True)
class Owner:
    """The owner of a checkpoint."""

    job: str
    name: str
    source: str
    output: str
    fields: Mapping[str, str] = field(default_factory=dict)
    """Settings whose values must not change, by name; names may be added and removed."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Position:
    """The progress of one query."""

    query: str
    batch: int
    """The last completed batch; -1 before the first."""
    at: datetime | None
    """The time at which it was completed."""
    offsets: Offsets
    """The end of what it has read; empty before the first batch."""
    is_unfinished: bool
    """Another batch was started and not completed; it will be repeated."""


class Checkpoint:
    """The directory of one job."""

    def __init__(self, path: str) -> None:
        """MistakeError when the path cannot be used."""
        self.path = path
        try:
            if "://" in path:
                self._files, self._root = fs.FileSystem.from_uri(path.replace("s3a://", "s3://"))
            else:
                self._files, self._root = fs.LocalFileSystem(), str(Path(path).resolve())
        except (OSError, ValueError) as error:
            raise MistakeError(f"the checkpoint {path} cannot be opened: {error}") from error

    @property
    def local(self) -> Path | None:
        """The directory, if it is local."""
        return Path(self._root) if isinstance(self._files, fs.LocalFileSystem) else None

    def flow(self, name: str) -> str:
        """The checkpoint directory of a flow's query."""
        return f"{self.path.rstrip('/')}/{name}"

    def owner(self) -> Owner | None:
        """The owner; None for a new checkpoint."""
        text = self._read(FILE)
        if text is None:
            return None
        try:
            return Owner(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise MistakeError(
                f"{self.path}/{FILE} cannot be read, so the checkpoint's owner is unknown: name a new checkpoint"
            ) from error

    def claim(self, owner: Owner) -> None:
        """Make `owner` the owner, or check that it is. MistakeError when the checkpoint belongs to another job, or its
        topics were deleted and created again."""
        known = self.owner()
        if known is not None and self.is_new:
            self._check_name(known, owner)
        elif known is not None:
            self._check_name(known, owner)
            self._check(known, owner)
            topic_ids = {**known.topic_ids, **owner.topic_ids}
            owner = replace(owner, topic_ids=topic_ids, fields={**known.fields, **owner.fields})
        elif any(name != NEW_FILE for name in self._entries("")):
            raise MistakeError(
                f"{self.path} has other files than a pipeline's checkpoint: name an empty or new directory"
            )
        self._write(FILE, json.dumps(asdict(owner), indent=2) + "\n")

    @property
    def is_new(self) -> bool:
        """Whether no batch was started yet; until then the job's file may be changed."""
        return not any(self.has_begun(name) for name in self._entries(""))

    def has_begun(self, flow: str) -> bool:
        """Whether the query of a flow has started a batch."""
        return next(self._batches(f"{flow}/offsets"), None) is not None

    def batch(self, flow: str) -> int:
        """The last batch that the query of a flow has completed; -1 before the first."""
        return max(self._batches(f"{flow}/commits"), default=-1)

    def _check_name(self, known: Owner, owner: Owner) -> None:
        if (known.job, known.name) != (owner.job, owner.name):
            other = known.job if known.name == known.job else f"{known.job} job {known.name}"
            raise MistakeError(
                f"the checkpoint {self.path} belongs to the job {other}: give this one a checkpoint of its own"
            )

    def _check(self, known: Owner, owner: Owner) -> None:
        facts = {"source": (known.source, owner.source), "output": (known.output, owner.output)}
        facts |= {name: (known.fields[name], now) for name, now in owner.fields.items() if name in known.fields}
        for what, (before, now) in facts.items():
            if before != now:
                raise MistakeError(
                    f"the checkpoint {self.path} was made with another {what} ({before} before, {now} now): change it "
                    "back, or name a new checkpoint and output"
                )
        for topic, topic_id in known.topic_ids.items():
            if owner.topic_ids.get(topic, topic_id) != topic_id:
                raise MistakeError(
                    f"topic {topic} was deleted and created again since the checkpoint {self.path} read it, so "
                    "its offsets belong to the old topic: name a new checkpoint and output to read the new one"
                )

    def positions(self) -> list[Position]:
        """The progress of each query."""
        return [self._position(name) for name in sorted(self._entries("")) if self._exists(f"{name}/metadata")]

    def first_offsets(self, flow: str) -> Offsets:
        """Where the query of a flow has begun; empty if Spark has not written that."""
        text = self._read(f"{flow}/sources/0/0") or ""
        return read_offsets(text[text.find("{") :])

    def _position(self, name: str) -> Position:
        done = self.batch(name)
        begun = max(self._batches(f"{name}/offsets"), default=-1)
        text = self._read(f"{name}/offsets/{done}") if done >= 0 else None
        return Position(name, done, self._time(f"{name}/commits/{done}"), _offsets(text or ""), begun > done)

    def _exists(self, name: str) -> bool:
        return bool(self._files.get_file_info(f"{self._root}/{name}").type != fs.FileType.NotFound)

    def _batches(self, directory: str) -> Iterator[int]:
        return (int(name) for name in self._entries(directory) if name.isdecimal())

    def _entries(self, directory: str) -> list[str]:
        where = f"{self._root}/{directory}".rstrip("/")
        try:
            files = self._files.get_file_info(fs.FileSelector(where, allow_not_found=True))
        except NotADirectoryError:
            return []
        return [info.base_name for info in files if not info.base_name.startswith((".", "spark.log"))]

    def _time(self, name: str) -> datetime | None:
        info = self._files.get_file_info(f"{self._root}/{name}")
        return None if info.mtime is None else info.mtime.astimezone(UTC)

    def _read(self, name: str) -> str | None:
        try:
            with self._files.open_input_stream(f"{self._root}/{name}") as file:
                return bytes(file.read()).decode()
        except FileNotFoundError:
            return None
        except (NotADirectoryError, UnicodeDecodeError) as error:
            raise MistakeError(f"{self.path} cannot be used as a checkpoint directory: {error}") from error

    def _write(self, name: str, text: str) -> None:
        try:
            self._files.create_dir(self._root, recursive=True)
            with self._files.open_output_stream(f"{self._root}/{name}.new") as file:
                file.write(text.encode())
            self._files.move(f"{self._root}/{name}.new", f"{self._root}/{name}")
        except OSError as error:
            raise MistakeError(
                f"the checkpoint {self.path} cannot be written ({error.strerror or error}): name a directory that this "
                "user may write to"
            ) from error


def _offsets(text: str) -> Offsets:
    """The offsets in Spark's own file of a batch: a version, a line about the batch, and a line for each source."""
    return {topic: own for line in text.splitlines()[2:] for topic, own in read_offsets(line).items()}
