"""The broker's side of a cleaner process: one pipe in each direction, one line of JSON for each message."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import trio

from barnabas.storage.cleaning.task import CleanedGroup, CleaningDone, CleaningTask

_PROGRAM = (
    "import sys; sys.path[:] = {path!r}; from barnabas.broker.replicas.cleaning.cleaner_worker import main; main()"
)
_READ_SIZE = 65536


class CleaningFailed(Exception):  # noqa: N818 - named for what happened
    """A log could not be cleaned. `errno` is the system's error number; `is_damaged` if the log cannot be read."""

    def __init__(self, errno: int | None, reason: str, *, is_damaged: bool) -> None:
        super().__init__(reason)
        self.errno = errno
        self.reason = reason
        self.is_damaged = is_damaged


class CleanerLost(Exception):  # noqa: N818 - named for what happened
    """The process has ended without an answer: it was killed, or crashed with a traceback on stderr."""


class CleanerProcess:
    """A cleaner that runs until `close`. It takes one task at a time."""

    def __init__(self) -> None:
        """Start the process; fast, since it is not a fork of this one. OSError when the system cannot start it."""
        # Not from a worker thread: PR_SET_PDEATHSIG kills a child when the thread that started it ends.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _PROGRAM.format(path=sys.path), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input = trio.lowlevel.FdStream(os.dup(self._process.stdin.fileno()))
        self._output = trio.lowlevel.FdStream(os.dup(self._process.stdout.fileno()))
        self._process.stdin.close()
        self._process.stdout.close()
        self._received = b""

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    async def start(self, task: CleaningTask) -> None:
        """Send a task; the previous one must have ended. Raises CleanerLost."""
        try:
            await self._input.send_all(task.to_json().encode() + b"\n")
        except trio.BrokenResourceError:
            raise CleanerLost from None

    async def answer(self) -> CleanedGroup | CleaningDone:
        """The next cleaned segment, or the totals once the log is done. Raises CleaningFailed, CleanerLost."""
        ((kind, value),) = json.loads(await self._line()).items()
        if kind == "failed":
            raise CleaningFailed(value["errno"], value["reason"], is_damaged=value["is_damaged"])
        return CleaningDone(*value) if kind == "done" else CleanedGroup(*value)

    async def _line(self) -> bytes:
        while b"\n" not in self._received:
            data = await self._output.receive_some(_READ_SIZE)
            if not data:
                raise CleanerLost
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        return line

    async def close(self) -> None:
        """Kill the process, also while it works; the next one removes its unfinished files. Never cancelled."""
        self._process.kill()
        with trio.CancelScope(shield=True):
            await self._input.aclose()
            await self._output.aclose()
            await trio.to_thread.run_sync(self._process.wait)
