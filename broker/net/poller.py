"""Polls sockets: epoll on Linux, elsewhere the best selector of `selectors`.

Both return (target, ready) pairs, where the target is the object registered with the descriptor. epoll is used directly
since `selectors` costs more than the system call itself.
"""

from __future__ import annotations

import select
import selectors
from typing import Protocol

READ = 1
WRITE = 2
CLOSED = 4
"""The connection is reset or closed in both directions: whatever is sent is lost. Reported whatever the interest."""


class Poller(Protocol):
    """Watches file descriptors for readiness."""

    def fileno(self) -> int:
        """A descriptor that is readable when something is ready."""

    def register(self, fd: int, interest: int, target: object) -> None:
        """Watch a descriptor."""

    def modify(self, fd: int, interest: int, target: object) -> None:
        """Change what a descriptor is watched for; with the interest 0, only for CLOSED."""

    def unregister(self, fd: int) -> None:
        """Stop watching a descriptor."""

    def poll(self, timeout_s: float) -> list[tuple[object, int]]:
        """What is ready, after waiting up to `timeout_s` seconds; READ includes errors and hang-ups."""

    def close(self) -> None:
        """Release all resources."""


class EpollPoller:
    """epoll, on Linux."""

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
        """Change what a descriptor is watched for."""
        self._epoll.modify(fd, _EPOLL_OF[interest])
        self._targets[fd] = target

    def unregister(self, fd: int) -> None:
        """Stop watching a descriptor."""
        del self._targets[fd]
        self._epoll.unregister(fd)

    def poll(self, timeout_s: float) -> list[tuple[object, int]]:
        """What is ready."""
        targets = self._targets
        return [(targets[fd], _READY_OF.get(mask) or _ready_of(mask)) for fd, mask in self._epoll.poll(timeout_s)]

    def close(self) -> None:
        """Close the descriptor."""
        self._targets.clear()
        self._epoll.close()


def _ready_of(mask: int) -> int:
    ready = (READ if mask & ~select.EPOLLOUT else 0) | (WRITE if mask & select.EPOLLOUT else 0)
    return ready | (CLOSED if mask & (select.EPOLLERR | select.EPOLLHUP) else 0)


class SelectorPoller:
    """`selectors`, on other systems: kqueue where available. It reports no CLOSED: a send or a read fails instead."""

    __slots__ = ("_selector", "_silent")

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._silent: set[int] = set()  # descriptors with the interest 0, which a selector does not know

    def fileno(self) -> int:
        """The selector's descriptor; OSError if it has none."""
        fileno = getattr(self._selector, "fileno", None)
        if fileno is None:
            raise OSError("this system's selector has no file descriptor")
        return int(fileno())

    def register(self, fd: int, interest: int, target: object) -> None:
        """Watch a descriptor."""
        self._selector.register(fd, _SELECT_OF[interest], target)

    def modify(self, fd: int, interest: int, target: object) -> None:
        """Change what a descriptor is watched for."""
        if not interest:
            self.unregister(fd)
            self._silent.add(fd)
        elif fd in self._silent:
            self._silent.remove(fd)
            self.register(fd, interest, target)
        else:
            self._selector.modify(fd, _SELECT_OF[interest], target)

    def unregister(self, fd: int) -> None:
        """Stop watching a descriptor."""
        if fd in self._silent:
            self._silent.remove(fd)
        else:
            self._selector.unregister(fd)

    def poll(self, timeout_s: float) -> list[tuple[object, int]]:
        """What is ready."""
        return [
            (
                key.data,
                (READ if ready & selectors.EVENT_READ else 0) | (WRITE if ready & selectors.EVENT_WRITE else 0),
            )
            for key, ready in self._selector.select(timeout_s)
        ]

    def close(self) -> None:
        """Close the selector."""
        self._selector.close()


_EPOLL = hasattr(select, "epoll")
_EPOLL_OF = (
    {0: 0, READ: select.EPOLLIN, WRITE: select.EPOLLOUT, READ | WRITE: select.EPOLLIN | select.EPOLLOUT}
    if _EPOLL
    else {}
)
_READY_OF = (
    {select.EPOLLIN: READ, select.EPOLLOUT: WRITE, select.EPOLLIN | select.EPOLLOUT: READ | WRITE} if _EPOLL else {}
)
_SELECT_OF = {
    READ: selectors.EVENT_READ,
    WRITE: selectors.EVENT_WRITE,
    READ | WRITE: selectors.EVENT_READ | selectors.EVENT_WRITE,
}


def make_poller() -> Poller:
    """The fastest poller of this system."""
    return EpollPoller() if _EPOLL else SelectorPoller()
