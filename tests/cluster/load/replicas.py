"""Whether all replicas of every partition are the same, byte for byte.

Compared are the record batches from the highest log start of the replicas on, read from the segment files: retention
may have removed old segments at different times, and segments are rolled at different places.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

HEADER = struct.Struct(">qi")
LOG_OVERHEAD = 12


def batches(directory: Path) -> Iterator[tuple[int, bytes]]:
    """The base offset and the bytes of each batch of a partition's directory, in order."""
    for segment in sorted(directory.glob("*.log")):
        data = segment.read_bytes()
        position = 0
        while position + LOG_OVERHEAD <= len(data):
            base_offset, size = HEADER.unpack_from(data, position)
            end = position + LOG_OVERHEAD + size
            if size <= 0 or end > len(data):
                break
            yield base_offset, data[position:end]
            position = end


def partition_dirs(data_dir: Path) -> dict[str, Path]:
    """The directories of partitions by name, except directories of deleted and of moved ones."""
    dirs = {}
    for path in data_dir.iterdir():
        name, dash, index = path.name.rpartition("-")
        if path.is_dir() and dash and index.isdecimal() and name != "__cluster_metadata":
            dirs[path.name] = path
    return dirs


def differences(data_dirs: Mapping[int, Path], topics: Iterable[str] | None = None) -> list[str]:
    """A line for each partition whose replicas differ; `data_dirs` by broker."""
    chosen = None if topics is None else set(topics)
    problems: list[str] = []
    holders: dict[str, dict[int, Path]] = {}
    for broker, data_dir in data_dirs.items():
        for name, path in partition_dirs(data_dir).items():
            if chosen is None or name.rpartition("-")[0] in chosen:
                holders.setdefault(name, {})[broker] = path
    for name, paths in sorted(holders.items()):
        logs = {broker: dict(batches(path)) for broker, path in paths.items()}
        problems += _compare(name, logs)
    return problems


def _compare(name: str, logs: Mapping[int, Mapping[int, bytes]]) -> list[str]:
    start = max((min(log, default=0) for log in logs.values()), default=0)
    first, *others = sorted(logs)
    left = {offset: data for offset, data in logs[first].items() if offset >= start}
    problems = []
    for other in others:
        right = {offset: data for offset, data in logs[other].items() if offset >= start}
        if left == right:
            continue
        at = min(offset for offset in {*left, *right} if left.get(offset) != right.get(offset))
        problems.append(
            f"{name}: brokers {first} and {other} differ at offset {at}: {_shape(left, at)} and {_shape(right, at)}"
        )
    return problems


def _shape(log: Mapping[int, bytes], at: int) -> str:
    data = log.get(at)
    return f"nothing (end of the log {max(log, default=-1)})" if data is None else f"{len(data)} bytes"
