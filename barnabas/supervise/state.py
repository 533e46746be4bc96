"""`cluster.json` in the directory of a cluster: its nodes, and which of them ran when it was written.

It is replaced as a whole, durably, at each change, so a reader sees one moment. Its process ids are for an operator to
read; after a power failure other processes may have them, so the code concludes nothing from one. The supervisor knows
which nodes run now (`control.look`), and its lock shows whether there is a supervisor (`lock`).

The file has no version: fields are only added, with a default, so that an older file can be read. Fields of a later
version are ignored, and named by `read_all`. `recovery` restores the content of a file that cannot be read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from barnabas.storage.directories.checkpoints import replace_file
from barnabas.storage.files import Files
from barnabas.storage.layout import CLUSTER_STATE

FILE = CLUSTER_STATE


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


def requests_file(node: NodeState) -> str:
    """The control file of a broker whose requests the console of the cluster shows."""
    return f"{node.directory}.requests"


@dataclass(slots=True)
class ClusterState:
    """The cluster of a directory."""

    cluster_id: str
    controllers: str
    pid: int
    """Of the supervisor that wrote the file; for the reader's eyes only."""
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
    """The state in a directory, and the names of fields that this version does not know. As `read`.

    The nodes' directories are where the file is: it may have been moved or copied with them.
    """
    path = Path(directory).absolute() / FILE
    try:
        state, unknown = of_values(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise NoCluster(f"{directory} is not the directory of a cluster: it has no {FILE}") from None
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise Unreadable(
            f"{path} cannot be read: {error}. The next 'barnabas serve --brokers' finds what it held in the "
            "directories of the nodes"
        ) from error
    for node in state.nodes:
        node.directory, node.log = (str(path.parent / Path(name).name) for name in (node.directory, node.log))
    return state, unknown


def of_values(values: Any) -> tuple[ClusterState, list[str]]:
    """The state of a JSON value, and the names of unknown fields. TypeError or AttributeError if it is none."""
    if not isinstance(values, dict) or not isinstance(values.get("nodes"), list):
        raise TypeError("it has no nodes")
    unknown: dict[str, None] = {}
    nodes = [_made(NodeState, node, unknown) for node in values["nodes"]]
    return _made(ClusterState, {**values, "nodes": nodes}, unknown), list(unknown)


_KINDS = {"str": str, "int": int, "int | None": int, "list[NodeState]": list}


def _made(kind: type[T], values: Mapping[str, Any], unknown: dict[str, None]) -> T:
    """An object of its known fields; adds the others to `unknown`. TypeError for a missing field or a wrong value."""
    known = {declared.name: str(declared.type) for declared in fields(kind)}  # type: ignore[arg-type]
    unknown.update(dict.fromkeys(name for name in values if name not in known))
    arguments = {name: value for name, value in values.items() if name in known}
    for name, value in arguments.items():
        is_absent = value is None and known[name].endswith("None")
        if not is_absent and (not isinstance(value, _KINDS[known[name]]) or isinstance(value, bool)):
            raise TypeError(f"{name} is {value!r}")
    return kind(**arguments)


def write(directory: str, state: ClusterState, files: Files | None = None) -> None:
    """Replace the state; durable on return. OSError."""
    content = json.dumps(asdict(state), indent=1) + "\n"
    replace_file(files or Files(), str(Path(directory).absolute() / FILE), content.encode())
