"""The control socket of a supervisor: one JSON line for a request, one for its answer.

It is a Unix socket in the cluster's directory, or in a directory of its own when that path would be too long for one;
both are accessible to the user only.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
from pathlib import Path
from typing import Any

from barnabas.cluster import state

NAME = "control"
PATH_MAX = 100
"""Bytes of a socket's path that every system allows."""
ANSWER_S = 120.0
"""How long a command waits for the supervisor, seconds."""
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


def ask(directory: str, command: str, **arguments: Any) -> dict[str, Any]:
    """Ask the supervisor of a cluster, and wait for its answer. NoCluster; ControlError with its sentence."""
    known = state.read(directory)
    if not state.is_alive(known.pid):
        raise ControlError(
            f"the supervisor of {directory} (pid {known.pid}) does not run: start the cluster with 'barnabas serve'"
        )
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(ANSWER_S)
            connection.connect(known.control)
            connection.sendall(json.dumps({"command": command, **arguments}).encode() + b"\n")
            line = _line(connection)
    except TimeoutError:
        raise ControlError(f"the supervisor (pid {known.pid}) has not answered in {ANSWER_S:.0f} s") from None
    except OSError as error:
        raise ControlError(f"the supervisor (pid {known.pid}) cannot be reached: {error.strerror}") from error
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise ControlError(answer["error"])
    return answer


def _line(connection: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\n"):
        piece = connection.recv(LINE_MAX)
        if not piece:
            raise ControlError("the supervisor has ended")
        data += piece
    return data
