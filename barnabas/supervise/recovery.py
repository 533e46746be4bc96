"""Restores the content of `cluster.json` from the directories of the nodes: the cluster's id, nodes and controllers.

Each node's `meta.properties` has the id. Our controller has its log directory where a broker has it, Kafka's have one
below. Without a controller's directory the metadata is gone: brokers that have partitions would set them all aside.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from barnabas.coord.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.storage import layout
from barnabas.storage.directories.checkpoints import CorruptCheckpoint
from barnabas.storage.directories.foreign import is_known_of_partition
from barnabas.storage.directories.meta_properties import DataDirMismatch, read_meta_properties
from barnabas.storage.files import ReadOnlyFiles
from barnabas.supervise.lock import node_directories
from barnabas.supervise.options import KAFKA, OURS
from barnabas.supervise.plan import PlanError
from barnabas.supervise.state import ClusterState, NodeState

LOGS = "logs"
"""The log directory of one of Kafka's controllers, below the node's."""


def find_again(directory: str) -> ClusterState | None:
    """The cluster whose nodes have directories here; None if no node has been started yet.

    PlanError, one sentence, if they contradict each other, or none of them can be read. OSError.
    """
    base = Path(directory).absolute()
    cluster = ClusterState("", "", 0, control="")
    clusters: dict[str, str] = {}
    unreadable: list[str] = []
    for name, below in [(name, below) for name in node_directories(base) for below in ("", LOGS)]:
        try:
            identity = read_meta_properties(ReadOnlyFiles(), str(base / name / below / layout.META_PROPERTIES))
        except (CorruptCheckpoint, DataDirMismatch) as error:
            unreadable.append(str(error))
            continue
        if identity is None:
            continue
        clusters.setdefault(identity.cluster_id, name)
        role = name.partition("-")[0]
        cluster.nodes.append(NodeState(identity.node_id, role, "", str(base / name), str(base / f"{name}.log")))
        if role == "controller":
            cluster.controllers = KAFKA if below else OURS
    if not clusters and not unreadable:
        return None
    cluster.cluster_id = _one_of(directory, clusters, unreadable)
    if not cluster.controllers:
        raise PlanError(
            f"{directory} has brokers of the cluster {cluster.cluster_id}, but no directory of a controller, which has "
            "the metadata of their partitions: restore it from a copy"
        )
    return cluster


def check_metadata(directory: str, controllers: Sequence[int]) -> None:
    """PlanError if brokers have partitions here, and a majority of these controllers has no directory any longer.

    They would begin with empty metadata, by which every broker sets all of its partitions aside.
    """
    base = Path(directory).absolute()
    present = [node_id for node_id in controllers if _has_identity(base / f"controller-{node_id}")]
    if 2 * len(present) > len(controllers):
        return
    names = [name for name in node_directories(base) if name.startswith("broker-") and _has_partitions(base / name)]
    if names:
        raise PlanError(
            f"{', '.join(names)} in {directory} {'has' if len(names) == 1 else 'have'} partitions, but the controllers "
            "that have their metadata have no directory there any longer: restore it from a copy"
        )


def _has_identity(node: Path) -> bool:
    return any((node / below / layout.META_PROPERTIES).exists() for below in ("", LOGS))


def _has_partitions(broker: Path) -> bool:
    files = ReadOnlyFiles()
    names = [name for name in files.list_dirs(str(broker)) if _topic_of(name) not in {None, CLUSTER_METADATA_TOPIC}]
    return any(is_known_of_partition(files, str(broker / name)) for name in names)


def _topic_of(name: str) -> str | None:
    partition = layout.parse_partition_dir(name)
    return None if partition is None else partition[0]


def _one_of(directory: str, clusters: dict[str, str], unreadable: list[str]) -> str:
    """The id of the cluster that all nodes belong to. PlanError if there is none."""
    if not clusters:
        raise PlanError(f"the cluster of {directory} is not known: {unreadable[0]}")
    if len(clusters) > 1:
        texts = ", ".join(f"{name} to {cluster_id}" for cluster_id, name in clusters.items())
        raise PlanError(f"the nodes in {directory} belong to different clusters: {texts}")
    return next(iter(clusters))
