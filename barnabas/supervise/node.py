"""A node's process: forked from the supervisor, which has imported the broker's modules once for all.

A node is a process group of its own, so that Ctrl-C reaches only the supervisor, and a kill all that it has started. It
ends when its lifeline does: a pipe whose writing end the supervisor holds and, for a controller, the brokers as well.
So nodes end with a supervisor that is killed, by a clean stop, the controllers last.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

Body = Callable[[], int]
"""The function that a node's process runs; it returns the exit code."""
RESTORED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP})
"""Signals that a node handles as if it had no supervisor."""


class Lifeline:
    """A pipe that ends when no process holds its writing end any more."""

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()

    def let_go(self) -> None:
        """Close the writing end in this process."""
        if self._writing >= 0:
            os.close(self._writing)
            self._writing = -1

    def end_with(self) -> None:
        """End this process, as SIGTERM does, when the lifeline ends."""
        thread = threading.Thread(target=self._wait, name="lifeline", daemon=True)
        thread.start()

    def _wait(self) -> None:
        os.read(self.reading, 1)
        os.kill(os.getpid(), signal.SIGTERM)


def fork(body: Body, log: str, in_child: Callable[[], None]) -> int:
    """Start a process that runs `body`, with its output appended to `log`; returns its id.

    `in_child` is called first in the child, to release the supervisor's resources.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    # The supervisor's handlers are the child's as well until it restores them: a signal to the child would be lost.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, RESTORED)
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        try:
            os.setpgid(pid, pid)  # here and in the child: whichever comes first
        except OSError:
            pass  # it has ended already
        return pid
    code = 1
    try:
        os.setpgid(0, 0)
        _restore_signals()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _redirect(log)
        in_child()
        code = body()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def _restore_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in RESTORED - {signal.SIGINT}:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _redirect(log: str) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(output)


def last_line(log: str) -> str:
    """The last line of a node's output; empty if it has none."""
    try:
        lines = Path(log).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def how_it_ended(status: int) -> str:
    """`exit code 1`, `killed by SIGKILL`: of a status of waitpid."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exit code {code}"
    return f"killed by {signal.Signals(-code).name}"
