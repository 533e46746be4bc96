"""The progress of a job, from its checkpoint and the broker, without Spark."""

from __future__ import annotations

from pathlib import Path

from barnabas.spark.checkpoint import Checkpoint, Position
from barnabas.spark.errors import MistakeError
from barnabas.spark.progress import lag
from barnabas.spark.settings.config import read_security, read_toml
from barnabas.spark.settings.security import secured_broker
from barnabas.spark.topics.broker import Broker, broker_of
from barnabas.spark.topics.cluster import Cluster

Row = dict[str, object]


def checkpoint_of(path: Path | None) -> str:
    """The checkpoint in a job's file; MistakeError if there is none."""
    if path is None:
        raise MistakeError("status needs --config FILE or --checkpoint DIR")
    checkpoint = read_toml(path).get("checkpoint")
    if not checkpoint or not isinstance(checkpoint, str):
        raise MistakeError(f'{path} has no checkpoint: add checkpoint = "DIRECTORY", or use --checkpoint')
    return checkpoint


def broker_at(bootstrap: str, path: Path | None) -> Broker:
    """The broker at an address, with the [security] of a job's file if there is a file. MistakeError if it is wrong."""
    return broker_of(bootstrap) if path is None else secured_broker(bootstrap, read_security(path))


def status_rows(path: str, broker: str | Broker) -> list[Row]:
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
    cluster = Cluster(broker)
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
