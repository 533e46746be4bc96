"""The file that makes a saved snapshot of several brokers a directory of `barnabas serve --brokers N --data-dir`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cluster.options import OURS
from barnabas.cluster.state import ClusterState, NodeState, write

if TYPE_CHECKING:
    from barnabas.control.snapshots import NodesState


def write_state(path: Path, nodes: NodesState) -> None:
    """Write `cluster.json`: who the nodes are, of which none runs. OSError."""
    state = ClusterState(nodes.cluster_id, OURS, os.getpid(), control="")
    for node_id, name in nodes.directories.items():
        role = name.partition("-")[0]
        state.nodes.append(NodeState(node_id, role, "", str(path / name), str(path / f"{name}.log")))
    write(str(path), state)
