"""Runs `python -m MODULE` in forks of a process that has imported the modules, which avoids most of a start.

`ForkServer.run` is like `subprocess.run` of the command with captured output. Variables that are read when an
interpreter starts (PYTHONPATH, LANG and the like) need a new one; so do tests of which modules are imported.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
NUMBER = struct.Struct("!i")
READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_")
"""The beginnings of the names of variables that an interpreter reads when it starts."""


def read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that only a new interpreter reads."""
    return {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}


class ForkServer:
    """A process with these modules imported. The first run starts it; it ends with the process that has started it.

    It has one run at a time: runs of other threads wait.
    """

    def __init__(self, *modules: str) -> None:
        self._modules = modules
        self._connection: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def run(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run `python -m MODULE ARGUMENTS` to its end. TimeoutExpired after so many seconds: the process is killed."""
        environment = dict(os.environ if env is None else env)
        if (unread := read_at_start(environment)) != read_at_start(os.environ):
            raise ValueError(f"only a new interpreter reads {unread}")
        request = {"module": module, "arguments": list(arguments), "cwd": str(cwd or Path.cwd()), "env": environment}
        with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr, _pipe_with(stdin) as reading:
            with self._lock:
                code = self._run(request, [reading, stdout.fileno(), stderr.fileno()], timeout)
            written = []
            for file in (stdout, stderr):
                file.seek(0)
                written.append(file.read())
        return subprocess.CompletedProcess([module, *arguments], code, *written)

    def _run(self, request: dict[str, Any], descriptors: list[int], timeout: float) -> int:
        """The exit code of one run."""
        connection = self._connection = self._connection or self._start()
        socket.send_fds(connection, [b"\0"], descriptors)
        connection.sendall(json.dumps(request).encode() + b"\n")
        pid = self._number(connection)
        connection.settimeout(timeout)
        try:
            code = self._number(connection)
        except BaseException as error:  # an interrupt of the test too: the next run must not get this one's exit code
            self._connection = None
            connection.close()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            if isinstance(error, TimeoutError):
                raise subprocess.TimeoutExpired([request["module"], *request["arguments"]], timeout) from None
            raise
        connection.settimeout(None)
        return code

    @staticmethod
    def _number(connection: socket.socket) -> int:
        response = connection.recv(NUMBER.size)
        if not response:
            raise RuntimeError("the process that forks has ended; stderr has its traceback")
        (number,) = NUMBER.unpack(response)
        return int(number)

    def _start(self) -> socket.socket:
        ours, its = socket.socketpair()
        with its:
            command = [sys.executable, "-m", "tests.support.processes.fork_server", str(its.fileno()), *self._modules]
            none = subprocess.DEVNULL
            self._process = subprocess.Popen(command, cwd=ROOT, pass_fds=[its.fileno()], stdin=none, stdout=none)
        atexit.register(self._end, ours, self._process)
        return ours

    @staticmethod
    def _end(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
        connection.close()
        process.wait(10)


@contextlib.contextmanager
def _pipe_with(content: bytes) -> Iterator[int]:
    """The end to read of a pipe into which this is written, as far as it is read."""
    reading, writing = os.pipe()

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), open(writing, "wb") as file:
            file.write(content)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield reading
    finally:
        os.close(reading)
        writer.join()
