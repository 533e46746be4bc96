"""The control socket of a supervisor: one JSON line for a request, one for its answer.

It is a Unix socket in the cluster's directory, or in a directory of its own when that path would be too long for one;
both are accessible to the user only. A supervisor runs if its socket is listened to; a process id would not prove that.
A request names the directory, so that a request from a copy of it does not reach the original's supervisor.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from barnabas.supervise import state
from barnabas.supervise.state import ClusterState

NAME = "control"
PATH_MAX = 100
"""Bytes of a socket's path that every system allows."""
ANSWER_S = 120.0
"""How long a command waits for the supervisor, seconds."""
LOOK_S = 5.0
"""How long a command waits for the supervisor's list of running nodes, seconds."""
LINE_MAX = 65_536


class ControlError(Exception):
    """The supervisor cannot be asked, or has refused; the text is one sentence."""


def open_listener(directory: str) -> tuple[socket.socket, str]:
    """A listening socket and its path."""
    path = str(Path(directory).absolute() / NAME)
    if len(os.fsencode(path)) > PATH_MAX:
        path = str(Path(tempfile.mkdtemp(prefix="barnabas-")) / NAME)
    Path(path).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o077)
    try:
        listener.bind(path)
    finally:
        os.umask(mask)
    listener.listen(16)
    listener.setblocking(False)
    return listener, path


def remove(path: str, directory: str) -> None:
    """Remove the socket, with the directory that was made for it."""
    Path(path).unlink(missing_ok=True)
    if Path(path).parent != Path(directory).absolute():
        Path(path).parent.rmdir()


class NotRunning(ControlError):  # noqa: N818 - a condition
    """The directory has no supervisor that runs."""


def ask(directory: str, command: str, *, patience_s: float = ANSWER_S, **arguments: Any) -> dict[str, Any]:
    """Ask the supervisor of a cluster, and wait for its answer. NoCluster; NotRunning; ControlError's sentence."""
    own = str(Path(directory).absolute() / NAME)
    try:
        known = state.read(directory)
    except state.Unreadable:
        paths = [own]
    else:
        paths = list(dict.fromkeys([known.control or own, own]))
    request = {"command": command, "directory": os.path.realpath(directory), **arguments}
    for path in paths:
        response = _ask_at(path, request, patience_s)
        if response is None or response.get("is_other"):
            continue
        if "error" in response:
            raise ControlError(response["error"])
        return response
    raise NotRunning(
        f"the supervisor of {directory} does not run: 'barnabas serve --brokers N --data-dir {directory}' starts the "
        "cluster"
    )


def _ask_at(path: str, request: dict[str, Any], patience_s: float) -> dict[str, Any] | None:
    """The answer of the supervisor at a socket; None if there is none."""
    if len(os.fsencode(path)) > PATH_MAX:
        return None
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(patience_s)
            connection.connect(path)
            connection.sendall(json.dumps(request).encode() + b"\n")
            response: dict[str, Any] = json.loads(_line(connection))
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        return None
    except TimeoutError:
        raise ControlError(f"the supervisor at {path} has not answered in {patience_s:.0f} s") from None
    except OSError as error:
        raise ControlError(f"the supervisor at {path} cannot be reached: {error.strerror}") from error
    return response


def look(directory: str, say: Callable[[str], object]) -> ClusterState:
    """The cluster of a directory, with the nodes that run now; notes for the user are said. NoCluster.

    Without a supervisor none runs: nodes end with it.
    """
    try:
        values = ask(directory, "state", patience_s=LOOK_S)
    except NotRunning:
        pass
    except ControlError as error:
        say(f"{error}; this is what it has written before")
        return state.read(directory)
    else:
        return state.of_values(values)[0]
    known = state.read(directory)
    was_killed = False
    for node in known.nodes:
        if node.pid is not None:
            node.detail = f"ended with its supervisor; its pid was {node.pid}"
            node.pid, node.state, was_killed = None, "died", True
    say(f"the supervisor of {directory} does not run{' any more: it was killed' if was_killed else ''}")
    return known


def _line(connection: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\n"):
        piece = connection.recv(LINE_MAX)
        if not piece:
            raise ControlError("the supervisor has ended")
        data += piece
    return data
