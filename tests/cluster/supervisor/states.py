"""States of a cluster that `barnabas serve --brokers` keeps."""

from __future__ import annotations

import os
from pathlib import Path

from barnabas.storage.directories.meta_properties import MetaProperties, write_meta_properties
from barnabas.storage.files import Files
from barnabas.supervise.options import OURS
from barnabas.supervise.state import ClusterState, NodeState

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


def identify(directory: Path, node_id: int, cluster_id: str = CLUSTER_ID) -> None:
    """Make the log directory of a node that has been started."""
    directory.mkdir(parents=True)
    identity = MetaProperties(node_id, cluster_id, "")
    write_meta_properties(Files(), str(directory / "meta.properties"), identity)


def a_state(directory: Path) -> ClusterState:
    node = NodeState(1, "broker", "127.0.0.1:9092", str(directory / "broker-1"), str(directory / "broker-1.log"))
    return ClusterState(CLUSTER_ID, OURS, os.getpid(), control="", nodes=[node])
