"""The progress of a job, from its checkpoint and the broker, without Spark."""

from __future__ import annotations

from pathlib import Path

from barnabas.pipeline.checkpoint import Checkpoint, Position
from barnabas.pipeline.cluster import Cluster
from barnabas.pipeline.config import read_toml
from barnabas.pipeline.errors import MistakeError
from barnabas.pipeline.progress import lag

Row = dict[str, object]


def checkpoint_of(path: Path | None) -> str:
    """The checkpoint in a job's file; MistakeError if there is none."""
    if path is None:
        raise MistakeError("status needs --config FILE or --checkpoint DIR")
    checkpoint = read_toml(path).get("checkpoint")
    if not checkpoint or not isinstance(checkpoint, str):
        raise MistakeError(f'{path} has no checkpoint: add checkpoint = "DIRECTORY", or use --checkpoint')
    return checkpoint


def status_rows(path: str, bootstrap: str) -> list[Row]:
    """A row for each query and partition: last batch and its time, the next offset, the topic's end, and the lag.

    MistakeError if this is not a pipeline's checkpoint, PipelineError if no broker answers.
    """
    checkpoint = Checkpoint(path)
    owner = checkpoint.owner()
    if owner is None:
        raise MistakeError(f"{path} is not a pipeline's checkpoint: has the job run once?")
    positions = checkpoint.positions()
    if not positions:
        raise MistakeError(f"the job {owner.name} has not started: its checkpoint {path} has no batch")
    cluster = Cluster(bootstrap)
    return [row for position in positions for row in _rows(owner.name, position, cluster)]


def _rows(name: str, position: Position, cluster: Cluster) -> list[Row]:
    common: Row = {
        "job": name,
        "query": position.query,
        "batch": position.batch if position.batch >= 0 else None,
        "at": None if position.at is None else f"{position.at:%Y-%m-%d %H:%M:%S}",
        "unfinished": position.is_unfinished,
    }
    behind = lag(position.offsets, cluster)
    rows: list[Row] = [
        common | {"topic": topic, "partition": p, "offset": offset, "lag": behind.get(topic, {}).get(p)}
        for topic, partitions in sorted(position.offsets.items())
        for p, offset in sorted(partitions.items())
    ]
    return rows or [common | {"topic": None, "partition": None, "offset": None, "lag": None}]
