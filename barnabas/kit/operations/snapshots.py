"""Operations on snapshots of a cluster: take, restore, fork, save, remove."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import trio

from barnabas.kit.errors import ControlError
from barnabas.kit.operations.registry import operation

if TYPE_CHECKING:
    from barnabas.kit.clusters.virtual_cluster import VirtualCluster
    from barnabas.kit.values import Values


@operation("snapshot")
async def snapshot(cluster: VirtualCluster, values: Values) -> object:  # noqa: ARG001
    """Take a snapshot of the cluster."""
    return {"snapshot": await cluster.take_snapshot()}


@operation("snapshot_list")
async def list_snapshots(cluster: VirtualCluster, values: Values) -> object:  # noqa: ARG001
    """The numbers of all snapshots of the process."""
    return {"snapshots": cluster.snapshots.numbers()}


@operation("restore", "snapshot")
async def restore(cluster: VirtualCluster, values: Values) -> object:
    """Set the cluster back to a snapshot; its connections are closed, its address stays."""
    if cluster.id == 0:
        raise ControlError("Cluster 0 is the broker itself, which cannot be replaced: open a cluster, and restore that")
    await cluster.restore(cluster.snapshots[values.integer("snapshot")])
    return {}


@operation("fork", "snapshot")
async def fork(cluster: VirtualCluster, values: Values) -> object:
    """Open a cluster that begins as this one is, or as it was in a snapshot."""
    is_temporary = not values.has("snapshot")
    number = await cluster.take_snapshot() if is_temporary else values.integer("snapshot")
    try:
        forked = await cluster.fork(cluster.snapshots[number])
    finally:
        if is_temporary:
            cluster.snapshots.remove(number)
    return {"id": forked.id, "bootstrap": forked.bootstrap}


@operation("save_snapshot", "snapshot", "path")
async def save(cluster: VirtualCluster, values: Values) -> object:
    """Save a snapshot as a directory that `barnabas serve --data-dir` takes."""
    path = Path(values.text("path"))
    if not path.is_absolute():
        raise ControlError("path must be absolute: the broker has another working directory")
    await trio.to_thread.run_sync(cluster.snapshots[values.integer("snapshot")].save, path)
    return {}


@operation("remove_snapshot", "snapshot")
async def remove(cluster: VirtualCluster, values: Values) -> object:
    """Remove a snapshot."""
    cluster.snapshots.remove(values.integer("snapshot"))
    return {}
