"""Replicas of this broker that cannot serve because of its own disk, and what happens to each (R28).

    SERVES --a batch is damaged, or cannot be read--> DAMAGED --another leads, without it in the ISR--> filled again
    SERVES --no space, no descriptors--> EXHAUSTED --there is some again--> SERVES
    OFFLINE: its log is not open; it is opened again, filled again, or waits for an operator.

A replica that does not serve is reported as being in no online directory (`DirectoryAssignments`), if another can lead;
the controller then elects that one. Else it goes on as far as it can: a damaged log fails the reads that cross the
damage.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final

from barnabas.broker.event_loop.guarded import call_guarded
from barnabas.coord.cluster.topic_image import LOST_DIRECTORY, NO_LEADER

if TYPE_CHECKING:
    from barnabas.broker.exhausted_dirs import ExhaustedDirs
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.cluster.topic_image import PartitionImage, TopicImage
    from barnabas.storage.directories.log_dir import LogDir
    from barnabas.storage.directories.log_dirs import LogDirs

logger = logging.getLogger("kafka.server.ReplicaManager")

ReplicaKey = tuple[bytes, int]
"""Topic id and index."""

FILLED_AGAIN: Final = (
    "The replica %s-%d of this broker is damaged: %s. As soon as another one in sync leads the partition, this one is "
    "filled from it again; until then reads that cross this place fail. Look at the disk"
)
READS_FAIL: Final = (
    "Partition %s-%d is damaged: %s. Reads that cross this place fail, all others and writes go on. Stop the broker "
    "and look at it with 'barnabas storage check'; 'barnabas storage recover' repairs what can be repaired"
)

NO_RECORDS: Final = (
    "%d replicas in %s take no records: where another one in sync can lead, it does until there is space, or a file "
    "descriptor, again"
)
RECORDS_AGAIN: Final = "%d replicas in %s take records again, and join the others"


class ReplicaState(Enum):
    """Whether a replica can serve."""

    SERVES = "serves"
    DAMAGED = "damaged"
    EXHAUSTED = "exhausted"
    OFFLINE = "offline"


class LocalFailures:
    """The local failures of the replicas of this broker."""

    def __init__(
        self, node_id: int, log_dirs: LogDirs, exhausted: ExhaustedDirs, offline: Mapping[tuple[str, int], str]
    ) -> None:
        """`offline` are the partitions that are not open, by name."""
        self._node_id = node_id
        self._log_dirs = log_dirs
        self._exhausted = exhausted
        self._offline = offline
        self.damaged: dict[ReplicaKey, str] = {}
        """Replicas whose logs have to be replaced by another replica's -> why."""
        self._new: set[ReplicaKey] = set()  # they have not been in the ISR since they were set aside
        self.on_change: list[Callable[[Sequence[ReplicaKey]], None]] = []
        """Called with replicas whose state has changed."""

    def state(self, topic: TopicImage, index: int) -> ReplicaState:
        """Whether the replica of a partition can serve."""
        if (topic.topic_id, index) in self.damaged:
            return ReplicaState.DAMAGED
        if (topic.name, index) in self._offline:
            return ReplicaState.OFFLINE
        if self._log_dirs.dir_of(topic.name, index) in self._exhausted:
            return ReplicaState.EXHAUSTED
        return ReplicaState.SERVES

    def can_serve(self, topic: TopicImage, index: int) -> bool:
        """Whether the replica of a partition can serve, in every respect."""
        return self.state(topic, index) is ReplicaState.SERVES

    def is_exhausted(self, partition: Partition) -> bool:
        """Whether nothing can be appended to a partition's log for now."""
        return self._log_dirs.dir_of(partition.topic, partition.index) in self._exhausted

    def add_damaged(self, partition: Partition, reason: str) -> None:
        """Remember and report that a log is damaged, or cannot be read, at some place; it is served nevertheless."""
        key = (partition.topic_id, partition.index)
        if key in self.damaged or partition.is_closed:
            return
        self.damaged[key] = reason
        text = FILLED_AGAIN if partition.has_peers else READS_FAIL
        logger.error(text, partition.topic, partition.index, reason.rstrip("."))
        self.changed([key])

    def exhaustion_changed(self, log_dir: LogDir, partitions: Iterable[Partition]) -> list[Partition]:
        """Report that a log directory takes no records for now, or does again; returns its replicated partitions."""
        dir_of = self._log_dirs.dir_of
        replicas = [
            partition
            for partition in partitions
            if partition.has_peers and dir_of(partition.topic, partition.index) is log_dir
        ]
        if replicas:
            text = NO_RECORDS if log_dir in self._exhausted else RECORDS_AGAIN
            logger.warning(text, len(replicas), log_dir.path)
            self.changed([(partition.topic_id, partition.index) for partition in replicas])
        return replicas

    def changed(self, replicas: Sequence[ReplicaKey]) -> None:
        """Report to the controller that the states of these replicas have changed."""
        for follower in self.on_change:
            call_guarded("Reporting replicas that cannot serve", follower, replicas)

    def updated(self, partition: Partition, assigned: PartitionImage) -> str | None:
        """Take a change of a served partition's metadata; the reason why its log may be set aside now, or None.

        A replica in the ISR has all records.
        """
        key = (partition.topic_id, partition.index)
        if self._node_id in assigned.isr:
            self._new.discard(key)
        reason = self.damaged.get(key)
        return reason if reason is not None and self.may_refill(assigned) else None

    def given_up(self, topic_id: bytes, index: int) -> None:
        """Note that a damaged log was set aside: the replica is created again, empty."""
        self.damaged.pop((topic_id, index), None)
        self._new.add((topic_id, index))

    def forget(self, topic_id: bytes, index: int) -> None:
        """This broker has no replica of the partition any longer; a later one is a different replica (R29)."""
        self.damaged.pop((topic_id, index), None)
        self._new.discard((topic_id, index))

    def is_new(self, topic_id: bytes, index: int) -> bool:
        """Whether the replica was created again by this process, and may lack records that others expect it to have."""
        return (topic_id, index) in self._new

    def may_refill(self, assigned: PartitionImage) -> bool:
        """Whether a damaged log may be set aside: another broker leads, and no election needs this replica (L2).

        A replica in the ELR could be elected with the records it has then, unless the controller knows it as lost.
        """
        node_id = self._node_id
        if not self._log_dirs.are_replicas or assigned.leader in {NO_LEADER, node_id} or node_id in assigned.isr:
            return False
        return node_id not in assigned.elr or assigned.directories[assigned.replicas.index(node_id)] == LOST_DIRECTORY
