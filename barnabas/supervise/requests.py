"""The commands of `barnabas cluster` that the supervisor carries out: start, stop, kill, add, list running nodes.

A connection brings one line of JSON and gets one. An answer may wait for a condition, which is looked at in each turn
of the supervisor's loop; it delays no other answer.
"""

from __future__ import annotations

import json
import selectors
import signal
import socket
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.supervise.control import LINE_MAX
from barnabas.supervise.state import NoCluster, NodeState

if TYPE_CHECKING:
    from barnabas.supervise.members import Members
    from barnabas.supervise.state import ClusterState

Answer = dict[str, Any]
Pending = Callable[[], Answer | None]
"""Returns the answer once it is known, else None."""
CONNECTIONS_MAX = 64


class Nodes(Protocol):
    """The supervisor's operations on nodes, as the commands use them."""

    members: Members
    is_stopping: bool

    @property
    def state(self) -> ClusterState: ...

    def start(self, node: NodeState, command: str = "") -> None: ...

    def signal_node(self, node: NodeState, number: signal.Signals, command: str = "") -> None: ...


class Refused(Exception):  # noqa: N818 - an answer
    """A command that cannot be carried out; the text is one sentence."""


class Requests:
    """The connections of the control socket."""

    def __init__(self, supervisor: Nodes, selector: selectors.BaseSelector) -> None:
        self._supervisor = supervisor
        self._selector = selector
        self._received: dict[socket.socket, bytes] = {}
        self._pending: dict[socket.socket, Pending] = {}
        self._commands: dict[str, Callable[[Answer], Pending]] = {
            "state": self._state,
            "start": self._start,
            "stop": lambda request: self._end(request, signal.SIGTERM),
            "kill": lambda request: self._end(request, signal.SIGKILL),
            "add": self._add,
        }

    def descriptors(self) -> list[int]:
        """The descriptors of the open connections."""
        return [connection.fileno() for connection in {*self._received, *self._pending}]

    def accept(self, listener: socket.socket) -> None:
        """Take one connection."""
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        if len(self._received) + len(self._pending) >= CONNECTIONS_MAX:
            connection.close()
            return
        connection.setblocking(False)
        self._received[connection] = b""
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._read(connection))

    def _read(self, connection: socket.socket) -> None:
        try:
            piece = connection.recv(LINE_MAX)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        data = self._received.get(connection, b"") + piece
        if not piece or len(data) > LINE_MAX or connection in self._pending:
            self._close(connection)
            return
        self._received[connection] = data
        if not data.endswith(b"\n"):
            return
        del self._received[connection]
        try:
            request = json.loads(data)
            if not self._is_meant(request.get("directory")):
                self._answer(connection, {"error": "this supervisor has another directory", "is_other": True})
                return
            self._pending[connection] = self._commands[request["command"]](request)
        except (Refused, NoCluster) as error:
            self._answer(connection, {"error": str(error)})
        except (ValueError, KeyError, TypeError, AttributeError):
            self._answer(connection, {"error": "the supervisor does not understand the command"})

    def _is_meant(self, directory: str | None) -> bool:
        """Whether a request is for the cluster of this directory: a copy's `cluster.json` has the same socket."""
        try:
            return directory is None or self._supervisor.members.directory.samefile(directory)
        except OSError:
            return False

    def look(self) -> None:
        """Send the answers that are known by now."""
        for connection, pending in list(self._pending.items()):
            response = pending()
            if response is not None:
                self._answer(connection, response)

    def _answer(self, connection: socket.socket, response: Answer) -> None:
        try:
            connection.setblocking(True)
            connection.settimeout(1.0)
            connection.sendall(json.dumps(response).encode() + b"\n")
        except OSError:
            pass  # the client has disconnected
        self._close(connection)

    def _close(self, connection: socket.socket) -> None:
        self._received.pop(connection, None)
        self._pending.pop(connection, None)
        self._selector.unregister(connection)
        connection.close()

    # commands

    def _state(self, _request: Answer) -> Pending:
        return lambda: asdict(self._supervisor.state)

    def _node(self, request: Answer) -> NodeState:
        return self._supervisor.state.node(int(request["node"]))

    def _start(self, request: Answer) -> Pending:
        node = self._node(request)
        if node.pid is not None:
            raise Refused(f"{node.name} runs already (pid {node.pid})")
        return self._started(node, "start")

    def _add(self, _request: Answer) -> Pending:
        supervisor = self._supervisor
        node_id = max(node.node_id for node in supervisor.state.brokers) + 1
        return self._started(supervisor.members.add_broker(node_id), "add")

    def _started(self, node: NodeState, command: str) -> Pending:
        supervisor = self._supervisor
        if supervisor.is_stopping:
            raise Refused("the cluster is being stopped")
        supervisor.start(node, command)

        def look() -> Answer | None:
            if node.state == "running":
                return asdict(node)
            if node.pid is None:
                return {"error": f"{node.name} could not start ({node.detail}); its output is {node.log}"}
            return None

        return look

    def _end(self, request: Answer, number: signal.Signals) -> Pending:
        node = self._node(request)
        if node.pid is None:
            raise Refused(f"{node.name} does not run")
        pid = node.pid
        if number is signal.SIGKILL:
            node.state = "stopping"  # a command has asked for it: it is not reported as a failure
        self._supervisor.signal_node(node, number, "stop" if number is signal.SIGTERM else "kill")
        return lambda: {**asdict(node), "pid": pid} if node.pid is None else None
