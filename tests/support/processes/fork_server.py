"""The process that `forking.py` starts: it imports modules once, and forks itself for each run of a module.

It has no thread, so a fork of it is a whole process. Each run has the descriptors, the directory, the environment and
the arguments that a new interpreter would have, and ends as one does: by `sys.exit` and the interpreter's own end.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import time
from typing import Any

from tests.support.processes.forking import NUMBER


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next request with its three descriptors; None when the client is gone."""
    first, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
    if not first:
        return None
    text = b""
    while not text.endswith(b"\n"):
        text += connection.recv(1 << 16)
    return json.loads(text), descriptors


def become(request: dict[str, Any], descriptors: list[int]) -> None:
    """Take the place of a new interpreter: its descriptors, directory, environment and arguments."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    sys.argv = [request["module"], *request["arguments"]]
    sys.path[0] = request["cwd"]


def main() -> None:
    """Serve the socket whose descriptor is the first argument; the others are modules to import."""
    for name in sys.argv[2:]:
        importlib.import_module(name)
    connection = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that runs the tests
    gc.collect()
    gc.freeze()
    while (received := receive(connection)) is not None:
        request, descriptors = received
        if (pid := os.fork()) == 0:
            connection.close()
            become(request, descriptors)
            runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
            return
        for descriptor in descriptors:
            os.close(descriptor)
        connection.sendall(NUMBER.pack(pid))
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(BrokenPipeError):  # the caller no longer waits
            connection.sendall(NUMBER.pack(os.waitstatus_to_exitcode(status)))


if __name__ == "__main__":
    main()
