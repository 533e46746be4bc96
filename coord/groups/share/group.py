"""A share group: its members, epochs, target assignment, and the partitions with state (KIP-932).

All of it follows from records, except `is_stale`. The offsets of a share group are in the state that the share
coordinator keeps; it has no committed offsets. Source: Kafka 4.4 `ShareGroup`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from barnabas.coord.groups.group import SHARE
from barnabas.coord.groups.modern.group import FIRST_EPOCH
from barnabas.coord.groups.share import records
from barnabas.coord.groups.share.state_partitions import StatePartitions
from barnabas.coord.groups.share.states import ShareGroupState
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from barnabas.coord.groups.modern.partitions import Partitions
    from barnabas.coord.groups.share.member import ShareMember
    from barnabas.coord.groups.topics import Topics
    from barnabas.coord.machine import CoordinatorRecord
    from barnabas.wire.messages.groups.offsets import OffsetCommitRequest


class ShareGroup:
    """One share group."""

    group_type: ClassVar[str] = SHARE
    protocol_type = "share"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.members: dict[str, ShareMember] = {}
        self.target_epoch = FIRST_EPOCH
        self.target_timestamp_ms = 0
        self.target: dict[str, Partitions] = {}
        self.state_partitions = StatePartitions()
        self.is_stale = True
        """Whether the topics may have changed since `metadata_hash` was computed."""

    @property
    def state(self) -> ShareGroupState:
        """The state, derived from the members."""
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    @property
    def is_empty(self) -> bool:
        """Whether there are no members."""
        return not self.members

    def subscribed_names(self, *, instead: ShareMember | None = None, leaving: str | None = None) -> set[str]:
        """The topics that members subscribe to, with one member replaced or without one."""
        members = {**self.members, instead.member_id: instead} if instead is not None else self.members
        return {name for member in members.values() if member.member_id != leaving for name in member.subscribed}

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether members subscribe to `topic`."""
        return any(topic in member.subscribed for member in self.members.values())

    def is_subscribed_to_one_of(self, topics: Collection[str]) -> bool:
        """Whether members subscribe to one of these topics, which may be many."""
        return any(not member.subscribed.isdisjoint(topics) for member in self.members.values())

    def missing(self, names: Iterable[str], topics: Topics) -> Partitions:
        """The partitions of these topics whose state is not initialized yet."""
        partitions: Partitions = {}
        for topic in (topic for topic in map(topics.by_name, sorted(names)) if topic is not None):
            initialized = self.state_partitions.initialized.get(topic.topic_id, frozenset())
            if len(initialized) < topic.partitions:
                partitions[topic.topic_id] = frozenset(range(topic.partitions)) - initialized
        return partitions

    def lacks_initialized(self, topics: Topics) -> bool:
        """Whether the target assignment lacks partitions that can be assigned, or has ones of deleted topics."""
        if not self.members or not self.state_partitions.initialized:
            return False
        assigned: dict[bytes, set[int]] = {}
        for partitions in self.target.values():
            for topic_id, indexes in partitions.items():
                assigned.setdefault(topic_id, set()).update(indexes)
        for name in self.subscribed_names():
            topic = topics.by_name(name)
            if topic is None or topic.topic_id not in self.state_partitions.initialized:
                continue
            if len(assigned.get(topic.topic_id, ())) != self.state_partitions.whole(topic.topic_id):
                return True
        return False

    # ---- the interface of every group type, see `coord.groups.group`

    def validate_commit(self, request: OffsetCommitRequest, api_version: int, *, is_transactional: bool) -> None:  # noqa: ARG002 - whatever it says
        """KafkaError GROUP_ID_NOT_FOUND: a share group has no committed offsets."""
        raise self._no_consumer_group()

    def validate_fetch(self, member_id: str | None, member_epoch: int) -> None:  # noqa: ARG002
        """KafkaError GROUP_ID_NOT_FOUND: a share group has no committed offsets."""
        raise self._no_consumer_group()

    def validate_offset_delete(self) -> None:
        """KafkaError GROUP_ID_NOT_FOUND: share groups have DeleteShareGroupOffsets."""
        raise self._no_consumer_group()

    def _no_consumer_group(self) -> KafkaError:
        return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")

    def validate_delete(self) -> None:
        """KafkaError NON_EMPTY_GROUP while there are members."""
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that remove the group."""
        removed = [
            record for member_id in self.members for record in records.member_tombstones(self.group_id, member_id)
        ]
        return [*removed, *records.group_tombstones(self.group_id)]
