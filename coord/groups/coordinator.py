"""The coordinator of the groups of one partition of `__consumer_offsets` (rules G1, G2; KIP-447, KIP-496, KIP-848).

A pure state machine, see `coord.machine`. Durable state is what `replay` builds: the offsets, and of each group its
last written generation. A live group runs ahead of its records while it rebalances; whenever it is Stable or Empty,
loading the log gives the same group. `fetch_offsets`, `describe` and `list_groups` only look; everything else gives a
`Result`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from barnabas.coord.groups import offsets, records
from barnabas.coord.groups.classic.answers import UNKNOWN_MEMBER_ID, join_error, sync_error
from barnabas.coord.groups.classic.describe import describe_group, listed_group
from barnabas.coord.groups.classic.group import ClassicGroup
from barnabas.coord.groups.classic.membership import Membership
from barnabas.coord.groups.classic.rebalance import Rebalance, TimerKey
from barnabas.coord.groups.classic.states import GroupState
from barnabas.coord.groups.expiry import expired
from barnabas.coord.groups.group import CONSUMER, SHARE, STREAMS
from barnabas.coord.groups.offsets import OffsetStore
from barnabas.coord.groups.pending_offsets import PendingOffsets
from barnabas.coord.groups.settings import default_group_configs
from barnabas.coord.groups.topics import NoTopics
from barnabas.coord.machine import CoordinatorRecord, Moment, Result
from barnabas.coord.timers import Timers
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.coordinator_records import OffsetCommitKey
from barnabas.wire.messages.groups import DeletableGroupResult, HeartbeatResponse, LeaveGroupResponse
from barnabas.wire.messages.offsets import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    OffsetFetchResponseGroup,
)
from barnabas.wire.types import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from barnabas.coord.groups.config import GroupConfig
    from barnabas.coord.groups.consumer.group import ConsumerGroup
    from barnabas.coord.groups.consumer.groups import ConsumerGroups
    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.group import Group, GroupType
    from barnabas.coord.groups.settings import GroupConfigs
    from barnabas.coord.groups.share.groups import ShareGroups
    from barnabas.coord.groups.streams.groups import StreamsGroups
    from barnabas.coord.groups.topics import Topics
    from barnabas.coord.machine import Ticket
    from barnabas.wire.messages.groups import (
        DescribeGroupsResponseDescribedGroup,
        HeartbeatRequest,
        JoinGroupRequest,
        LeaveGroupRequest,
        ListedGroup,
        SyncGroupRequest,
    )
    from barnabas.wire.messages.offsets import (
        OffsetCommitRequest,
        OffsetDeleteRequest,
        OffsetDeleteRequestTopic,
        OffsetFetchRequestGroup,
        OffsetFetchResponseTopics,
    )
    from barnabas.wire.types import Uuid

GROUP_NOT_FOUND_SINCE = 9
"""OffsetCommit versions from here on know GROUP_ID_NOT_FOUND (KIP-848)."""
GROUP_NOT_FOUND_IN_TRANSACTION_SINCE = 6
"""TxnOffsetCommit versions from here on know GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH."""

_APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What a client is told when the coordinator's own append fails (Kafka's appendGroupMetadataErrorToResponseError)."""


class GroupCoordinator:
    """All groups whose id falls on one partition of `__consumer_offsets`."""

    def __init__(
        self,
        config: GroupConfig,
        new_id: Callable[[], str],
        topics: Topics | None = None,
        group_configs: GroupConfigs = default_group_configs,
    ) -> None:
        """`new_id` gives a fresh random text each time: member ids end in it. `topics` are the cluster's."""
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self._pending = PendingOffsets()
        self._config = config
        self._new_id = new_id
        self._topics = topics or NoTopics()
        self._group_configs = group_configs
        self._types: dict[str, GroupType] = {}
        self._type_of_timer: dict[type, GroupType] = {}
        self._timers = Timers()
        self._rebalance = Rebalance(self._timers, config)
        self._membership = Membership(self.groups, self._timers, self._rebalance, config, new_id)
        self._is_loading = True

    # ---- load, replay, unload

    @property
    def is_loading(self) -> bool:
        """Whether the log is still being replayed: nothing else may be asked then (COORDINATOR_LOAD_IN_PROGRESS)."""
        return self._is_loading

    def replay(self, key: bytes, value: bytes | None, at: Moment, offset: int = -1) -> None:
        """One record is in the log, at this offset: take over what it says."""
        self._pending.saw(offset, CoordinatorRecord(key, value))
        self._apply(key, value, at)

    def replay_pending(self, producer_id: int, key: bytes, value: bytes | None, offset: int) -> None:
        """One record of an open transaction is in the log: it counts once its commit marker is there (T5, T11)."""
        self._pending.hold(producer_id, offset, CoordinatorRecord(key, value))

    def replay_end(self, producer_id: int, at: Moment, *, commit: bool) -> None:
        """The marker that ends the producer's transaction in this partition is in the log."""
        for key, value in self._pending.end(producer_id, commit=commit):
            self._apply(key, value, at)

    @property
    def pending_count(self) -> int:
        """How many offsets wait for the end of their transaction."""
        return len(self._pending)

    def _apply(self, key: bytes, value: bytes | None, at: Moment) -> None:
        about = records.read_key(key)
        if about is None:
            record_type = int.from_bytes(key[:2], "big")
            group_type = self._type(records.TYPE_OF_RECORD.get(record_type, ""))
            if group_type is not None:
                group_type.replay(record_type, key[2:], value, at)
            return
        if isinstance(about, OffsetCommitKey):
            if value is None:
                self.offsets.remove(about.group, about.topic, about.partition)
            else:
                if about.group not in self.groups:
                    self.groups[about.group] = ClassicGroup(about.group, at)
                self.offsets.put(about.group, about.topic, about.partition, records.read_offset(value))
        else:
            self._apply_classic(about.group, value, at)

    def _apply_classic(self, group_id: str, value: bytes | None, at: Moment) -> None:
        """The record of a classic group. In an old log it may be followed by a group of another type."""
        group = self.groups.get(group_id)
        if value is None:
            if isinstance(group, ClassicGroup):
                self._remove(group, at)
        elif self._is_loading:
            if group is None or isinstance(group, ClassicGroup):
                self.groups[group_id] = ClassicGroup.from_record(group_id, records.read_group(value))
        elif isinstance(group, ClassicGroup):
            group.apply(records.read_group(value), at)

    def loaded(self, at: Moment) -> Result:
        """The log has been replayed: sessions start now, and groups that are too large or have no leader rebalance."""
        self._is_loading = False
        result = Result()
        for group in self._classic_groups():
            for member in group.members.values():
                self._rebalance.renew_session(group, member, at)
            if group.has_to_rebalance or len(group.members) > self._config.max_size:
                self._rebalance.prepare(group, at, result)
        for group_type in self._types.values():
            group_type.loaded(at, result)
        return result

    def unload(self, at: Moment) -> Result:
        """The partition has gone elsewhere: everybody who waits is told NOT_COORDINATOR; every group is Dead."""
        result = Result()
        error = ErrorCode.NOT_COORDINATOR
        for group in self._classic_groups():
            for member in group.members.values():
                self._rebalance.answer_join(member, join_error(member.member_id, error), result)
                self._rebalance.answer_sync(member, sync_error(error), result)
            self._rebalance.forget(group)
            group.become(GroupState.DEAD, at)
        self.groups.clear()
        return result

    def _remove(self, group: ClassicGroup, at: Moment) -> None:
        del self.groups[group.group_id]
        self._rebalance.forget(group)
        group.become(GroupState.DEAD, at)

    def _classic_groups(self) -> list[ClassicGroup]:
        return [group for group in self.groups.values() if isinstance(group, ClassicGroup)]

    def append_failed(self, result: Result, error: ErrorCode, at: Moment) -> Result:
        """The records of `result` could not be appended: what to do and answer instead of it."""
        return result.failed(_APPEND_ERRORS.get(error, error), at)

    def commit_failed(self, result: Result, error: ErrorCode) -> Result:
        """The records of `result` are in the log and were replayed, but will not become durable: what to answer.

        The caller unloads the coordinator then, so there is nothing to undo.
        """
        return result.failed_replies(_APPEND_ERRORS.get(error, error))

    # ---- group types, see `coord.groups.group`; each is made, and its modules imported, when it is first needed

    def _type(self, name: str) -> GroupType | None:
        """The type of this name; None for one that is not there."""
        group_type = self._types.get(name)
        if group_type is None:
            group_type = self._make_type(name)
            if group_type is not None:
                self._types[name] = group_type
                self._type_of_timer[group_type.timer_key] = group_type
        return group_type

    def _make_type(self, name: str) -> GroupType | None:
        if name == CONSUMER:
            from barnabas.coord.groups.consumer.groups import ConsumerGroups

            return ConsumerGroups(
                self.groups,
                self._timers,
                self._topics,
                self._config,
                self._group_configs,
                self._new_id,
                self._rebalance,
            )
        if name == STREAMS:
            from barnabas.coord.groups.streams.groups import StreamsGroups

            return StreamsGroups(self.groups, self._timers, self._topics, self._config, self._group_configs)
        if name == SHARE:
            from barnabas.coord.groups.share.groups import ShareGroups

            return ShareGroups(
                self.groups, self._timers, self._topics, self._group_configs, self._config.share_max_size
            )
        return None

    @property
    def streams_groups(self) -> StreamsGroups:
        """The groups of Kafka Streams applications (KIP-1071)."""
        return cast("StreamsGroups", self._type(STREAMS))

    @property
    def share_groups(self) -> ShareGroups:
        """Share groups (KIP-932)."""
        return cast("ShareGroups", self._type(SHARE))

    @property
    def consumer_groups(self) -> ConsumerGroups:
        """Consumer groups of the consumer protocol (KIP-848)."""
        return cast("ConsumerGroups", self._type(CONSUMER))

    def metadata_changed(self, topics: Collection[str], at: Moment) -> Result:
        """These topics of the cluster came, went, or have other partitions or replicas now."""
        result = Result()
        for group_type in self._types.values():
            group_type.metadata_changed(topics, at, result)
        return result

    # ---- membership

    def join(self, request: JoinGroupRequest, ticket: Ticket, context: ClientContext, at: Moment) -> Result:
        """JoinGroup: answered now, or once the join phase ends."""
        result = Result()
        group = self._with_consumer_members(request.group_id)
        try:
            if group is None:
                answer = self._membership.join(request, ticket, context, at, result)
            else:
                self._membership.check_join(request)
                answer = self.consumer_groups.classic_members.join(group, request, context, at, result)
        except KafkaError as refused:
            if group is not None:
                result = Result()
            unknown = refused.code in (ErrorCode.INVALID_GROUP_ID, ErrorCode.INVALID_SESSION_TIMEOUT)
            answer = join_error(UNKNOWN_MEMBER_ID if unknown else request.member_id, refused.code)
        if answer is not None:
            result.reply(ticket, answer, lambda error: join_error(UNKNOWN_MEMBER_ID, error))
        return result

    def sync(self, request: SyncGroupRequest, ticket: Ticket, at: Moment) -> Result:
        """SyncGroup: answered now, or once the leader's assignment is in the log."""
        result = Result()
        try:
            _check_group_id(request.group_id)
            group = self._with_consumer_members(request.group_id)
            if group is None:
                answer = self._membership.sync(request, ticket, at, result)
            else:
                answer = self.consumer_groups.classic_members.sync(group, request, at)
        except KafkaError as refused:
            answer = sync_error(refused.code)
        if answer is not None:
            result.reply(ticket, answer)
        return result

    def heartbeat(self, request: HeartbeatRequest, ticket: Ticket, at: Moment) -> Result:
        """Heartbeat: always answered now."""
        result = Result()
        try:
            _check_group_id(request.group_id)
            group = self._with_consumer_members(request.group_id)
            if group is None:
                answer = self._membership.heartbeat(request, at)
            else:
                answer = self.consumer_groups.classic_members.heartbeat(group, request, at)
        except KafkaError as refused:
            answer = HeartbeatResponse(error_code=int(refused.code))
        result.reply(ticket, answer)
        return result

    def leave(self, request: LeaveGroupRequest, ticket: Ticket, at: Moment) -> Result:
        """LeaveGroup; the one member of v0-2 comes as the only entry of `members`."""
        result = Result()
        try:
            _check_group_id(request.group_id)
            group = self._with_consumer_members(request.group_id)
            if group is None:
                answer = self._membership.leave(request, at, result)
            else:
                answer = self.consumer_groups.classic_members.leave(group, request, at, result)
        except KafkaError as refused:
            answer = LeaveGroupResponse(error_code=int(refused.code))
        result.reply(ticket, answer)
        return result

    def _with_consumer_members(self, group_id: str) -> ConsumerGroup | None:
        """The group, if members of the consumer protocol have made it a consumer group; an empty one gives way."""
        group = self.groups.get(group_id)
        if group is None or group.group_type != CONSUMER or group.is_empty:
            return None
        return cast("ConsumerGroup", group)

    # ---- offsets

    def commit_offsets(
        self,
        request: OffsetCommitRequest,
        ticket: Ticket,
        context: ClientContext,
        at: Moment,
        producer: tuple[int, int] | None = None,
    ) -> Result:
        """OffsetCommit; the topics are known to exist and carry name and id.

        With a producer's id and epoch it is TxnOffsetCommit: the offsets count once the transaction commits (T11).
        """
        result = Result()
        result.producer = producer
        try:
            self._check_commit(request, context, at, is_transactional=producer is not None)
        except KafkaError as refused:
            result.reply(ticket, offsets.commit_error(request, refused.code))
            return result
        result.records, answer = offsets.commit(request, self._config.offset_metadata_max_bytes, at)
        result.reply(ticket, answer, lambda error: offsets.commit_error(request, error))
        return result

    def _check_commit(
        self, request: OffsetCommitRequest, context: ClientContext, at: Moment, *, is_transactional: bool
    ) -> None:
        """Whether the group takes this commit; a commit of a member of a classic group renews its session."""
        group = self.groups.get(request.group_id)
        if group is None:
            if request.generation_id_or_member_epoch < 0:
                return  # from no member: a simple group, created by the record
            since = GROUP_NOT_FOUND_IN_TRANSACTION_SINCE if is_transactional else GROUP_NOT_FOUND_SINCE
            knows = context.api_version >= since
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND if knows else ErrorCode.ILLEGAL_GENERATION)
        group.validate_commit(request, context.api_version, is_transactional=is_transactional)
        if isinstance(group, ClassicGroup) and request.member_id in group.members:
            self._rebalance.renew_session(group, group.members[request.member_id], at)

    def fetch_offsets(
        self, request: OffsetFetchRequestGroup, *, require_stable: bool = False
    ) -> OffsetFetchResponseGroup:
        """OffsetFetch of one group; `topics` None asks for all. A group that is not there has no offsets: no error.

        `require_stable` answers UNSTABLE_OFFSET_COMMIT where a transaction is about to change the offset (KIP-447).
        """
        group_id = request.group_id
        group = self.groups.get(group_id)
        if group is not None:
            try:
                group.validate_fetch(request.member_id, request.member_epoch)
            except KafkaError as refused:
                return OffsetFetchResponseGroup(group_id=group_id, error_code=int(refused.code))
        if request.topics is None:
            found = offsets.fetch_all(self.offsets, group_id)
        else:
            found = offsets.fetch(self.offsets, group_id, request.topics)
        if require_stable and self._pending:
            self._mark_unstable(group_id, found)
        return OffsetFetchResponseGroup(group_id=group_id, topics=found)

    def _mark_unstable(self, group_id: str, found: list[OffsetFetchResponseTopics]) -> None:
        for topic in found:
            for place, partition in enumerate(topic.partitions):
                index = partition.partition_index
                if self._pending.has(records.offset_key(group_id, topic.name, index)):
                    topic.partitions[place] = offsets.unstable(index)

    def delete_offsets(self, request: OffsetDeleteRequest, ticket: Ticket) -> Result:
        """OffsetDelete: of topics that the group's members do not read."""
        result = Result()
        answer = OffsetDeleteResponse()
        try:
            _check_group_id(request.group_id)
            group = self._existing(request.group_id)
            group.validate_offset_delete()
            answer.topics = [self._delete_topic_offsets(group, topic, result) for topic in request.topics]
        except KafkaError as refused:
            answer.error_code = int(refused.code)
        result.reply(ticket, answer, lambda error: OffsetDeleteResponse(error_code=int(error)))
        return result

    def _delete_topic_offsets(
        self, group: Group, topic: OffsetDeleteRequestTopic, result: Result
    ) -> OffsetDeleteResponseTopic:
        subscribed = group.is_subscribed_to(topic.name)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        answer = OffsetDeleteResponseTopic(name=topic.name)
        for partition in topic.partitions:
            index = partition.partition_index
            tombstone = records.offset_tombstone(group.group_id, topic.name, index)
            is_there = self.offsets.get(group.group_id, topic.name, index) or self._pending.has(tombstone.key)
            if is_there and not subscribed:
                result.records.append(tombstone)
            answer.partitions.append(OffsetDeleteResponsePartition(partition_index=index, error_code=int(error)))
        return answer

    def topic_deleted(self, topic: str, topic_id: Uuid = ZERO_UUID) -> Result:
        """A topic is gone from the cluster: its offsets go too, but not those of another topic of that name."""
        result = Result()
        result.records = self.offsets.topic_tombstones(topic, topic_id)
        result.records += [CoordinatorRecord(key, None) for key in self._pending.of_topic(topic, topic_id)]
        return result

    def expire_offsets(self, at: Moment) -> Result:
        """Time has passed: offsets that were kept long enough go, and groups that are empty without them."""
        result = Result()
        retention_ms = self._config.offsets_retention_ms
        for group in self.groups.values():
            result.records += expired(group, self.offsets, self._pending, retention_ms, at.now_ms)
        return result

    # ---- administration

    def describe(self, group_id: str, api_version: int) -> DescribeGroupsResponseDescribedGroup:
        """DescribeGroups of one group."""
        return describe_group(self.groups.get(group_id), group_id, api_version)

    def list_groups(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[ListedGroup]:
        """ListGroups: those in one of `states` and of one of `types`, or all; capitals do not matter."""
        wanted_states = {state.strip().lower() for state in states}
        wanted_types = {kind.strip().lower() for kind in types}
        return [
            listed_group(group)
            for group in self.groups.values()
            if (not wanted_states or str(group.state).lower() in wanted_states)
            and (not wanted_types or group.group_type in wanted_types)
        ]

    def delete_group(self, group_id: str, ticket: Ticket) -> Result:
        """DeleteGroups of one group; the reply is a `DeletableGroupResult`."""
        result = Result()
        answer = DeletableGroupResult(group_id=group_id)
        try:
            group = self._existing(group_id)
            if group.group_type == SHARE:
                return self.share_groups.delete(group_id, ticket)
            group.validate_delete()
            pending = [CoordinatorRecord(key, None) for key in self._pending.of_group(group_id)]
            result.records = [*self.offsets.tombstones(group_id), *pending, *group.tombstones()]
        except KafkaError as refused:
            answer.error_code = int(refused.code)
        result.reply(ticket, answer, lambda error: DeletableGroupResult(group_id=group_id, error_code=int(error)))
        return result

    def _existing(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        return group

    # ---- time

    def next_deadline(self) -> float | None:
        """When `tick` has something to do (monotonic seconds), or None."""
        return self._timers.next_deadline()

    def tick(self, at: Moment) -> Result:
        """What is due, in order. More may be left: the removal of a member has to be replayed before the next one."""
        result = Result()
        while (key := self._timers.pop_due(at.now)) is not None:
            if isinstance(key, TimerKey):
                group = self.groups.get(key.group_id)
                if isinstance(group, ClassicGroup):
                    self._due(key, group, at, result)
            else:
                self._type_of_timer[type(key)].due(key, at, result)
                if result.records:
                    break
        return result

    def _due(self, key: TimerKey, group: ClassicGroup, at: Moment, result: Result) -> None:
        if key.kind == "session":
            self._rebalance.session_over(group, key.member_id, at, result)
        elif key.kind == "initial":
            self._rebalance.initial_delay_over(group, at, result)
        elif key.kind == "join":
            self._rebalance.complete_join(group, at, result)
        else:
            self._rebalance.sync_timed_out(group, at, result)


def _check_group_id(group_id: str) -> None:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
