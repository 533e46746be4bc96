"""`cluster.json` in the directory of a cluster: who runs or ran, for the commands and for the next start.

It is replaced as a whole whenever something changes, so a reader sees one moment. After the supervisor was killed it
still says who ran; `is_alive` tells whether that supervisor is still there.

The file has no version: fields are only added, with a default, so that an older file can be read. Fields of a later
version are ignored, and named by `read_all`. A file that cannot be read is never replaced: it has the cluster id.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

FILE = "cluster.json"


class NoCluster(Exception):  # noqa: N818 - what it is, not an error of the program
    """The directory has no cluster; the text is one sentence."""


class Unreadable(NoCluster):
    """The directory has a file of a cluster that cannot be read."""


@dataclass(slots=True)
class NodeState:
    """One node as the supervisor sees it."""

    node_id: int
    role: str
    """`broker` or `controller`."""
    address: str
    """HOST:PORT for clients on this machine."""
    directory: str
    log: str
    """The file with its output."""
    pid: int | None = None
    """None if it does not run."""
    state: str = "new"
    """new, starting, running, stopping, stopped, died."""
    detail: str = ""
    """How it ended."""
    starts: int = 0

    @property
    def name(self) -> str:
        """`broker 1`."""
        return f"{self.role} {self.node_id}"


@dataclass(slots=True)
class ClusterState:
    """The cluster of a directory."""

    cluster_id: str
    controllers: str
    pid: int
    """Of the supervisor."""
    control: str
    """The path of its control socket."""
    nodes: list[NodeState] = field(default_factory=list)

    @property
    def brokers(self) -> list[NodeState]:
        """The brokers, by id."""
        return sorted((node for node in self.nodes if node.role == "broker"), key=lambda node: node.node_id)

    def node(self, node_id: int) -> NodeState:
        """The node with this id; NoCluster's sentence if there is none."""
        for node in self.nodes:
            if node.node_id == node_id:
                return node
        known = ", ".join(str(node.node_id) for node in sorted(self.nodes, key=lambda node: node.node_id))
        raise NoCluster(f"there is no node {node_id}; there are {known}")

    @property
    def bootstrap(self) -> str:
        """The addresses of the brokers that run; of all if none does."""
        running = [node.address for node in self.brokers if node.pid is not None]
        return ",".join(running or [node.address for node in self.brokers])


T = TypeVar("T")


def read(directory: str) -> ClusterState:
    """The state in a directory. NoCluster if there is none, Unreadable if it is damaged."""
    return read_all(directory)[0]


def read_all(directory: str) -> tuple[ClusterState, list[str]]:
    """The state in a directory, and the names of fields that this version does not know. As `read`."""
    path = Path(directory) / FILE
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(values, dict) or not isinstance(values.get("nodes"), list):
            raise TypeError("it has no nodes")
        unknown: dict[str, None] = {}
        nodes = [_made(NodeState, node, unknown) for node in values["nodes"]]
        state = _made(ClusterState, {**values, "nodes": nodes}, unknown)
    except FileNotFoundError:
        raise NoCluster(f"{directory} is not the directory of a cluster: it has no {FILE}") from None
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise Unreadable(
            f"{path} cannot be read: {error}. It has the id of the cluster: restore it from a copy, or move it away "
            f"and set CLUSTER_ID in the environment to the cluster.id that a broker's meta.properties has"
        ) from error
    return state, list(unknown)


_KINDS = {"str": str, "int": int, "int | None": int, "list[NodeState]": list}


def _made(kind: type[T], values: Mapping[str, Any], unknown: dict[str, None]) -> T:
    """An object of its known fields; adds the others to `unknown`. TypeError for a missing field or a wrong value."""
    known = {one.name: str(one.type) for one in fields(kind)}  # type: ignore[arg-type]
    unknown.update(dict.fromkeys(name for name in values if name not in known))
    given = {name: value for name, value in values.items() if name in known}
    for name, value in given.items():
        is_absent = value is None and known[name].endswith("None")
        if not is_absent and (not isinstance(value, _KINDS[known[name]]) or isinstance(value, bool)):
            raise TypeError(f"{name} is {value!r}")
    return kind(**given)


def write(directory: str, state: ClusterState) -> None:
    """Replace the state."""
    path = Path(directory) / FILE
    temporary = path.with_name(f"{FILE}.new")
    temporary.write_text(json.dumps(asdict(state), indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)


def is_alive(pid: int) -> bool:
    """Whether a process with this id runs. One that has ended does not, also before its parent has waited for it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Whether only the exit code of a process is left, which a container without an init never asks for."""
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False  # not Linux, or it is gone just now
    return status.rpartition(b") ")[2][:1] == b"Z"
