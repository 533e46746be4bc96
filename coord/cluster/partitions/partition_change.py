"""The record of one change of a partition: a new ISR, new replicas, and the election that follows from them.

A `PartitionChange` begins as the partition is; the caller sets its targets, and `build` completes a reassignment whose
replicas are in sync, elects a leader, and keeps the eligible leader replicas. Invariants:

- A leader comes from the ISR; from the ELR when the ISR is empty; from elsewhere only in an unclean election, which
  leaves an ISR of that one replica and a leader that is RECOVERING.
- ISR and ELR are disjoint. Without ELR the ISR never becomes empty: it keeps its last members.
- The ELR holds the members that left the ISR while it was smaller than min.insync.replicas, and that stopped cleanly.

Source: Kafka 4.4 `PartitionChangeBuilder`, `PartitionReassignmentReplicas`. KIP-455, KIP-704, KIP-966. Rules R17, R19.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import Enum
from typing import Final

from barnabas.coord.cluster.topic_image import NO_LEADER, NO_LEADER_CHANGE, PartitionImage
from barnabas.wire.messages.records.metadata_records import PartitionChangeRecord
from barnabas.wire.types import Uuid

RECOVERED: Final = 0
RECOVERING: Final = 1
"""The leader was elected uncleanly and has not yet reported that it recovered (KIP-704)."""

DIRECTORIES_SINCE: Final = 17
"""The metadata.version from which on partitions have directories (3.7-IV2)."""
NO_BUMP_SINCE: Final = 12
"""The metadata.version from which on a smaller ISR needs no new leader epoch (3.6-IV0)."""


class Election(Enum):
    """Which leader is wanted."""

    ONLINE = "any valid leader; the present one, if it is valid"
    PREFERRED = "the first replica, if it is valid"
    UNCLEAN = "as ONLINE, and any live replica if none is valid"


class PartitionChange:
    """The targets of one change; `build` makes its record."""

    __slots__ = (
        "_default_directory",
        "_directories",
        "_elr",
        "_elr_enabled",
        "_is_acceptable",
        "_metadata_version",
        "_min_isr",
        "_old",
        "_record",
        "adding",
        "election",
        "isr",
        "recovery_state",
        "removing",
        "replicas",
        "unclean_shutdown",
    )

    def __init__(
        self,
        topic_id: Uuid,
        index: int,
        partition: PartitionImage,
        *,
        is_acceptable: Callable[[int], bool],
        default_directory: Callable[[int], Uuid],
        min_isr: int,
        elr_enabled: bool,
        metadata_version: int,
    ) -> None:
        """`is_acceptable`: whether a replica may lead now; `default_directory`: the directory of a new replica."""
        self._old = partition
        self._is_acceptable = is_acceptable
        self._default_directory = default_directory
        self._min_isr = min_isr
        self._elr_enabled = elr_enabled
        self._metadata_version = metadata_version
        self._elr: Sequence[int] = partition.elr
        self._directories = dict(zip(partition.replicas, partition.directories, strict=True))
        self._record = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
        self.election = Election.ONLINE
        self.isr: Sequence[int] = partition.isr
        self.replicas: Sequence[int] = partition.replicas
        self.removing: Sequence[int] = partition.removing_replicas
        self.adding: Sequence[int] = partition.adding_replicas
        self.recovery_state = partition.leader_recovery_state
        self.unclean_shutdown: Collection[int] = ()
        """Replicas that lost the end of their log, so that they leave the ELR."""

    def set_directory(self, broker: int, directory: Uuid) -> None:
        """Name the log directory of a replica."""
        self._directories[broker] = directory

    def build(self) -> PartitionChangeRecord | None:
        """The record, or None if nothing changes. To be called once."""
        self._complete_reassignment()
        self._populate_elr()
        self._elect()
        self._bump_for_removed_replicas()
        self._record_elr()
        self._record_isr()
        self._bump_for_smaller_isr()
        self._record_last_known_leader()
        self._record_assignment()
        if self.recovery_state != self._old.leader_recovery_state:
            self._record.leader_recovery_state = self.recovery_state
        return None if _is_no_change(self._record) else self._record

    def _complete_reassignment(self) -> None:
        """End a reassignment when every added replica is in sync, and a replica that stays is.

        Where there will be fewer replicas than before, all that stay have to be in sync: the removed ones may be the
        only others that have the records.
        """
        if not self.removing and not self.adding:
            return
        isr = [replica for replica in self.isr if replica not in self.removing]
        replicas = [replica for replica in self.replicas if replica not in self.removing]
        needed = replicas if len(self.adding) < len(self.removing) else self.adding
        if isr and replicas and set(needed) <= set(isr):
            self.isr, self.replicas, self.removing, self.adding = isr, replicas, (), ()

    def _populate_elr(self) -> None:
        if not self._elr_enabled:
            return
        if len(self.isr) >= self._min_isr:
            self._elr = ()
            return
        candidates = {replica for replica in (*self._elr, *self._old.isr) if replica in self.replicas}
        self._elr = sorted(candidates - set(self.isr) - set(self.unclean_shutdown))

    # Election

    def _elect(self) -> None:
        leader, unclean = self._elected()
        record = self._record
        if leader == self._old.leader:
            return
        if leader in self._elr and leader not in self.isr:
            self.isr = [leader]
            is_enough = self._min_isr <= 1
            self._elr = [] if is_enough else [replica for replica in self._elr if replica != leader]
        record.leader = leader
        if unclean:
            record.isr = [leader]
            self.recovery_state = RECOVERING

    def _elected(self) -> tuple[int, bool]:
        """(leader, whether the election was unclean)."""
        first = (self.replicas[0],) if self.election is Election.PREFERRED else ()
        for replica in (*first, self._old.leader, *self.replicas):
            if self._is_valid_leader(replica):
                return replica, False
        known = self._old.last_known_elr
        if self._elr_enabled and not self._elr and not self.isr and len(known) == 1 and self._is_acceptable(known[0]):
            return known[0], True
        if self.election is Election.UNCLEAN:
            for replica in self.replicas:
                if self._is_acceptable(replica):
                    return replica, True
        return NO_LEADER, False

    def _is_valid_leader(self, replica: int) -> bool:
        eligible = self.isr or self._elr
        return replica in eligible and replica in self.replicas and self._is_acceptable(replica)

    def _bump_for_removed_replicas(self) -> None:
        if self._record.leader == NO_LEADER_CHANGE and not set(self._old.replicas) <= set(self.replicas):
            self._record.leader = self._old.leader

    def _bump_for_smaller_isr(self) -> None:
        record = self._record
        if (
            self._metadata_version < NO_BUMP_SINCE
            and record.leader == NO_LEADER_CHANGE
            and record.isr is not None
            and not set(self._old.isr) <= set(record.isr)
        ):
            record.leader = self._old.leader

    # Fields of the record

    def _record_elr(self) -> None:
        if self._record.isr is not None or not self._elr_enabled:  # an unclean election has set the ISR
            self._elr = ()
        if list(self._elr) != list(self._old.elr):
            self._record.eligible_leader_replicas = list(self._elr)
        if not self._elr_enabled and self._old.last_known_elr:
            self._record.last_known_elr = []

    def _record_isr(self) -> None:
        if self._record.isr is None and (self.isr or self._elr_enabled) and list(self.isr) != list(self._old.isr):
            self._record.isr = list(self.isr)

    def _record_last_known_leader(self) -> None:
        """With ELR `last_known_elr` holds the leader of a partition that lost it, until there is one again."""
        if not self._elr_enabled:
            return
        record, old = self._record, self._old
        if record.leader == NO_LEADER and not old.last_known_elr:
            record.last_known_elr = [old.leader]
        elif record.leader >= 0 and old.last_known_elr:
            record.last_known_elr = []

    def _record_assignment(self) -> None:
        record, old = self._record, self._old
        if self._metadata_version >= DIRECTORIES_SINCE:
            directories = [
                self._directories[replica] if replica in self._directories else self._default_directory(replica)
                for replica in self.replicas
            ]
            if directories != list(old.directories):
                record.directories = directories
        if list(self.replicas) != list(old.replicas):
            record.replicas = list(self.replicas)
        if list(self.removing) != list(old.removing_replicas):
            record.removing_replicas = list(self.removing)
        if list(self.adding) != list(old.adding_replicas):
            record.adding_replicas = list(self.adding)


def _is_no_change(record: PartitionChangeRecord) -> bool:
    return record == PartitionChangeRecord(partition_id=record.partition_id, topic_id=record.topic_id)
