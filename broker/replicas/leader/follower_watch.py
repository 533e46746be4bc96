"""Which partitions of a follower's fetch session are not idle, so that a fetch handles only these.

A follower names only the partitions that have changed for it, and has every partition of its leader in one session.
Most are idle: there is nothing to send, and the fetch only shows that the follower is still at the end. A watch stays
with its session, and the partitions notify it when they are not idle any more: after an append, a new high watermark,
another leader, ISR or log start. When a partition was idle, the session's last fetch was the follower's last fetch of
it (R9).

Invariant: partition and watch refer to each other or neither does. When a session is closed or forgets a partition, or
a partition is closed, both references are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.broker.replicas.leader.leading import Leading

PartitionKey = tuple[bytes | str, int]


class WatchedPartition(Protocol):
    """The part of a partition that a watch uses."""

    is_closed: bool
    leading: Leading | None
    watches: dict[FollowerWatch, PartitionKey]


class WatchedSession(Protocol):
    """The part of a fetch session that a watch uses."""

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
        """Register for changes of a partition, as long as the session is open."""
        if not self._session.is_closed:
            self._watched[key] = partition
            partition.watches[self] = key

    def forget(self, key: PartitionKey) -> None:
        """The partition was removed from the session."""
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
        """A partition is not idle any more; a fetch that waits is not woken."""
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
        """The follower knows the partition's state: the partition is idle until its next change."""
        self.changed.pop(key, None)
