"""What happened to the replicas of this broker since it started: appended as leader, ISRs, elections.

Appends cost nothing: a partition counts its bytes anyway, and its offsets count its records. So a tally has what was
appended in earlier times as leader, and where the log ended when the current one began. A partition has a tally only
while there is a listener of metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from barnabas.broker.replicas.flush.policy import FlushPolicy
    from barnabas.broker.replicas.leader.committed_bytes import CommittedBytes
    from barnabas.coord.cluster.topic_image import PartitionImage
    from barnabas.storage.log import Log

RECOVERING: Final = 1
"""The state of a partition's leader after an unclean election, as long as it is in the metadata."""


class Replica(Protocol):
    """The part of a `Partition` that is counted."""

    topic: str
    topic_id: bytes
    index: int
    log: Log
    is_leader: bool
    isr: Sequence[int]
    appends: int
    fetches: int
    bytes_appended: int
    committed_bytes: CommittedBytes | None
    flush_policy: FlushPolicy | None
    tally: Tally | None


class Replicas(Protocol):
    """The part of `Partitions` that is followed."""

    on_role_change: list[Callable[[Any], None]]
    on_removed: list[Callable[[Any], None]]

    def of_topic(self, name: str, /) -> Sequence[Replica]:
        """The replicas of a topic."""


class Counts:
    """Counts of one or more replicas."""

    __slots__ = (
        "appends",
        "bytes",
        "bytes_out",
        "elections",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "follower_bytes",
        "isr_expands",
        "isr_shrinks",
        "messages",
        "replication_bytes_out",
        "unclean_elections",
    )

    def __init__(self) -> None:
        self.messages = 0
        """Records, also control records, appended while this broker was the leader."""
        self.bytes = 0
        self.follower_bytes = 0
        """Bytes appended while another broker was the leader."""
        self.appends = 0
        self.failed_produces = 0
        """Batches that were refused, or not acknowledged."""
        self.failed_fetches = 0
        self.fetches = 0
        """How often the replica was read for a fetch."""
        self.bytes_out = 0
        """Records sent to consumers."""
        self.replication_bytes_out = 0
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.elections = 0
        """How often this broker became the leader."""
        self.unclean_elections = 0

    def add(self, other: Counts) -> None:
        """Add the counts of another replica."""
        for name in Counts.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Tally:
    """The counts of one replica."""

    __slots__ = ("_bytes_from", "_offset_from", "counts")

    def __init__(self, partition: Replica) -> None:
        self.counts = Counts()
        self._offset_from = partition.log.log_end_offset
        self._bytes_from = bytes_written(partition)

    def before_change(self, partition: Replica) -> None:
        """The partition's state in the metadata will be replaced."""
        self._add_appends(partition, self.counts)

    def _add_appends(self, partition: Replica, counts: Counts) -> None:
        """Add what was appended since the last change."""
        written = max(0, bytes_written(partition) - self._bytes_from)
        if partition.is_leader:
            counts.messages += partition.log.log_end_offset - self._offset_from
            counts.bytes += written
        else:
            counts.follower_bytes += written

    def after_change(
        self, partition: Replica, *, was_leader: bool, isr: int, epoch: int, assigned: PartitionImage
    ) -> None:
        """It was replaced: this broker `was_leader` in leader epoch `epoch`, with `isr` replicas in sync."""
        self._offset_from = partition.log.log_end_offset
        self._bytes_from = bytes_written(partition)
        if not partition.is_leader:
            return
        if was_leader:
            self.isr_changed(isr, len(partition.isr))
        if epoch >= 0 and assigned.leader_epoch != epoch:  # -1: it was just opened
            self.counts.elections += 1
            self.counts.unclean_elections += assigned.leader_recovery_state == RECOVERING

    def isr_changed(self, before: int, after: int) -> None:
        """The leader's ISR had `before` members, and has `after`."""
        self.counts.isr_shrinks += after < before
        self.counts.isr_expands += after > before

    def add_to(self, counts: Counts, partition: Replica) -> None:
        """Add the counts up to now."""
        counts.add(self.counts)
        counts.appends += partition.appends
        counts.fetches += partition.fetches
        self._add_appends(partition, counts)


def bytes_written(partition: Replica) -> int:
    """The bytes that were written to the replica since the broker started, committed or not."""
    if partition.committed_bytes is not None:
        return partition.committed_bytes.total
    if partition.flush_policy is not None:
        return partition.flush_policy.bytes_written
    return partition.bytes_appended


class Tallies:
    """The tallies of all replicas, and the counts of those that this broker has no longer."""

    def __init__(
        self,
        partitions: Replicas,
        sent_bytes: Sequence[dict[tuple[bytes | str, int], int]],
        forget_topic: Callable[[str, Counts], None],
    ) -> None:
        """`sent_bytes` are the records that were sent to consumers and to followers, by partition as a Fetch names it.

        `forget_topic` is called with name and counts of a topic of which this broker has no replica any more.
        """
        self._partitions = partitions
        self._sent_bytes = sent_bytes
        self._forget_topic = forget_topic
        partitions.on_role_change.append(self._changed)
        partitions.on_removed.append(self._partition_removed)
        self.removed: dict[bytes, Counts] = {}
        """By topic id: of its replicas that this broker has no longer, while it has others."""
        self.gone = Counts()
        """Of topics of which it has none."""

    @staticmethod
    def _changed(partition: Replica) -> None:
        if partition.tally is None:  # it was just opened
            partition.tally = Tally(partition)

    def _partition_removed(self, partition: Replica) -> None:
        """This broker has a replica no longer."""
        if partition.tally is None:
            return
        counts = self.removed.setdefault(partition.topic_id, Counts())
        self.add_counts(partition, counts)
        for sent in self._sent_bytes:
            for name in (partition.topic, partition.topic_id):
                sent.pop((name, partition.index), None)
        if not any(other.topic_id == partition.topic_id for other in self._partitions.of_topic(partition.topic)):
            counts = self.removed.pop(partition.topic_id)
            self.gone.add(counts)
            self._forget_topic(partition.topic, counts)

    def add_counts(self, partition: Replica, counts: Counts) -> None:
        """Add the counts of one replica up to now."""
        if partition.tally is not None:
            partition.tally.add_to(counts, partition)
        to_consumers, to_followers = self._sent_bytes
        for name in (partition.topic, partition.topic_id):
            counts.bytes_out += to_consumers.get((name, partition.index), 0)
            counts.replication_bytes_out += to_followers.get((name, partition.index), 0)
