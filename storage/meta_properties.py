"""`meta.properties`: the identity of a log directory: its node, its cluster and its own id.

A file that exists must be complete: without its node id or cluster id a start would make up another identity.
Source: Kafka's `MetaProperties`.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.storage.checkpoints import CorruptCheckpoint, number, read_properties, write_properties
from barnabas.storage.files import Files
from barnabas.wire.types import uuid_from_text

_MAX_NODE_ID = 2**31 - 1
_MAX_CLUSTER_ID = 255


class DataDirMismatch(Exception):  # noqa: N818 - named after the condition
    """The log directory belongs to another node or cluster."""


class MetaProperties(NamedTuple):
    """The identity of a log directory; `directory_id` is empty where Kafka before 3.7 wrote the file."""

    node_id: int
    cluster_id: str
    directory_id: str


def read_meta_properties(files: Files, path: str) -> MetaProperties | None:
    """The content of the file, None when it is missing.

    Raises CorruptCheckpoint for an invalid file, DataDirMismatch for one that was used with ZooKeeper, OSError.
    """
    if not files.exists(path):
        return None
    properties = read_properties(files, path)
    if "broker.id" in properties and "node.id" not in properties:
        raise DataDirMismatch(
            f"The log directory {path.rpartition('/')[0]} was used with ZooKeeper: Kafka 3.9 can migrate it to KRaft"
        )
    if properties.get("version") not in ("0", "1"):
        raise CorruptCheckpoint(f"{path} has no version 0 or 1: restore the file from a copy")
    return MetaProperties(_node_id(properties, path), _cluster_id(properties, path), _directory_id(properties, path))


def _node_id(properties: dict[str, str], path: str) -> int:
    try:
        return number(properties.get("node.id", ""), _MAX_NODE_ID)
    except ValueError as error:
        raise CorruptCheckpoint(f"{path}: the node.id {error}") from error


def _cluster_id(properties: dict[str, str], path: str) -> str:
    text = properties.get("cluster.id", "")
    if not text or len(text) > _MAX_CLUSTER_ID or not text.isprintable():
        raise CorruptCheckpoint(f"{path} has the cluster.id {text!r}, which is not 1 to 255 printable characters")
    return text


def _directory_id(properties: dict[str, str], path: str) -> str:
    text = properties.get("directory.id", "")
    try:
        if text:
            uuid_from_text(text)
    except ValueError as error:
        raise CorruptCheckpoint(f"{path} has an invalid directory.id: {error}") from error
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
