"""OffsetCommit, OffsetFetch, OffsetDelete and the expiry of offsets, for the groups of one coordinator (rule G2).

KIP-211, KIP-447, KIP-496, KIP-848. Durable state is the store, and the offsets of open
transactions (`PendingOffsets`); only replayed records change them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups import offsets, records
from barnabas.coord.groups.classic.group import ClassicGroup
from barnabas.coord.groups.classic_requests import check_group_id
from barnabas.coord.groups.expiry import expired, expired_of_topic
from barnabas.coord.groups.offsets import OffsetStore
from barnabas.coord.groups.pending_offsets import PendingOffsets
from barnabas.coord.machine import CoordinatorRecord, Moment, Result
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.offsets import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopics,
)
from barnabas.wire.types import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from barnabas.coord.groups.classic.rebalance import Rebalance
    from barnabas.coord.groups.config import GroupConfig
    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.group import Group
    from barnabas.coord.groups.limits import GroupLimits
    from barnabas.coord.machine import Ticket
    from barnabas.wire.messages.groups.offsets import (
        OffsetCommitRequest,
        OffsetDeleteRequest,
        OffsetDeleteRequestTopic,
        OffsetFetchRequestGroup,
        OffsetFetchResponsePartitions,
    )
    from barnabas.wire.types import Uuid

LOOKED_AT_PER_PART = 200
"""How many groups, topics and offsets a part of the removal of deleted topics, or of the expiry, looks at."""
GROUP_NOT_FOUND_SINCE = 9
"""OffsetCommit versions from here on know GROUP_ID_NOT_FOUND (KIP-848)."""
GROUP_NOT_FOUND_IN_TRANSACTION_SINCE = 6
"""TxnOffsetCommit versions from here on know GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH."""


class GroupOffsets:
    """The committed offsets of all groups of one coordinator."""

    def __init__(
        self, groups: dict[str, Group], config: GroupConfig, rebalance: Rebalance, limits: GroupLimits
    ) -> None:
        """`rebalance` renews the sessions of members of classic groups that commit."""
        self.store = OffsetStore()
        self.pending = PendingOffsets()
        self._groups = groups
        self._config = config
        self._rebalance = rebalance
        self._limits = limits

    def commit(
        self,
        request: OffsetCommitRequest,
        ticket: Ticket,
        context: ClientContext,
        at: Moment,
        producer: tuple[int, int] | None = None,
    ) -> Result:
        """OffsetCommit; the topics exist and have both name and id.

        With a producer's id and epoch it is TxnOffsetCommit: the offsets are pending until the transaction ends (T11).
        """
        result = Result()
        result.producer = producer
        try:
            self._check_commit(request, context, at, is_transactional=producer is not None)
        except KafkaError as refused:
            result.reply(ticket, offsets.commit_error(request, refused.code))
            return result
        result.records, response = offsets.commit(request, self._config.offset_metadata_max_bytes, at)
        result.reply(ticket, response, lambda error: offsets.commit_error(request, error))
        return result

    def check_usual(self, request: OffsetCommitRequest, api_version: int, at: Moment) -> None:
        """Check an OffsetCommit without metadata to one partition of a topic that exists, and renew the session.

        KafkaError if the group does not exist, or does not accept it.
        """
        group = self._groups.get(request.group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        self._accept(group, request, api_version, at, is_transactional=False)

    def _accept(
        self, group: Group, request: OffsetCommitRequest, api_version: int, at: Moment, *, is_transactional: bool
    ) -> None:
        group.validate_commit(request, api_version, is_transactional=is_transactional)
        if isinstance(group, ClassicGroup) and (member := group.members.get(request.member_id)) is not None:
            self._rebalance.renew_session(group, member, at)

    def _check_commit(
        self, request: OffsetCommitRequest, context: ClientContext, at: Moment, *, is_transactional: bool
    ) -> None:
        """KafkaError unless the group accepts this commit; it renews the session of a member of a classic group."""
        group = self._groups.get(request.group_id)
        if group is None:
            if request.generation_id_or_member_epoch < 0:
                self._limits.check_new_group(ErrorCode.POLICY_VIOLATION)
                return  # from no member: a simple group, created by the record
            since = GROUP_NOT_FOUND_IN_TRANSACTION_SINCE if is_transactional else GROUP_NOT_FOUND_SINCE
            knows = context.api_version >= since
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND if knows else ErrorCode.ILLEGAL_GENERATION)
        self._accept(group, request, context.api_version, at, is_transactional=is_transactional)

    def fetch(self, request: OffsetFetchRequestGroup, *, require_stable: bool = False) -> OffsetFetchResponseGroup:
        """OffsetFetch of named topics of a group. A group that does not exist has no offsets: no error.

        With `require_stable`, offsets that open transactions may change are UNSTABLE_OFFSET_COMMIT (KIP-447).
        """
        group_id = request.group_id
        try:
            self.check_fetch(request)
        except KafkaError as refused:
            return OffsetFetchResponseGroup(group_id=group_id, error_code=int(refused.code))
        assert request.topics is not None  # all topics: `fetch_all`
        topics = offsets.fetch(self.store, group_id, request.topics)
        if require_stable and self.pending:
            for topic in topics:
                topic.partitions = [
                    self._or_unstable(group_id, topic.name, partition) for partition in topic.partitions
                ]
        return OffsetFetchResponseGroup(group_id=group_id, topics=topics)

    def check_fetch(self, request: OffsetFetchRequestGroup) -> None:
        """KafkaError unless the group, if it exists, gives its offsets to the member."""
        group = self._groups.get(request.group_id)
        if group is not None:
            group.validate_fetch(request.member_id, request.member_epoch)

    def fetch_all(self, group_id: str, *, require_stable: bool) -> Iterator[OffsetFetchResponseTopics | None]:
        """All offsets of a group, each topic after its last offset; None after each other offset.

        Offsets may be committed and deleted, and transactions begin and end, between two steps: an offset, and whether
        it is stable, are read in its step.
        """
        for name in list(self.store.of_group(group_id)):
            topic = OffsetFetchResponseTopics(name=name, topic_id=ZERO_UUID, partitions=[])
            for index in list(self.store.of_group(group_id).get(name, ())):
                committed = self.store.get(group_id, name, index)
                if committed is not None:
                    if topic.topic_id == ZERO_UUID:
                        topic.topic_id = committed.topic_id
                    partition = offsets.fetched(index, committed)
                    topic.partitions.append(
                        self._or_unstable(group_id, name, partition) if require_stable and self.pending else partition
                    )
                yield None
            if topic.partitions:
                yield topic

    def _or_unstable(
        self, group_id: str, topic: str, partition: OffsetFetchResponsePartitions
    ) -> OffsetFetchResponsePartitions:
        """The offset of a partition, or UNSTABLE_OFFSET_COMMIT if an open transaction may change it."""
        index = partition.partition_index
        return offsets.unstable(index) if self.pending.has(records.offset_key(group_id, topic, index)) else partition

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        """The records that remove all offsets of a group, pending ones included."""
        pending = [CoordinatorRecord(key, None) for key in self.pending.of_group(group_id)]
        return [*self.store.tombstones(group_id), *pending]

    def delete(self, request: OffsetDeleteRequest, ticket: Ticket) -> Result:
        """OffsetDelete, of topics that the group's members do not subscribe to."""
        result = Result()
        response = OffsetDeleteResponse()
        try:
            check_group_id(request.group_id)
            group = self._groups.get(request.group_id)
            if group is None:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
            group.validate_offset_delete()
            response.topics = [self._delete_topic_offsets(group, topic, result) for topic in request.topics]
        except KafkaError as refused:
            response.error_code = int(refused.code)
        result.reply(ticket, response, lambda error: OffsetDeleteResponse(error_code=int(error)))
        return result

    def _delete_topic_offsets(
        self, group: Group, topic: OffsetDeleteRequestTopic, result: Result
    ) -> OffsetDeleteResponseTopic:
        subscribed = group.is_subscribed_to(topic.name)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        response = OffsetDeleteResponseTopic(name=topic.name)
        for partition in topic.partitions:
            index = partition.partition_index
            tombstone = records.offset_tombstone(group.group_id, topic.name, index)
            is_there = self.store.get(group.group_id, topic.name, index) or self.pending.has(tombstone.key)
            if is_there and not subscribed:
                result.records.append(tombstone)
            response.partitions.append(OffsetDeleteResponsePartition(partition_index=index, error_code=int(error)))
        return response

    def topics_deleted(self, topics: Mapping[str, Uuid]) -> Result:
        """These topics were deleted: remove their offsets, but not the offsets of other topics of the same names."""
        result = Result()
        for part in self.topics_deleted_in_parts(topics):
            result.merge(part)
        return result

    def topics_deleted_in_parts(self, topics: Mapping[str, Uuid]) -> Iterator[Result]:
        """As `topics_deleted`; each result is of about a millisecond, and to be applied before the next one."""
        result = Result()
        for count, record in enumerate(self._topic_tombstones(topics), 1):
            if record is not None:
                result.records.append(record)
            if count % LOOKED_AT_PER_PART == 0:
                yield result
                result = Result()
        yield result

    def _topic_tombstones(self, topics: Mapping[str, Uuid]) -> Iterator[CoordinatorRecord | None]:
        yield from self.store.topic_tombstones(topics)
        for name, topic_id in topics.items():
            for key in self.pending.of_topic(name, topic_id):
                yield CoordinatorRecord(key, None)
            yield None

    def expire_in_parts(self, at: Moment) -> Iterator[Result]:
        """Remove the offsets that have expired, and groups without members and offsets.

        Each result is of about a millisecond, and to be applied before the next one: offsets may be committed and
        groups removed in between.
        """
        result, looked_at = Result(), 0
        for group_id in list(self._groups):
            group = self._groups.get(group_id)
            if group is None:
                continue
            count = self.store.count(group_id)
            if looked_at and looked_at + count > LOOKED_AT_PER_PART:
                yield result
                result, looked_at = Result(), 0
                group = self._groups.get(group_id)
            if group is not None:
                if self.store.count(group_id) > LOOKED_AT_PER_PART:
                    yield from self._expire_many(group, at)
                result.records += self._expired(group, at)
                looked_at += 1 + self.store.count(group_id)
        yield result

    def _expired(self, group: Group, at: Moment) -> list[CoordinatorRecord]:
        """The records that remove a group's expired offsets, and the group with its last one; none if they are many."""
        if self.store.count(group.group_id) > LOOKED_AT_PER_PART or self._groups.get(group.group_id) is not group:
            return []
        return expired(group, self.store, self.pending, self._config.offsets_retention_ms, at.now_ms)

    def _expire_many(self, group: Group, at: Moment) -> Iterator[Result]:
        """Remove the expired offsets of a group that has too many for one part."""
        group_id, retention_ms = group.group_id, self._config.offsets_retention_ms
        for topic in list(self.store.of_group(group_id)):
            partitions = list(self.store.of_group(group_id).get(topic, ()))
            for first in range(0, len(partitions), LOOKED_AT_PER_PART):
                if self._groups.get(group_id) is not group:
                    return
                there = self.store.of_group(group_id).get(topic, {})
                looked_at = partitions[first : first + LOOKED_AT_PER_PART]
                values = {partition: there[partition] for partition in looked_at if partition in there}
                result = Result()
                result.records = expired_of_topic(group, topic, values, self.pending, retention_ms, at.now_ms)
                yield result
