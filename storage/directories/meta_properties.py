"""`meta.properties`: the identity of a log directory: its node, its cluster and its own id.

A file that exists must be complete: without its node id or cluster id a start would make up another identity. Only a
lost directory id is replaced, as in Kafka. Source: Kafka's `MetaProperties` and `MetaPropertiesEnsemble`.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.storage.directories.checkpoints import CorruptCheckpoint, number, write_properties
from barnabas.storage.files import Files
from barnabas.wire.types import uuid_from_text

_MAX_NODE_ID = 2**31 - 1
_MAX_CLUSTER_ID = 255
RESTORE = "restore the file from a copy, or write version=1, node.id and the cluster.id that the broker had into it"


class DataDirMismatch(Exception):  # noqa: N818 - named after the condition
    """The log directory belongs to another node or cluster."""


class MetaProperties(NamedTuple):
    """The identity of a log directory; `directory_id` is empty where Kafka before 3.7 wrote the file."""

    node_id: int
    cluster_id: str
    directory_id: str


class _Lines:
    """The `key=value` lines of the file, with their numbers. The last value of a key counts, as in Java."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._values: dict[str, tuple[int, str]] = {}
        for at, line in enumerate(text.splitlines(), 1):
            if "=" in line and not line.startswith(("#", "!")):
                key, _, value = line.partition("=")
                self._values[key.strip()] = (at, value.strip())

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def get(self, key: str) -> str:
        """The value of a key, empty if it is missing."""
        return self._values.get(key, (0, ""))[1]

    def error(self, key: str, allowed: str) -> CorruptCheckpoint:
        """The error of a key that is missing, or whose value is not as `allowed` says."""
        if key not in self._values:
            return CorruptCheckpoint(f"{self._path} has no {key}: {RESTORE}")
        at, value = self._values[key]
        return CorruptCheckpoint(f"{self._path}, line {at}: {key} is {value!r}, which is not {allowed}: {RESTORE}")


def read_meta_properties(files: Files, path: str) -> MetaProperties | None:
    """The content of the file, None when it is missing.

    Raises CorruptCheckpoint for an invalid file, DataDirMismatch if it was used with ZooKeeper, OSError.
    """
    if not files.exists(path):
        return None
    try:
        lines = _Lines(path, files.read_file(path).decode())
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(f"{path} is not text: byte {error.start} is not UTF-8: {RESTORE}") from error
    if "broker.id" in lines and "node.id" not in lines:
        raise DataDirMismatch(
            f"The log directory {path.rpartition('/')[0]} was used with ZooKeeper: Kafka 3.9 can migrate it to KRaft"
        )
    if lines.get("version") not in ("0", "1"):
        raise lines.error("version", "0 or 1")
    return MetaProperties(_node_id(lines), _cluster_id(lines), _directory_id(lines))


def _node_id(lines: _Lines) -> int:
    try:
        return number(lines.get("node.id"), _MAX_NODE_ID)
    except ValueError as error:
        raise lines.error("node.id", f"a number from 0 to {_MAX_NODE_ID}") from error


def _cluster_id(lines: _Lines) -> str:
    text = lines.get("cluster.id")
    if not text or len(text) > _MAX_CLUSTER_ID or not text.isprintable():
        raise lines.error("cluster.id", f"1 to {_MAX_CLUSTER_ID} printable characters")
    return text


def _directory_id(lines: _Lines) -> str:
    text = lines.get("directory.id")
    try:
        if text:
            uuid_from_text(text)
    except ValueError as error:
        raise lines.error("directory.id", "an id of 22 characters in base64") from error
    return text


def write_meta_properties(files: Files, path: str, identity: MetaProperties) -> None:
    """Replace the file; durable on return."""
    properties = {
        "version": "1",
        "node.id": str(identity.node_id),
        "cluster.id": identity.cluster_id,
        "directory.id": identity.directory_id,
    }
    write_properties(files, path, properties)
