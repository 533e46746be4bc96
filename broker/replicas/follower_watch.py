"""Which partitions of a follower's fetch session have something to tell, so that a fetch costs only these.

A follower names only what has changed for it, and has every partition of its leader in one session: most are idle, with
nothing to send and nothing to learn from its fetch but that the follower is still at the end. A watch stays with its
session and is told by the partitions when that ends: an append, a new high watermark, another leader, ISR or log start.
When a partition was idle, the session's last fetch was the follower's last fetch of it (R9).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.broker.replicas.leading import Leading

PartitionKey = tuple[bytes | str, int]


class WatchedPartition(Protocol):
    """What is needed of a partition."""

    is_closed: bool
    leading: Leading | None
    watches: dict[FollowerWatch, PartitionKey]


class WatchedSession(Protocol):
    """What is needed of a fetch session."""

    is_closed: bool

    @property
    def partitions(self) -> Container[PartitionKey]:
        """Its partitions."""


class FollowerWatch:
    """The partitions of one session that are not idle."""

    __slots__ = ("_replica_id", "_session", "changed", "fetched_at", "on_woken")

    def __init__(self, session: WatchedSession, keys: Iterable[PartitionKey], replica_id: int, now: float) -> None:
        self._session = session
        self._replica_id = replica_id
        self.changed: dict[PartitionKey, None] = dict.fromkeys(keys)
        """Partitions that the next fetch has to read."""
        self.fetched_at = now
        """When the follower has fetched for the last time."""
        self.on_woken: Callable[[], None] | None = None
        """Called when a partition has records or a new leader, while a fetch waits."""

    def mark(self, partition: WatchedPartition, key: PartitionKey) -> None:
        """A partition is not idle any more; what waits goes on waiting."""
        if self._session.is_closed or key not in self._session.partitions or partition.is_closed:
            partition.watches.pop(self, None)
        if key not in self.changed:
            self.changed[key] = None
            leading = partition.leading
            follower = None if leading is None else leading.state.followers.get(self._replica_id)
            if follower is not None:
                follower.was_at_end(self.fetched_at)

    def woken(self, partition: WatchedPartition, key: PartitionKey) -> None:
        """A partition has records, or another leader."""
        self.mark(partition, key)
        if self.on_woken is not None:
            self.on_woken()

    def settle(self, key: PartitionKey) -> None:
        """The follower knows everything of a partition: it is idle until the partition says otherwise."""
        self.changed.pop(key, None)
