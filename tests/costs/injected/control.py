"""The control of a counted broker: commands arrive while the loop waits, so they find it between two turns.

A command is a line of JSON. `hold` stops the clocks and keeps the loop where it waits; it is obeyed when nothing is
left to do: nothing is ready, no task can run, other threads are idle. `go` has the loop go on once so many bytes have
arrived in all its sockets: a turn begins with whole requests, however slow the machine is. `free` ends that.

While the clocks stand, a wait lasts until something is ready, except where another task of trio can run: then the loop
goes on at once, as it would after its short wait.
"""

from __future__ import annotations

import fcntl
import gc
import json
import select
import socket
import struct
import sys
import termios
import threading
import time
from typing import TYPE_CHECKING, Any

from .scheduling import has_other_tasks, seconds_to_next_deadline

if TYPE_CHECKING:
    from .clock import Clock
    from .tracer import Tracer

ARRIVAL_S = 30.0
"""How long the bytes of requests may take over loopback, seconds."""
RECEIVE_BYTES = 208 * 1024
"""The receive buffers of sockets: a whole request fits into one. It is what every Linux allows (net.core.rmem_max)."""
_PAUSE_S = 0.0002
_sleep, _monotonic, _poll = time.sleep, time.monotonic, select.poll


class Control:
    """Obeys the commands that arrive at a socket."""

    def __init__(self, fd: int, clock: Clock, tracer: Tracer) -> None:
        self._socket = socket.socket(fileno=fd)
        self._received = b""
        self._clock = clock
        self._tracer = tracer
        self._clients: set[int] = set()
        """The descriptors of the connections of clients."""

    # -- what the epolls tell

    def opened(self, fd: int) -> None:
        """A descriptor is watched: a listening socket gets its receive buffer, which its connections have then."""
        try:
            watched = socket.socket(fileno=_duplicate(fd))
        except OSError:
            return  # no socket
        with watched:
            if watched.family not in {socket.AF_INET, socket.AF_INET6}:
                return
            if watched.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                watched.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
            else:
                self._clients.add(fd)

    def closed(self, fd: int) -> None:
        """A descriptor is watched no longer."""
        self._clients.discard(fd)

    # -- waiting

    def wait(self, epoll: select.epoll, timeout: float | None, maxevents: int) -> list[tuple[int, int]]:
        """What is ready in an epoll, and the commands that arrive meanwhile."""
        clock = self._clock
        limit = None if timeout is None or timeout < 0 else timeout
        end = None if limit is None else clock.read("monotonic") + limit
        while True:
            events = epoll.poll(0, maxevents)
            if events or limit == 0:
                return events
            if end is not None and clock.read("monotonic") >= end:
                return []
            if clock.is_stopped and limit is not None and has_other_tasks():
                return []
            remaining = None if clock.is_stopped or end is None else max(0.0, end - clock.read("monotonic"))
            ready = self._ready(epoll, remaining)
            if ready == {self._socket.fileno()} and not (clock.is_stopped and self._has_followed(epoll)):
                self._obey()

    def _has_followed(self, epoll: select.epoll) -> bool:
        """Whether other threads, which are waited for, have given the loop something to do."""
        self._wait_for_threads()
        return bool(self._ready(epoll, 0) & {epoll.fileno()})

    def _ready(self, epoll: select.epoll, seconds: float | None) -> set[int]:
        if b"\n" in self._received:
            seconds = 0  # a command that has come with the one before
        poll = _poll()
        poll.register(epoll.fileno(), select.POLLIN)
        poll.register(self._socket.fileno(), select.POLLIN)
        ready = {fd for fd, _ in poll.poll(None if seconds is None else seconds * 1000)}
        return ready | {self._socket.fileno()} if b"\n" in self._received else ready

    # -- commands

    def _obey(self) -> None:
        """Obey commands until one has the loop go on."""
        while True:
            command: dict[str, Any] = json.loads(self._line())
            answer = getattr(self, f"_do_{command.pop('do')}")(**command)
            if answer is None:
                return
            self._socket.sendall(json.dumps(answer).encode() + b"\n")

    def _line(self) -> bytes:
        while b"\n" not in self._received:
            received = self._socket.recv(4096)
            if not received:
                sys.exit("whoever counts is gone")
            self._received += received
        line, _, self._received = self._received.partition(b"\n")
        return line

    def _do_hold(self) -> dict[str, Any]:
        self._clock.stop()
        self._wait_for_threads()
        self._tracer.stop()
        gc.disable()
        return {}

    def _do_go(self, size: int, *, is_counted: bool, call_s: float) -> None:
        self._wait_for_bytes(size)
        self._clock.call_s = call_s
        if is_counted:
            self._tracer.start()

    def _do_advance(self, seconds: float) -> dict[str, Any]:
        self._clock.advance(seconds)
        return {}

    def _do_due(self) -> dict[str, Any]:
        return {"seconds": seconds_to_next_deadline()}

    def _do_free(self) -> None:
        self._clock.go_on()
        gc.enable()

    def _do_take(self) -> dict[str, Any]:
        counts = self._tracer.take()
        functions = [[file, name, count] for (file, name), count in counts.bytecodes.items() if count]
        return {"functions": functions, "calls": {name: count for name, count in counts.calls.items() if count}}

    def _do_where(self) -> dict[str, Any]:
        """The files that the broker's packages were imported from."""
        roots = ("barnabas", "broker", "coord", "storage", "wire")
        return {
            name: module.__file__
            for name, module in sys.modules.items()
            if name.split(".")[0] in roots and module.__file__
        }

    # -- waiting for what is on its way

    def _wait_for_bytes(self, size: int) -> None:
        end = _monotonic() + ARRIVAL_S
        while (arrived := sum(map(_unread, self._clients))) < size:
            if _monotonic() > end:
                sys.exit(f"{arrived} of {size} bytes have arrived in {ARRIVAL_S:.0f} s")
            _sleep(_PAUSE_S)

    def _wait_for_threads(self) -> None:
        """Wait until other threads wait for work: until they execute nothing any more."""
        if threading.active_count() == 1:
            return
        before = -1
        while (executed := self._tracer.executed_by_others()) != before or not _are_idle():
            before = executed
            _sleep(10 * _PAUSE_S)


def _duplicate(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 0)


def _unread(fd: int) -> int:
    """How many bytes have arrived in a socket and were not received."""
    try:
        return int(struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0"))[0])
    except OSError:
        return 0


def _are_idle() -> bool:
    """Whether all threads of trio wait for work, in the function that takes it."""
    main = threading.main_thread().ident
    return all(frame.f_code.co_name == "_work" for ident, frame in sys._current_frames().items() if ident != main)
