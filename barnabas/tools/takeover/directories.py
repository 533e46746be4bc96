"""The log directories: identity, checkpoints, and each partition's files, checked superficially.

Batches are not read, but for the first of each segment, which has the format: `barnabas storage check` reads them all.
While the broker that has the directory still runs, files come and go: a missing file is no finding.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from barnabas.broker.config.server_config import ServerConfig
from barnabas.storage import layout
from barnabas.storage.append.leader_epochs import LeaderEpochCache
from barnabas.storage.directories.checkpoints import CorruptCheckpoint, OffsetCheckpoint, read_partition_metadata
from barnabas.storage.directories.foreign import is_of_partition, partition_in, refuse_cluster
from barnabas.storage.directories.meta_properties import DataDirMismatch, MetaProperties, read_meta_properties
from barnabas.storage.files import ReadOnlyFiles
from barnabas.tools.takeover.verdict import Verdict

_CHECKPOINTS: Final = (layout.RECOVERY_POINT_CHECKPOINT, layout.LOG_START_CHECKPOINT, layout.REPLICATION_CHECKPOINT)
_MAGIC_AT: Final = 16
_MAGIC: Final = 2
_SHOWN: Final = 10
"""Partitions that are named; the others are only counted."""


def check_directories(config: ServerConfig, verdict: Verdict) -> int:
    """Check all directories; the number of partitions found."""
    files = ReadOnlyFiles()
    paths = [path.rstrip("/") or "/" for path in config.log_dirs]
    readable = [path for path in paths if _is_usable(path, verdict)]
    _check_identities(config, files, readable, verdict)
    return sum(_check_directory(files, path, verdict) for path in readable)


def _is_usable(path: str, verdict: Verdict) -> bool:
    if not os.path.lexists(path):
        verdict.refuse(f"The log directory {path} does not exist")
    elif not Path(path).is_dir():
        verdict.refuse(f"The log directory {path} is not a directory")
    elif not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        verdict.refuse(f"The log directory {path} may not be read and written by this user")
    else:
        return True
    return False


def _check_identities(config: ServerConfig, files: ReadOnlyFiles, paths: Sequence[str], verdict: Verdict) -> None:
    known: dict[str, MetaProperties] = {}
    for path in paths:
        try:
            refuse_cluster(files, path)
            identity = read_meta_properties(files, f"{path}/{layout.META_PROPERTIES}")
        except (CorruptCheckpoint, DataDirMismatch, OSError) as error:
            verdict.refuse(str(error))
            continue
        if identity is None:
            _check_new(files, path, verdict)
        else:
            known[path] = identity
    for path, identity in known.items():
        if identity.node_id != config.node_id:
            verdict.refuse(f"{path} belongs to node {identity.node_id}, but node.id is {config.node_id}")
        if not identity.directory_id:
            verdict.note(f"{path} has no directory.id yet: the start gives it one, as Kafka from 3.7 on does")
    _check_together(known, config.cluster_id, verdict)


def _check_new(files: ReadOnlyFiles, path: str, verdict: Verdict) -> None:
    if partition_in(files, path) is not None:
        verdict.refuse(f"{path} has partitions but no {layout.META_PROPERTIES}, which names their cluster and node")
    else:
        verdict.note(f"{path} is empty: the start formats it")


def _check_together(known: dict[str, MetaProperties], cluster_id: str | None, verdict: Verdict) -> None:
    """The directories belong to one cluster, and none is a copy of another."""
    clusters = {identity.cluster_id: path for path, identity in known.items()}
    if len(clusters) > 1:
        texts = ", ".join(f"{path} to {cluster_id}" for cluster_id, path in clusters.items())
        verdict.refuse(f"The log directories belong to different clusters: {texts}")
    elif cluster_id is not None and clusters and cluster_id not in clusters:
        verdict.refuse(f"CLUSTER_ID is {cluster_id}, but the log directories belong to {next(iter(clusters))}")
    elif not clusters and cluster_id is None:
        verdict.refuse("No log directory has a cluster id, and CLUSTER_ID is not set")
    seen: dict[str, str] = {}
    for path, identity in known.items():
        if identity.directory_id and seen.setdefault(identity.directory_id, path) != path:
            verdict.refuse(f"{path} and {seen[identity.directory_id]} have the same directory.id: one is a copy")


def _check_directory(files: ReadOnlyFiles, path: str, verdict: Verdict) -> int:
    for name in _CHECKPOINTS:
        try:
            OffsetCheckpoint(files, f"{path}/{name}").read()
        except (CorruptCheckpoint, OSError) as error:
            verdict.refuse(f"{error}")
    names = [name for name in files.list_dirs(path) if layout.parse_partition_dir(name) is not None]
    partitions = [name for name in names if is_of_partition(files, f"{path}/{name}")]
    bad = [text for name in partitions if (text := _against_partition(files, f"{path}/{name}")) is not None]
    for text in bad[:_SHOWN]:
        verdict.refuse(text)
    if len(bad) > _SHOWN:
        verdict.refuse(f"{len(bad) - _SHOWN} further partitions of {path} cannot be opened either")
    return len(partitions)


def _against_partition(files: ReadOnlyFiles, path: str) -> str | None:
    """Why a partition could not be opened; None if nothing is seen."""
    try:
        read_partition_metadata(files, f"{path}/{layout.PARTITION_METADATA}")
        LeaderEpochCache.load(files, f"{path}/{layout.LEADER_EPOCH_CHECKPOINT}")
        for name, size in files.list_files(path):
            file = f"{path}/{name}"
            if not os.access(file, os.R_OK | os.W_OK) and os.path.lexists(file):
                return f"{file} may not be read and written by this user"
            if name.endswith(layout.LOG_SUFFIX) and size > _MAGIC_AT and (magic := _magic(files, file)) != _MAGIC:
                return f"{file} begins with a record batch of format {magic}; only 2 (Kafka 0.11 and later) can be read"
    except FileNotFoundError:
        return None  # deleted meanwhile
    except (CorruptCheckpoint, OSError) as error:
        return str(error)
    return None


def _magic(files: ReadOnlyFiles, path: str) -> int:
    """The format of the first batch; the newest for a file that has only been preallocated, as zeros."""
    file = files.open_read(path)
    try:
        head = file.read(_MAGIC_AT + 1, 0)
        return head[_MAGIC_AT] if len(head) > _MAGIC_AT and any(head) else _MAGIC
    finally:
        file.close()
