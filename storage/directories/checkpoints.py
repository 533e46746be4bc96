"""Kafka's small text files: checkpoints of offsets and epochs, `partition.metadata`, `meta.properties`.

A file is always replaced as a whole: written to `<name>.tmp`, synced, renamed, and the directory synced, so that
after a crash it has either the old or the new content.
Sources: Kafka's `CheckpointFile`, `PartitionMetadataFile`, `PropertiesUtils`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping

from barnabas.storage import layout
from barnabas.storage.files import Files

_VERSION = "0"
_UUID_SIZE = 16
_MAX_INT, _MAX_OFFSET = 2**31 - 1, 2**63 - 1


class CorruptCheckpoint(Exception):  # noqa: N818 - named after the condition
    """A checkpoint file is not in Kafka's format."""


def replace_file(files: Files, path: str, data: bytes, *, sync: bool = True) -> None:
    """Atomically replace the file's content by `data`; durable on return with `sync`."""
    temporary = path + layout.TEMPORARY_SUFFIX
    _write_file(files, temporary, data, sync=sync)
    try:
        files.rename(temporary, path)
    except OSError:
        _remove_quietly(files, temporary)
        raise
    if sync:
        files.sync_dir(path.rpartition("/")[0])


def _write_file(files: Files, path: str, data: bytes, *, sync: bool) -> None:
    """Write a whole file; it is removed when that fails."""
    file = files.open(path)
    try:
        files.truncate(file, 0)
        files.write_at(file, data, 0)
        if sync:
            files.sync(file)
    except OSError:
        _remove_quietly(files, path)
        raise
    finally:
        file.close()


def number(text: str, greatest: int) -> int:
    """A number from 0 to `greatest`, in decimal digits. ValueError for anything else."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(greatest))) or int(text) > greatest:
        raise ValueError(f"{text[:30]!r} is not a number from 0 to {greatest}")
    return int(text)


def _remove_quietly(files: Files, path: str) -> None:
    try:
        files.unlink(path)
    except OSError:
        pass  # the next start removes it


def _content(lines: list[str]) -> bytes:
    return "\n".join([_VERSION, str(len(lines)), *lines, ""]).encode()


class CheckpointFile:
    """A file of a version line, a count line and that many entry lines."""

    __slots__ = ("_files", "path")

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path

    def write_lines(self, lines: list[str]) -> None:
        """Replace the entries; durable on return."""
        replace_file(self._files, self.path, _content(lines))

    def read_lines(self) -> list[str]:
        """The entries; none when the file is missing or empty. CorruptCheckpoint for anything else."""
        try:
            lines = self._files.read_file(self.path).decode().split("\n")
        except FileNotFoundError:
            return []
        except UnicodeDecodeError as error:
            raise CorruptCheckpoint(f"{self.path} is not text: byte {error.start} is not UTF-8") from error
        if lines == [""]:
            return []
        entries = [line for line in lines[2:] if line]
        if len(lines) < 2 or lines[0] != _VERSION or lines[1] != str(len(entries)):
            raise CorruptCheckpoint(
                f"{self.path} is not a checkpoint of version {_VERSION} with as many entries as its count"
            )
        return entries

    def write_pairs_to(self, path: str, pairs: Iterable[tuple[int, int]]) -> None:
        """Write a file with pairs of integers to `path`; it is not synced."""
        _write_file(self._files, path, _content([f"{first} {second}" for first, second in pairs]), sync=False)

    def read_pairs(self) -> list[tuple[int, int]]:
        """The entries as pairs of integers."""
        pairs = []
        for line in self.read_lines():
            try:
                first, second = line.split()
                pairs.append((number(first, _MAX_INT), number(second, _MAX_OFFSET)))
            except ValueError as error:
                raise CorruptCheckpoint(f"{self.path}: {line[:100]!r} is not a pair of numbers") from error
        return pairs


class OffsetCheckpoint:
    """A checkpoint of one offset per partition: lines of `topic partition offset`."""

    __slots__ = ("_file",)

    def __init__(self, files: Files, path: str) -> None:
        self._file = CheckpointFile(files, path)

    def read(self) -> dict[tuple[str, int], int]:
        """(topic, partition) -> offset."""
        offsets = {}
        for line in self._file.read_lines():
            try:
                topic, partition, offset = line.split()
                offsets[topic, number(partition, _MAX_INT)] = number(offset, _MAX_OFFSET)
            except ValueError as error:
                raise CorruptCheckpoint(
                    f"{self._file.path}: {line[:300]!r} is not a topic, a partition and an offset"
                ) from error
        return offsets

    def write(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Replace all offsets; durable on return."""
        self._file.write_lines([f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()])


def write_properties(files: Files, path: str, properties: Mapping[str, str]) -> None:
    """Replace a properties file; durable on return."""
    replace_file(files, path, "".join(f"{key}={value}\n" for key, value in properties.items()).encode())


def write_partition_metadata(files: Files, path: str, topic_id: bytes) -> None:
    """Write `partition.metadata` with the topic id of a directory (R22). Durable after the log's first flush."""
    replace_file(files, path, f"version: 0\ntopic_id: {topic_id_text(topic_id)}".encode(), sync=False)


def read_partition_metadata(files: Files, path: str) -> bytes | None:
    """The topic id of a directory; None when the file is missing, or damaged by a crash before the first flush."""
    try:
        text = files.read_file(path).decode(errors="replace")
    except FileNotFoundError:
        return None
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    try:
        topic_id = base64.urlsafe_b64decode(fields["topic_id"] + "==")
    except (KeyError, ValueError):
        return None
    return topic_id if len(topic_id) == _UUID_SIZE else None


def topic_id_text(topic_id: bytes) -> str:
    """A UUID as Kafka writes it: URL-safe base64 without padding, 22 characters."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
