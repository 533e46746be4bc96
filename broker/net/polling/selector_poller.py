"""Polls sockets where there is no epoll, with the best selector of `selectors`: kqueue on macOS."""

from __future__ import annotations

import selectors

from barnabas.broker.net.polling.poller import READ, WRITE

_SELECT_OF = {
    READ: selectors.EVENT_READ,
    WRITE: selectors.EVENT_WRITE,
    READ | WRITE: selectors.EVENT_READ | selectors.EVENT_WRITE,
}


class SelectorPoller:
    """Watches file descriptors with a selector. It reports no CLOSED: a send or a read fails instead."""

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
        """Change the events that a descriptor is watched for."""
        if not interest:
            self.unregister(fd)
            self._silent.add(fd)
        elif fd in self._silent:
            self._silent.remove(fd)
            self.register(fd, interest, target)
        else:
            self._selector.modify(fd, _SELECT_OF[interest], target)

    def unregister(self, fd: int) -> None:
        """Stop watching a descriptor; nothing is watched after `close`."""
        if self._selector.get_map() is None:
            return
        if fd in self._silent:
            self._silent.remove(fd)
        else:
            self._selector.unregister(fd)

    def poll(self, timeout_s: float) -> list[tuple[object, int]]:
        """The ready (target, events) pairs."""
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
