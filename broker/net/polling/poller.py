"""The interface of pollers of sockets, and its constants.

A poller returns (target, ready) pairs, where the target is the object registered with the descriptor. With kqueue there
may be two pairs of one target, and serving the first may have closed its connection.
"""

from __future__ import annotations

from typing import Protocol

READ = 1
WRITE = 2
CLOSED = 4
"""The connection is reset or closed in both directions: all bytes sent are lost. Reported with any interest."""


class Poller(Protocol):
    """Watches file descriptors for readiness."""

    def fileno(self) -> int:
        """A descriptor that is readable when something is ready."""

    def register(self, fd: int, interest: int, target: object) -> None:
        """Watch a descriptor."""

    def modify(self, fd: int, interest: int, target: object) -> None:
        """Change the events that a descriptor is watched for; with the interest 0, only CLOSED."""

    def unregister(self, fd: int) -> None:
        """Stop watching a descriptor."""

    def poll(self, timeout_s: float) -> list[tuple[object, int]]:
        """The ready pairs, after waiting up to `timeout_s` seconds; READ includes errors and hang-ups."""

    def close(self) -> None:
        """Release all resources."""
