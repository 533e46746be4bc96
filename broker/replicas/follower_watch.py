"""Which partitions of a follower's fetch session have something to tell, so that a fetch costs only these.

A follower names only what has changed for it, and has every partition of its leader in one session: most are idle, with
nothing to send and nothing to learn from its fetch but that the follower is still at the end. A watch stays with its
session and is told by the partitions when that ends: an append, a new high watermark, another leader, ISR or log start.
When a partition was idle, the session's last fetch was the follower's last fetch of it (R9).

Invariant: partition and watch know each other or neither does. A session that is closed or forgets a partition, and a
partition that is closed, leave nothing of themselves at the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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


class FollowerWatch:
    """The partitions of one session that are not idle."""

    __slots__ = ("_replica_id", "_session", "_watched", "changed", "fetched_at", "on_woken")

    def __init__(self, session: WatchedSession, keys: Iterable[PartitionKey], replica_id: int, now: float) -> None:
        self._session = session
        self._replica_id = replica_id
        self._watched: dict[PartitionKey, WatchedPartition] = {}
        self.changed: dict[PartitionKey, None] = dict.fromkeys(keys)
        """Partitions that the next fetch has to read."""
        self.fetched_at = now
        """When the follower has fetched for the last time."""
        self.on_woken: Callable[[], None] | None = None
        """Called when a partition has records or a new leader, while a fetch waits."""

    def watch(self, partition: WatchedPartition, key: PartitionKey) -> None:
        """Be told when a partition changes, as long as the session is open."""
        if not self._session.is_closed:
            self._watched[key] = partition
            partition.watches[self] = key

    def forget(self, key: PartitionKey) -> None:
        """The session has a partition no longer."""
        self.changed.pop(key, None)
        partition = self._watched.pop(key, None)
        if partition is not None:
            partition.watches.pop(self, None)

    def close(self) -> None:
        """The session is closed."""
        for partition in self._watched.values():
            partition.watches.pop(self, None)
        self._watched.clear()

    def mark(self, partition: WatchedPartition, key: PartitionKey) -> None:
        """A partition is not idle any more; what waits goes on waiting."""
        if partition.is_closed and self._watched.get(key) is partition:
            self.forget(key)
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
