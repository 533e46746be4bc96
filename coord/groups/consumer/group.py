"""A consumer group: its members, its epochs, and what each member shall have (rule G3; KIP-848).

It is exactly what its records say: only `replay` methods change it, one for each kind of record. Invariants:
`epoch >= assignment_epoch`; a partition in `owners` belongs to the one member that has it assigned or still gives it
up; `static_members` maps each instance id to the one member id that owns it; the counters count members.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from coord.groups.consumer import records
from coord.groups.consumer.member import ConsumerMember, OwnedPartitions
from coord.groups.consumer.states import ConsumerGroupState
from coord.groups.group import CONSUMER
from wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from coord.groups.consumer.records import ResolvedRegex
    from coord.groups.modern.partitions import Partitions
    from coord.machine import CoordinatorRecord
    from wire.messages.offsets import OffsetCommitRequest
    from wire.types import Uuid

MEMBER_EPOCH_SINCE = 9
"""OffsetCommit versions from here on carry a member epoch."""
STALE_EPOCH_IN_TRANSACTION_SINCE = 6
"""TxnOffsetCommit versions from here on know STALE_MEMBER_EPOCH."""
NO_EPOCH = -1
FIRST_EPOCH = 1
"""Of a group that nobody has joined yet: the first member makes it 2, as in Kafka 4.4."""


class ConsumerGroup:
    """One group whose members are assigned by the coordinator."""

    group_type: ClassVar[str] = CONSUMER
    protocol_type: ClassVar[str] = CONSUMER

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        """Of the topics subscribed to, as of `epoch`."""
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        """When the target assignment was computed; 0: the next one need not wait."""
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        self.target: dict[str, Partitions] = {}
        """What each member shall have, as of `assignment_epoch`."""
        self.owners: dict[Uuid, dict[int, str]] = {}
        """Who has a partition, or has not given it up yet."""
        self.regexes: dict[str, ResolvedRegex] = {}
        self.regex_counts: Counter[str] = Counter()
        """How many members subscribe to each regular expression."""
        self.topic_counts: Counter[str] = Counter()
        """How many members subscribe to each topic by its name."""
        self.has_partition_metadata = False
        """Whether an older release has left a record of the topics."""
        self.changed_topics: set[str] | None = None
        """Topics that have changed since `metadata_hash` was computed; None: any may have. Not durable."""
        self.is_dead = False

    # ---- what it is

    @property
    def state(self) -> ConsumerGroupState:
        """Where the group stands."""
        if self.is_dead:
            return ConsumerGroupState.DEAD
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def is_empty(self) -> bool:
        """Whether nobody is in it."""
        return not self.members

    @property
    def is_metadata_stale(self) -> bool:
        """Whether topics may be others than when `metadata_hash` was computed."""
        return self.changed_topics is None or bool(self.changed_topics)

    def member(self, member_id: str) -> ConsumerMember:
        """The member of this id; KafkaError UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        """The member that owns this instance id."""
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def is_free(self, topic_id: Uuid, partition: int, member_id: str) -> bool:
        """Whether nobody but perhaps this member has the partition, or still has to give it up."""
        return self.owners.get(topic_id, {}).get(partition, member_id) == member_id

    def subscribed_topics(self) -> set[str]:
        """All topics that members read, by name or by regular expression."""
        return set(self.topic_counts).union(*(resolved.topics for resolved in self.regexes.values()))

    def preferred_assignor(self) -> str | None:
        """The server-side assignor that most members ask for; None when none does."""
        return most_wanted(self.members.values())

    # ---- what the coordinator asks of a group of any type, see `coord.groups.group`

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic."""
        return topic in self.topic_counts or any(topic in resolved.topics for resolved in self.regexes.values())

    def validate_commit(self, request: OffsetCommitRequest, api_version: int, *, is_transactional: bool) -> None:
        """Of a member in its epoch, or of an earlier one for partitions it has had since (KIP-1251)."""
        epoch = request.generation_id_or_member_epoch
        if epoch < 0 and (not self.members or (is_transactional and _tells_no_member(request, epoch))):
            return
        member = self.member(request.member_id)
        if not is_transactional and not member.speaks_classic and api_version < MEMBER_EPOCH_SINCE:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Members of the consumer protocol commit with OffsetCommit {MEMBER_EPOCH_SINCE} or later.",
            )
        if epoch != member.epoch:
            self._validate_earlier_epoch(request, member, _stale(member, api_version, is_transactional))

    @staticmethod
    def _validate_earlier_epoch(request: OffsetCommitRequest, member: ConsumerMember, error: ErrorCode) -> None:
        epoch = request.generation_id_or_member_epoch
        if epoch > member.epoch:
            raise KafkaError(error, f"Member epoch {epoch} is ahead of the member's, {member.epoch}.")
        for topic in request.topics:
            for partition in topic.partitions:
                index = partition.partition_index
                since = member.assigned.get(topic.topic_id, {}).get(index)
                if since is None:
                    since = member.revoking.get(topic.topic_id, {}).get(index)
                if since is None or epoch < since:
                    raise KafkaError(
                        error, f"In member epoch {epoch} {topic.name}-{index} did not belong to {member.member_id}."
                    )

    def validate_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """A member asks in its epoch; who tells no member sees all."""
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.epoch:
            error = ErrorCode.ILLEGAL_GENERATION if member.speaks_classic else ErrorCode.STALE_MEMBER_EPOCH
            raise KafkaError(error, f"Member epoch {member_epoch} is not the member's, {member.epoch}.")

    def validate_offset_delete(self) -> None:
        """Always: what members read is known topic by topic."""

    def validate_delete(self) -> None:
        """Only an empty group."""
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that remove the group and whoever is in it."""
        removed: list[CoordinatorRecord] = []
        for member_id in self.members:
            removed += records.member_tombstones(self.group_id, member_id)
        removed += [records.regex_tombstone(self.group_id, regex) for regex in self.regexes]
        return removed + records.group_tombstones(self.group_id)

    # ---- replay

    def put_member(self, member: ConsumerMember) -> None:
        """What a member says of itself, or how far its assignment has come, is in the log."""
        before = self.members.get(member.member_id)
        if before is not None:
            self._forget(before)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.topic_counts.update(member.subscribed_topics)
        if member.subscribed_regex:
            self.regex_counts[member.subscribed_regex] += 1
        self._own(member.member_id, member.assigned)
        self._own(member.member_id, member.revoking)

    def remove_member(self, member_id: str) -> None:
        """The tombstone of a member is in the log."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._forget(member)
        self.target.pop(member_id, None)

    def _forget(self, member: ConsumerMember) -> None:
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member.member_id:
            del self.static_members[member.instance_id]
        _subtract(self.topic_counts, member.subscribed_topics)
        if member.subscribed_regex:
            _subtract(self.regex_counts, (member.subscribed_regex,))
        self._disown(member.member_id, member.assigned)
        self._disown(member.member_id, member.revoking)

    def _own(self, member_id: str, owned: OwnedPartitions) -> None:
        for topic_id, partitions in owned.items():
            self.owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))

    def _disown(self, member_id: str, owned: OwnedPartitions) -> None:
        for topic_id, partitions in owned.items():
            owners = self.owners.get(topic_id, {})
            for partition in partitions:
                if owners.get(partition) == member_id:
                    del owners[partition]
            if not owners:
                self.owners.pop(topic_id, None)

    def __repr__(self) -> str:
        return f"<ConsumerGroup {self.group_id!r} {self.state} epoch {self.epoch} {len(self.members)} members>"


def most_wanted(members: Iterable[ConsumerMember]) -> str | None:
    """The assignor that most of the members prefer, the first by name among equals."""
    wanted = Counter(member.assignor for member in members if member.assignor)
    return min(wanted, key=lambda name: (-wanted[name], name)) if wanted else None


def _subtract(counts: Counter[str], names: Iterable[str]) -> None:
    for name in names:
        counts[name] -= 1
        if not counts[name]:
            del counts[name]


def _tells_no_member(request: OffsetCommitRequest, epoch: int) -> bool:
    return epoch == NO_EPOCH and not request.member_id and request.group_instance_id is None


def _stale(member: ConsumerMember, api_version: int, is_transactional: bool) -> ErrorCode:
    knows = not is_transactional or api_version >= STALE_EPOCH_IN_TRANSACTION_SINCE
    return ErrorCode.STALE_MEMBER_EPOCH if knows and not member.speaks_classic else ErrorCode.ILLEGAL_GENERATION
