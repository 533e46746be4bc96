"""Polls sockets with epoll, on Linux. It is used directly since `selectors` costs more than the system call itself."""

from __future__ import annotations

import select
import sys

from barnabas.broker.net.polling.poller import CLOSED, READ, WRITE

assert sys.platform == "linux"

_EPOLL_OF = {0: 0, READ: select.EPOLLIN, WRITE: select.EPOLLOUT, READ | WRITE: select.EPOLLIN | select.EPOLLOUT}
_READY_OF = {select.EPOLLIN: READ, select.EPOLLOUT: WRITE, select.EPOLLIN | select.EPOLLOUT: READ | WRITE}


class EpollPoller:
    """Watches file descriptors with epoll."""

    __slots__ = ("_epoll", "_targets")

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._targets: dict[int, object] = {}

    def fileno(self) -> int:
        """The epoll descriptor."""
        return self._epoll.fileno()

    def register(self, fd: int, interest: int, target: object) -> None:
        """Watch a descriptor."""
        self._epoll.register(fd, _EPOLL_OF[interest])
        self._targets[fd] = target

    def modify(self, fd: int, interest: int, target: object) -> None:
        """Change the events that a descriptor is watched for."""
        self._epoll.modify(fd, _EPOLL_OF[interest])
        self._targets[fd] = target

    def unregister(self, fd: int) -> None:
        """Stop watching a descriptor; nothing is watched after `close`."""
        if self._epoll.closed:
            return
        del self._targets[fd]
        self._epoll.unregister(fd)

    def poll(self, timeout_s: float) -> list[tuple[object, int]]:
        """The ready (target, events) pairs."""
        targets = self._targets
        return [(targets[fd], _READY_OF.get(mask) or _ready_of(mask)) for fd, mask in self._epoll.poll(timeout_s)]

    def close(self) -> None:
        """Close the descriptor."""
        self._targets.clear()
        self._epoll.close()


def _ready_of(mask: int) -> int:
    ready = (READ if mask & ~select.EPOLLOUT else 0) | (WRITE if mask & select.EPOLLOUT else 0)
    return ready | (CLOSED if mask & (select.EPOLLERR | select.EPOLLHUP) else 0)
