"""A consumer group: its members, its epochs, and the target assignment (rule G3; KIP-848).

Its state follows from its records; only its replay changes it. Invariants: `epoch >= assignment_epoch`; a partition in
`owners` belongs to the one member that has it assigned or has to revoke it; `static_members` maps each instance id to
the one member id that owns it; the counters count members.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, ClassVar

from barnabas.coord.groups.consumer import records
from barnabas.coord.groups.consumer.member import ConsumerMember, OwnedPartitions
from barnabas.coord.groups.consumer.states import ConsumerGroupState
from barnabas.coord.groups.group import CONSUMER
from barnabas.coord.groups.modern.group import ModernGroup
from barnabas.coord.groups.modern.partitions import Partitions
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.coord.groups.consumer.records import ResolvedRegex
    from barnabas.coord.machine import CoordinatorRecord
    from barnabas.wire.messages.groups.offsets import OffsetCommitRequest
    from barnabas.wire.types import Uuid


class ConsumerGroup(ModernGroup[ConsumerMember, Partitions]):
    """One consumer group."""

    group_type: ClassVar[str] = CONSUMER
    protocol_type: ClassVar[str] = CONSUMER

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.owners: dict[Uuid, dict[int, str]] = {}
        """By topic id and partition: the member that has it assigned or has to revoke it."""
        self.regexes: dict[str, ResolvedRegex] = {}
        self.regex_counts: Counter[str] = Counter()
        """How many members subscribe to each regular expression."""
        self.unresolved_regexes: set[str] = set()
        """The expressions that members subscribe to and that are not in `regexes`."""
        self.unused_regexes: set[str] = set()
        """The expressions in `regexes` that no member subscribes to."""
        self.topic_counts: Counter[str] = Counter()
        """How many members subscribe to each topic by its name."""
        self.has_partition_metadata = False
        """Whether there is a record of the topics by an older release."""
        self.is_metadata_stale = True
        """Whether the group's topics may have changed since `metadata_hash` was computed. Not durable."""

    # ---- state

    @property
    def state(self) -> ConsumerGroupState:
        """The state, derived from epochs and members."""
        if self.is_dead:
            return ConsumerGroupState.DEAD
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def is_free(self, topic_id: Uuid, partition: int, member_id: str) -> bool:
        """Whether no other member has the partition assigned or has to revoke it."""
        return self.owners.get(topic_id, {}).get(partition, member_id) == member_id

    def subscribed_topics(self) -> set[str]:
        """All topics that members subscribe to, by name or by resolved regular expression."""
        return set(self.topic_counts).union(*(resolved.topics for resolved in self.regexes.values()))

    def preferred_assignor(self) -> str | None:
        """The server-side assignor that most members prefer; None if no member names one."""
        return most_preferred(self.members.values())

    # ---- the interface of every group type, see `coord.groups.group`

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic."""
        return topic in self.topic_counts or any(topic in resolved.topics for resolved in self.regexes.values())

    def is_subscribed_to_one_of(self, topics: Collection[str]) -> bool:
        """Whether a member subscribes to one of these topics, which may be many."""
        return not self.topic_counts.keys().isdisjoint(topics) or any(
            not resolved.topics.isdisjoint(topics) for resolved in self.regexes.values()
        )

    def _validate_earlier_epoch(self, request: OffsetCommitRequest, member: ConsumerMember, error: ErrorCode) -> None:
        epoch = request.generation_id_or_member_epoch
        for topic in request.topics:
            for partition in topic.partitions:
                index = partition.partition_index
                since = member.assigned.get(topic.topic_id, {}).get(index)
                if since is None:
                    since = member.revoking.get(topic.topic_id, {}).get(index)
                if since is None or epoch < since:
                    raise KafkaError(
                        error,
                        f"{topic.name}-{index} was not assigned to member {member.member_id} in member epoch {epoch}.",
                    )

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that remove the group and its members."""
        removed: list[CoordinatorRecord] = []
        for member_id in self.members:
            removed += records.member_tombstones(self.group_id, member_id)
        removed += [records.regex_tombstone(self.group_id, regex) for regex in self.regexes]
        return removed + records.group_tombstones(self.group_id)

    # ---- replay

    def put_regex(self, regex: str, resolved: ResolvedRegex) -> None:
        """An expression stands for these topics."""
        self.regexes[regex] = resolved
        self._sort_regex(regex)

    def remove_regex(self, regex: str) -> None:
        """An expression is not resolved any more."""
        self.regexes.pop(regex, None)
        self._sort_regex(regex)

    def _sort_regex(self, regex: str) -> None:
        """Keep the two sets: heartbeats ask for them, and must not look at the expressions of all members."""
        is_wanted, is_resolved = regex in self.regex_counts, regex in self.regexes
        for names, is_in in (
            (self.unresolved_regexes, is_wanted and not is_resolved),
            (self.unused_regexes, is_resolved and not is_wanted),
        ):
            if is_in:
                names.add(regex)
            else:
                names.discard(regex)

    def _count(self, member: ConsumerMember) -> None:
        self.topic_counts.update(member.subscribed_topics)
        if member.subscribed_regex:
            self.regex_counts[member.subscribed_regex] += 1
            self._sort_regex(member.subscribed_regex)
        self._own(member.member_id, member.assigned)
        self._own(member.member_id, member.revoking)

    def _discount(self, member: ConsumerMember) -> None:
        _subtract(self.topic_counts, member.subscribed_topics)
        if member.subscribed_regex:
            _subtract(self.regex_counts, (member.subscribed_regex,))
            self._sort_regex(member.subscribed_regex)
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


def most_preferred(members: Iterable[ConsumerMember]) -> str | None:
    """The assignor that most members prefer, by name among equals; None if no member names one."""
    preferences = Counter(member.assignor for member in members if member.assignor)
    return min(preferences, key=lambda name: (-preferences[name], name)) if preferences else None


def _subtract(counts: Counter[str], names: Iterable[str]) -> None:
    for name in names:
        counts[name] -= 1
        if not counts[name]:
            del counts[name]
