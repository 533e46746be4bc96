"""The file that makes a saved snapshot of several brokers a directory of `barnabas serve --brokers N --data-dir`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from barnabas.supervise.options import OURS
from barnabas.supervise.state import ClusterState, NodeState, write


def write_state(path: Path, cluster_id: str, directories: Mapping[int, str]) -> None:
    """Write `cluster.json`: the nodes, none of which runs, with the names of their directories. OSError."""
    state = ClusterState(cluster_id, OURS, os.getpid(), control="")
    for node_id, name in directories.items():
        role = name.partition("-")[0]
        state.nodes.append(NodeState(node_id, role, "", str(path / name), str(path / f"{name}.log")))
    write(str(path), state)
