"""Foreign data in a log directory: directories that only have a partition's name, whole clusters.

A directory belongs to a partition if it has a partition's name and is empty or has a partition's file. Any other is
never opened, renamed or removed, whatever its name is: photos of the year 2024 may be in `photos-2024`. Kafka checks
the name only. The log directory of one broker is not the directory of a cluster, which has a log directory for each of
its nodes.
"""

from __future__ import annotations

import re

from barnabas.storage import layout
from barnabas.storage.directories.meta_properties import DataDirMismatch
from barnabas.storage.files import Files
from barnabas.wire.errors import ErrorCode, KafkaError

_TEMPORARY = re.compile(rf"(\.\d+)?{re.escape(layout.TEMPORARY_SUFFIX)}\Z", re.ASCII)
"""How the name of an unfinished file ends; that of leader epochs has a number too, since writes may overlap."""
_FILES = frozenset({layout.PARTITION_METADATA, layout.LEADER_EPOCH_CHECKPOINT, layout.MOVED, "quorum-state"})


def is_of_partition(files: Files, path: str, *, may_be_empty: bool = True) -> bool:
    """Whether a directory with the name of a partition's is one. OSError."""
    names = [name for name, _ in files.list_files(path)]
    if not names:
        return may_be_empty and not any(files.list_dirs(path))
    return any(map(_is_of_partition, names))


def is_known_of_partition(files: Files, path: str) -> bool:
    """The same; False if the directory cannot be read."""
    try:
        return is_of_partition(files, path)
    except OSError:
        return False


def _is_of_partition(name: str) -> bool:
    """Whether a file's name begins with an offset, as in a segment's or snapshot's, or is another of a partition."""
    digits = name[: layout.OFFSET_DIGITS]
    begins_with_offset = len(digits) == layout.OFFSET_DIGITS and digits.isascii() and digits.isdigit()
    return begins_with_offset or _TEMPORARY.sub("", name) in _FILES


def partition_in(files: Files, path: str, *, may_be_empty: bool = True) -> str | None:
    """The name of a directory of a partition in a directory, None if it has none. OSError."""
    names = (name for name in files.list_dirs(path) if layout.parse_partition_dir(name) is not None)
    return next((name for name in names if is_of_partition(files, f"{path}/{name}", may_be_empty=may_be_empty)), None)


def in_the_way(path: str) -> KafkaError:
    """The error of a partition whose place another directory has."""
    text = f"{path} has no file of a partition, but the name of one that is needed: move it away, and start again"
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, text)


def refuse_cluster(files: Files, path: str) -> None:
    """DataDirMismatch if `path` is the directory of a cluster, not a log directory of one broker. OSError."""
    mark = _mark_of_cluster(files, path)
    if mark is None:
        return
    if files.exists(f"{path}/{layout.META_PROPERTIES}"):
        raise DataDirMismatch(
            f"{path} has the data of a cluster ({mark}) beside that of one broker: move {layout.CLUSTER_STATE} and "
            "the directories of the cluster's nodes to a directory of their own"
        )
    raise DataDirMismatch(
        f"{path} has the data of a cluster ({mark}), not of one broker: give the broker another directory, or start "
        f"the cluster with 'barnabas serve --brokers N --data-dir {path}'"
    )


def refuse_node(files: Files, path: str) -> None:
    """DataDirMismatch if `path` is the log directory of a node in a cluster's directory. OSError."""
    parent, _, name = path.rpartition("/")
    if layout.is_node_dir(name) and files.exists(f"{parent}/{layout.CLUSTER_STATE}"):
        raise DataDirMismatch(
            f"{path} is of a node of the cluster in {parent}, not of one broker: start the cluster with "
            f"'barnabas serve --brokers N --data-dir {parent}'"
        )


def _mark_of_cluster(files: Files, path: str) -> str | None:
    if not files.exists(path):
        return None
    if files.exists(f"{path}/{layout.CLUSTER_STATE}"):
        return layout.CLUSTER_STATE
    if files.exists(f"{path}/{layout.META_PROPERTIES}"):
        return None
    nodes = filter(layout.is_node_dir, files.list_dirs(path))
    marks = (f"{name}/{layout.META_PROPERTIES}" for name in nodes)
    return next((mark for mark in marks if files.exists(f"{path}/{mark}")), None)
