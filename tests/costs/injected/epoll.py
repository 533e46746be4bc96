"""An epoll that asks `Control` how long to wait: in place of `select.epoll`, of the broker's and of trio's."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .control import Control
    from .tracer import Tracer

_epoll = select.epoll


def replace_epoll(control: Control, tracer: Tracer) -> None:
    """Have `select.epoll` make epolls that are controlled."""

    class Epoll(ControlledEpoll):
        def __init__(self, *_options: Any) -> None:
            super().__init__(control, tracer)

    select.epoll = Epoll  # type: ignore[assignment, misc]


class ControlledEpoll:
    """The methods of `select.epoll`."""

    def __init__(self, control: Control, tracer: Tracer) -> None:
        self._epoll = _epoll()
        self._control = control
        self._tracer = tracer

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._epoll.closed

    def fileno(self) -> int:
        """Its descriptor."""
        return self._epoll.fileno()

    def close(self) -> None:
        """Close it."""
        self._epoll.close()

    def register(self, fd: Any, eventmask: int = select.EPOLLIN | select.EPOLLPRI | select.EPOLLOUT) -> None:
        """Watch a descriptor."""
        self._epoll.register(fd, eventmask)
        self._tracer.system_call("epoll_ctl")
        self._control.opened(fd if isinstance(fd, int) else fd.fileno())

    def modify(self, fd: Any, eventmask: int) -> None:
        """Watch a descriptor for something else."""
        self._tracer.system_call("epoll_ctl")
        self._epoll.modify(fd, eventmask)

    def unregister(self, fd: Any) -> None:
        """Stop watching a descriptor."""
        self._tracer.system_call("epoll_ctl")
        self._epoll.unregister(fd)
        self._control.closed(fd if isinstance(fd, int) else fd.fileno())

    def poll(self, timeout: float | None = None, maxevents: int = -1) -> list[tuple[int, int]]:
        """Return the ready descriptors, after waiting for them as long as the control says."""
        self._tracer.pause()
        try:
            return self._control.wait(self._epoll, timeout, maxevents)
        finally:
            self._tracer.resume()
            self._tracer.system_call("epoll_wait")
