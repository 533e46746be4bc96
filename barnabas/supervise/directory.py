"""The directory of a cluster, as its supervisor takes it: made, locked, and not the directory of one broker.

A log directory of one broker has `meta.properties`, or partitions. `barnabas serve` refuses a cluster's in turn
(`storage.directories.foreign`).
"""

from __future__ import annotations

from pathlib import Path

from barnabas.storage import layout
from barnabas.storage.directories.foreign import partition_in
from barnabas.storage.files import Files
from barnabas.supervise.lock import ClusterLock
from barnabas.supervise.plan import PlanError
from barnabas.terminal.notes import note


def take_directory(directory: str, patience_s: float) -> ClusterLock:
    """Make the directory if it is missing, and lock it; nodes of an earlier supervisor are waited for.

    PlanError if it is the directory of one broker, or another process has it. OSError.
    """
    _make(Path(directory).absolute())
    _refuse_log_directory(directory)
    lock = ClusterLock(directory)
    lock.take(patience_s, lambda text: note(f"barnabas serve: {text}"))
    try:
        _refuse_log_directory(directory)  # a broker may have had the lock until now
    except BaseException:
        lock.release()
        raise
    return lock


def _make(path: Path) -> None:
    """Make a directory durable with those above it, so that a power failure does not remove the cluster."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for made in missing:
        Files().sync_dir(str(made.parent))


def _refuse_log_directory(directory: str) -> None:
    files = Files()
    if files.exists(f"{directory}/{layout.META_PROPERTIES}"):
        found: str | None = layout.META_PROPERTIES
    else:
        found = partition_in(files, directory, may_be_empty=False)
    if found is None:
        return
    if files.exists(f"{directory}/{layout.CLUSTER_STATE}"):
        raise PlanError(
            f"{directory} has the data of one broker ({found}) beside that of a cluster: move {layout.CLUSTER_STATE} "
            "and the directories of the nodes to a directory of their own"
        )
    raise PlanError(
        f"{directory} has the data of one broker ({found}), not of a cluster: give --data-dir another directory, or "
        "start the broker with 'barnabas serve' without --brokers"
    )
