"""The control of a counted broker: commands arrive while the loop waits, so they find it between two turns.

A command is a line of JSON. `hold` stops the clocks. From then on the loop is held where it waits whenever nothing is
left to do: nothing is ready, no task can run, other threads are idle. That is reported, and commands are executed,
until `go` has the loop go on, once so many bytes have arrived in all its sockets: a turn begins with whole requests,
however slow the machine is. `free` ends that. Bytes sent meanwhile have to fit into the buffers of the sockets.

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
import time
from typing import TYPE_CHECKING, Any

from .scheduling import has_other_tasks, seconds_to_next_deadline, wait_for_threads

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

    # -- notes of the epolls

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
        """Return the ready descriptors of an epoll; execute the commands that arrive meanwhile."""
        clock = self._clock
        limit = None if timeout is None or timeout < 0 else timeout
        end = None if limit is None else clock.read("monotonic") + limit
        while True:
            events = epoll.poll(0, maxevents)
            if events or limit == 0:
                return events
            if end is not None and clock.read("monotonic") >= end:
                return []
            if not clock.is_stopped:
                self._wait_freely(epoll, None if end is None else max(0.0, end - clock.read("monotonic")))
                continue
            if has_other_tasks():
                return []
            wait_for_threads()
            if not _is_ready(epoll):
                self._rest()

    def _wait_freely(self, epoll: select.epoll, seconds: float | None) -> None:
        """Wait until the epoll has events or the time is over; execute a command that arrives."""
        poll = _poll()
        poll.register(epoll.fileno(), select.POLLIN)
        poll.register(self._socket.fileno(), select.POLLIN)
        has_come = b"\n" in self._received  # with the command before
        ready = {fd for fd, _ in poll.poll(0 if has_come else None if seconds is None else seconds * 1000)}
        if has_come or ready == {self._socket.fileno()}:
            self._obey()

    # -- commands

    def _rest(self) -> None:
        """Nothing is left to do: report that, and execute commands until the loop is to go on."""
        self._tracer.stop()
        self._answer({})
        self._obey()

    def _obey(self) -> None:
        while True:
            command: dict[str, Any] = json.loads(self._line())
            response = getattr(self, f"_do_{command.pop('do')}")(**command)
            if response is None:
                return
            self._answer(response)

    def _answer(self, response: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(response).encode() + b"\n")

    def _line(self) -> bytes:
        while b"\n" not in self._received:
            received = self._socket.recv(4096)
            if not received:
                sys.exit("whoever counts is gone")
            self._received += received
        line, _, self._received = self._received.partition(b"\n")
        return line

    def _do_hold(self) -> None:
        self._clock.stop()
        gc.disable()

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
            if name.split(".")[0] in roots and getattr(module, "__file__", None)
        }

    # -- waiting for bytes in flight

    def _wait_for_bytes(self, size: int) -> None:
        end = _monotonic() + ARRIVAL_S
        while (arrived := sum(map(_unread, self._clients))) < size:
            if _monotonic() > end:
                sys.exit(f"{arrived} of {size} bytes have arrived in {ARRIVAL_S:.0f} s")
            _sleep(_PAUSE_S)


def _duplicate(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 0)


def _is_ready(epoll: select.epoll) -> bool:
    """Whether an epoll has events, without taking them."""
    poll = _poll()
    poll.register(epoll.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _unread(fd: int) -> int:
    """How many bytes have arrived in a socket and were not received."""
    try:
        return int(struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0"))[0])
    except OSError:
        return 0
